"""Breadth-first: one chunk at a time, all microbatches through it.

Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023, section 4 ("looped" placement with
GPipe's order within each loop). The bubble is the interleaved one; what it buys with the memory of
all m microbatches is that the weights of a chunk are fetched, and its gradients reduced, once.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int, v: int) -> Schedule:
    """All F of chunk 0, then of chunk 1, ...; then backwards, chunks and microbatches reversed.

    Parameters
    ----------
    p, m, v : int
        Pipeline ranks, microbatches, stages per rank; any m >= 1.
    """
    placement = tuple(stage % p for stage in range(p * v))
    ranks = tuple(
        tuple(Action("F", stage, i) for stage in range(r, p * v, p) for i in range(m))
        + tuple(Action("B", stage, i) for stage in reversed(range(r, p * v, p))
                for i in reversed(range(m)))
        for r in range(p)
    )
    return Schedule("breadth_first", p, m, v, placement=placement, ranks=ranks)


def bubble_time(p: int, m: int, v: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1 + (v-1) max(0, p-m)) (F+B)``, F and B of one thin stage.

    With m >= p this is ``(p-1)(F+B)``, 1/v of GPipe's; fewer microbatches do not fill a loop.
    """
    F, B, _, _ = costs.uniform()
    return (p - 1 + (v - 1) * max(0, p - m)) * (F + B)


def peak_activations(p: int, m: int, v: int, r: int) -> int:
    """Thin-stage activations kept by rank r: ``m * v``, all of them."""
    return m * v
