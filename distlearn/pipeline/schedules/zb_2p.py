"""ZB-2p: the zero-bubble search with twice the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 4.1. At F = I = W the
search finds an order without bubbles (another one than ZB-H2's).

Bubble: about none within the longest rank's span, for F, I and W not too
unequal. Peak: 2p whole activations, counted by bytes (part goes at I). Any m >= 1.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_auto import searched

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
