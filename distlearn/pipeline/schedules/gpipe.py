"""GPipe: run all forwards, then all backwards.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
NeurIPS 2019, section 2.2. The simplest order, and the one that holds most in memory: the first
backward starts only when the last forward has ended, so every microbatch is kept.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int) -> Schedule:
    """All F of microbatches 0 .. m-1, then all B of microbatches 0 .. m-1, on every rank.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    """
    ranks = tuple(
        tuple(Action(kind, r, i) for kind in "FB" for i in range(m)) for r in range(p)
    )
    return Schedule("gpipe", p, m, 1, placement=tuple(range(p)), ranks=ranks)


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``: the ramp down the stages and the ramp back up."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int) -> int:
    """Microbatches that rank r keeps at the fullest moment: ``m``, all of them."""
    return m
