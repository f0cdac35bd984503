"""Seq1F1B: 1F1B whose unit is a slice of a sequence.

Sun et al., "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism for Large Language Model
Training", arXiv:2406.03488, section 3. A causal model can run the first part of a sequence without
the rest, so a pipeline fills q times faster with q slices. Backwards go the other way: a slice's
keys and values get gradients from all later slices.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action, Slice
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int, slices: int = 2) -> Schedule:
    """Rank r warms up with ``p-2-r+slices`` slices, then alternates F and B of slices.

    One slice is 1F1B. With more, all slices of a sequence are forward before its first backward.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    slices : int
        Slices per sequence, >= 1. ``distlearn.pipeline.slicing`` finds their lengths.
    """
    if slices < 1:
        raise ValueError(f"seq1f1b needs slices >= 1; got slices={slices}")
    ranks = tuple(tuple(_rank(p, m, r, slices)) for r in range(p))
    return Schedule("seq1f1b", p, m, 1, placement=tuple(range(p)), ranks=ranks, slices=slices)


def _rank(p: int, m: int, r: int, slices: int) -> Iterator[Action]:
    total = m * slices
    warmup = min(p - 2 - r + slices, total)
    for k in range(warmup):
        yield piece("F", r, k // slices, k % slices, slices)
    for k in range(total):
        if warmup + k < total:
            yield piece("F", r, (warmup + k) // slices, (warmup + k) % slices, slices)
        yield piece("B", r, k // slices, slices - 1 - k % slices, slices)


def piece(kind: str, stage: int, i: int, part: int, slices: int) -> Action:
    """A `Slice`, or a plain `Action` if sequences are whole."""
    return Action(kind, stage, i) if slices == 1 else Slice(kind, stage, i, part)


def bubble_time(p: int, m: int, costs: Costs, slices: int = 2) -> float:
    """Idle time of a rank, ``(p-1)(F+B)`` with F and B of one slice: 1/slices of 1F1B's.

    For slices that take equally long.
    """
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, slices: int = 2) -> int:
    """Slices that rank r keeps: ``min(p - 1 - r + slices, m slices)``."""
    return min(p - 1 - r + slices, m * slices)
