"""ZB-2p: the zero-bubble search with twice the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 4.1. At F = I = W the
search finds an order without bubbles (another one than ZB-H2's).

Bubble: ``max(0, 2p-1-m) F`` within the longest rank's span for F = I = W; about none for times not
too unequal, and never more than ZB-H1's (if no mem_limit below p is given). Peak: at most 2p whole
activations, counted by bytes (part goes at I). Any m >= 1.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_auto import even, searched

SPAN = "longest_span"


def order(p: int, m: int, mem_limit: float | None = None, costs: Costs | None = None,
          after_I: float | None = None) -> Schedule:
    """The best of zb_auto's candidates under ``mem_limit``, by default 2p whole activations.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    mem_limit, costs, after_I
        As for zb_auto.
    """
    return searched("zb_2p", p, m, 2 * p if mem_limit is None else mem_limit, costs, after_I)


def bubble_time(p: int, m: int, costs: Costs, mem_limit: float | None = None,
                after_I: float | None = None) -> float:
    """Idle time within the longest rank's span, ``max(0, 2p-1-m) F``: 0 from m = 2p - 1 on.

    For F = I = W, free transfers, and the limit of 2p (the order made for these times, or for
    none).
    """
    return even("zb_2p", costs, mem_limit, after_I) * max(0, 2 * p - 1 - m)


def peak_activations(p: int, m: int, r: int, mem_limit: float | None = None,
                     costs: Costs | None = None, after_I: float | None = None) -> int:
    """Microbatches kept by rank r, each until its W: ``m`` up to m = 2p, ``3p + r`` from m = 5p on.

    For F = I = W, and half of an activation freed at I: so more than 2p are kept in part.
    """
    even("zb_2p", costs if costs is not None else Costs(), mem_limit, after_I)
    if costs is not None and costs.activation_after_I != costs.activation:
        raise ValueError("zb_2p's peak formula needs activation_after_I not to be given; got "
                         f"activation_after_I={costs.activation_after_I}")
    if 2 * p < m < 5 * p:
        raise ValueError(f"zb_2p's peak formula needs m <= 2p or m >= 5p; got p={p} m={m}")
    return m if m <= 2 * p else 3 * p + r
