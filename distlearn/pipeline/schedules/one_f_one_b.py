"""1F1B: as soon as the first backward can run, alternate one forward and one backward.

Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section 3.1, where
it is called PipeDream-Flush; also DAPPLE's policy A, and the default of Megatron-LM. The bubble is
GPipe's; the memory is bounded by the depth of the pipeline instead of the number of microbatches.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action, Pair
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int, overlap: bool = False) -> Schedule:
    """Rank r warms up with p-1-r forwards, then runs pairs F, B, then drains the backwards.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    overlap : bool
        Run each F, B of the middle phase as one merged pair, so that the all-to-all of one can
        hide behind the other's computation. The two parts of a pair must not wait for each other,
        so each hop takes one pair more and the warm-up is 2(p-1-r) + 1.
    """
    if overlap:
        ranks = tuple(tuple(overlapped(r, min(2 * (p - 1 - r) + 1, m), m)) for r in range(p))
    else:
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


def overlapped(stage: int, warmup: int, m: int) -> Iterator[Action]:
    """The same with each F, B merged into one action."""
    for i in range(warmup):
        yield Action("F", stage, i)
    for i in range(m):
        backward = Action("B", stage, i)
        if warmup + i < m:
            yield Pair(Action("F", stage, warmup + i), backward)
        else:
            yield backward


def bubble_time(p: int, m: int, costs: Costs, overlap: bool = False) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``: as GPipe, whatever m is.

    With ``overlap`` for pairs that take F + B, where merging gains nothing.
    """
    F, B, _, _ = costs.uniform()
    if overlap and costs.pair is not None and costs.pair != F + B:
        raise ValueError(f"1f1b's bubble formula needs pair = F + B; got pair={costs.pair}")
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, overlap: bool = False) -> int:
    """Microbatches that rank r keeps at the fullest moment: ``min(p-r, m)``; overlapped, twice."""
    return min(2 * (p - r) if overlap else p - r, m)
