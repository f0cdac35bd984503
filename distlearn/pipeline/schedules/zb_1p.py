"""ZB-1p: the zero-bubble search with the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 4.1. At F = I = W the
search finds ZB-H1's order.

Bubble: ZB-H1's for F = I = W, ``(2(p-1) - (min(m,p)-1)) F``; for other times, and with transfers,
at most ZB-H1's (if no mem_limit below p is given). Peak: at most p whole activations, counted by
bytes (part goes at I). Any m >= 1.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_auto import even, searched

SPAN = "longest_span"


def order(p: int, m: int, mem_limit: float | None = None, costs: Costs | None = None,
          after_I: float | None = None) -> Schedule:
    """The best of zb_auto's candidates under ``mem_limit``, by default p whole activations.

    Or ZB-H1's order, if that is as good and ends earlier.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    mem_limit, costs, after_I
        As for zb_auto.
    """
    return searched("zb_1p", p, m, p if mem_limit is None else mem_limit, costs, after_I,
                    ends_together=True)


def bubble_time(p: int, m: int, costs: Costs, mem_limit: float | None = None,
                after_I: float | None = None) -> float:
    """Idle time within the longest rank's span, ``(2(p-1) - (min(m,p)-1)) F``; ``(p-1)F``, m >= p.

    For F = I = W, free transfers, and the limit of p (the order made for these times, or for none).
    """
    return even("zb_1p", costs, mem_limit, after_I) * (2 * (p - 1) - (min(m, p) - 1))


def peak_activations(p: int, m: int, r: int, mem_limit: float | None = None,
                     costs: Costs | None = None, after_I: float | None = None) -> int:
    """Microbatches kept by rank r, each until its W: ``min(p, m)``, for F = I = W."""
    even("zb_1p", costs if costs is not None else Costs(), mem_limit, after_I)
    return min(p, m)
