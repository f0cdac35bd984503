"""ZB-1p: the zero-bubble search with the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 4.1. At F = I = W the
search finds ZB-H1's order.

Bubble: at most ZB-H1's, ``(p-1)(F+I-W)``. Peak: p whole activations, counted by
bytes (part goes at I). Any m >= 1.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_auto import searched

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
