"""V-Min: the least memory that a V-shaped building block needs, about a third of 1F1B's.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.2
and appendix A. A microbatch runs down the V and back without a pause, forward and backward, so its
activations live as briefly as possible.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe_v import v_shape
from distlearn.pipeline.schedules.v_blocks import from_block


def order(p: int, m: int, v: int = 2) -> Schedule:
    """Repeat the block r, 2p-1-r, 2p+r, 4p-1-r every 6 slots; squeeze, reorder, fill in W.

    If 3 divides p, passes of different microbatches would meet: the backward starts 2 slots later.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    v : int
        Stages per rank: 2.
    """
    if v != 2:
        raise ValueError(f"v_min has two stages per rank, so v must be 2; got v={v}")
    pause = 2 if p % 3 == 0 else 0
    block = [[r, 2 * p - 1 - r, 2 * p + pause + r, 4 * p + pause - 1 - r] for r in range(p)]
    return Schedule("v_min", p, m, 2, placement=v_shape(p), ranks=from_block(block, m))


def bubble_time(p: int, m: int, costs: Costs, v: int = 2) -> float:
    """Idle time of a rank, ``(4p-5) F``, two F less if 3 divides p.

    For F = I = W of a half stage, and m > p >= 2. Read off the orders, not in the paper.
    """
    F, _, I, W = costs.uniform()
    if not F == I == W or not m > p >= 2:
        raise ValueError("v_min's bubble formula needs F = I = W and m > p >= 2; got "
                         f"F={F} I={I} W={W} p={p} m={m}")
    return (4 * p - 5 - (2 if p % 3 == 0 else 0)) * F


def peak_activations(p: int, m: int, r: int, v: int = 2) -> int:
    """Half-stage activations kept by rank r: ``2 ceil((p+2)/3)``; 1F1B keeps 2p.

    Rank 0 keeps one less if p % 3 == 2. For m >= p.
    """
    if m < p:
        raise ValueError(f"v_min's peak formula needs m >= p; got p={p} m={m}")
    return 2 * -(-(p + 2) // 3) - (1 if r == 0 and p % 3 == 2 else 0)
