"""ZB-H1: split the backward, and put the weight gradients where 1F1B would idle.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2.2. Only the input
gradient I has to travel to the previous stage; the weight gradient W waits for nobody. H1 keeps
the memory of 1F1B and cuts its bubble to a third when F, I and W take equally long.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int) -> Schedule:
    """1F1B with I in place of B; rank r holds back r weight gradients and runs them at the end.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    """
    ranks = tuple(tuple(one_f_one_i(r, p - 1 - r, m, held_back=r)) for r in range(p))
    return Schedule("zb_h1", p, m, 1, placement=tuple(range(p)), ranks=ranks)


def one_f_one_i(stage: int, warmup: int, m: int, held_back: int) -> Iterator[Action]:
    """One stage's order: ``warmup`` forwards, then F, I and the W of ``held_back`` I's ago."""
    for i in range(min(warmup, m)):
        yield Action("F", stage, i)
    for i in range(m):
        if warmup + i < m:
            yield Action("F", stage, warmup + i)
        yield Action("I", stage, i)
        if i >= held_back:
            yield Action("W", stage, i - held_back)
    for i in range(max(m - held_back, 0), m):
        yield Action("W", stage, i)


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+I-W)`` for m >= p; in general the term with W is cut short.

    ``(p-1)(F+I) - (min(m,p)-1) W``, for W no longer than F and I (section 2.2 and appendix H).
    """
    F, _, I, W = costs.uniform()
    if W > min(F, I):
        raise ValueError(f"zb_h1's bubble formula needs W <= F and W <= I; got F={F} I={I} W={W}")
    return (p - 1) * (F + I) - (min(m, p) - 1) * W


def peak_activations(p: int, m: int, r: int) -> int:
    """Microbatches kept by rank r, each until its W: ``min(p, m)``, on every rank alike."""
    return min(p, m)
