"""1F1B: as soon as the first backward can run, alternate one forward and one backward.

Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section 3.1, where
it is called PipeDream-Flush; also DAPPLE's policy A, and the default of Megatron-LM. The bubble is
GPipe's; the memory is bounded by the depth of the pipeline instead of the number of microbatches.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int) -> Schedule:
    """Rank r warms up with p-1-r forwards, then runs pairs F, B, then drains the backwards.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    """
    ranks = tuple(tuple(one_f_one_b(r, min(p - 1 - r, m), m)) for r in range(p))
    return Schedule("1f1b", p, m, 1, placement=tuple(range(p)), ranks=ranks)


def one_f_one_b(stage: int, warmup: int, m: int) -> Iterator[Action]:
    """One stage's order: ``warmup`` forwards, m - warmup pairs, ``warmup`` backwards."""
    for i in range(warmup):
        yield Action("F", stage, i)
    for i in range(m):
        if warmup + i < m:
            yield Action("F", stage, warmup + i)
        yield Action("B", stage, i)


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``: as GPipe, whatever m is."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int) -> int:
    """Microbatches that rank r keeps at the fullest moment: ``min(p-r, m)``."""
    return min(p - r, m)
