"""ZB-H2: twice the warm-up of ZB-H1, and no bubble left between a rank's first and last action.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2.3. The start
bubble is filled with more forwards, the end bubble with weight gradients. Ranks end one after the
other: there is no bubble only if none waits for the others before its optimizer step
(section 4, post-validation).
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_h1 import one_f_one_i

SPAN = "longest_span"


def order(p: int, m: int) -> Schedule:
    """Rank r warms up with 2(p-1-r) forwards and holds back 2r weight gradients.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1 (the order is cut short below 2p - 1).
    """
    ranks = tuple(
        tuple(one_f_one_i(r, 2 * (p - 1 - r), m, held_back=2 * r)) for r in range(p))
    return Schedule("zb_h2", p, m, 1, placement=tuple(range(p)), ranks=ranks)


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time within the longest rank's span, ``(p-1)(F+I-2W)``, for m >= 2p - 1.

    Holds for W no longer than F and I.
    """
    F, _, I, W = costs.uniform()
    if W > min(F, I):
        raise ValueError(f"zb_h2's bubble formula needs W <= F and W <= I; got F={F} I={I} W={W}")
    if m < 2 * p - 1:
        raise ValueError(f"zb_h2's bubble formula needs m >= 2p - 1 = {2 * p - 1}; got m={m}")
    return (p - 1) * (F + I - 2 * W)


def peak_activations(p: int, m: int, r: int) -> int:
    """Microbatches kept by rank r, each until its W: ``min(2p-1, m)``, on every rank alike."""
    return min(2 * p - 1, m)
