"""TeraPipe: GPipe whose unit is a slice of a sequence.

Li et al., "TeraPipe: Token-Level Pipeline Parallelism for Training Large-Scale Language Models",
ICML 2021, section 3. Slices of one sequence follow each other through the stages. Later slices
attend to more, so slices of equal time are unequal in length: section 3.3's dynamic programme is
`distlearn.pipeline.slicing.best_slices`.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.seq1f1b import piece


def order(p: int, m: int, slices: int = 2) -> Schedule:
    """All slices of all microbatches forward, then all backward, last slice first.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    slices : int
        Slices per sequence, >= 1.
    """
    if slices < 1:
        raise ValueError(f"terapipe needs slices >= 1; got slices={slices}")
    ranks = tuple(
        tuple(piece("F", r, i, part, slices) for i in range(m) for part in range(slices))
        + tuple(piece("B", r, i, part, slices) for i in range(m)
                for part in reversed(range(slices)))
        for r in range(p)
    )
    return Schedule("terapipe", p, m, 1, placement=tuple(range(p)), ranks=ranks, slices=slices)


def bubble_time(p: int, m: int, costs: Costs, slices: int = 2) -> float:
    """Idle time of a rank, ``(p-1)(F+B)`` with F and B of one slice, for equal slices."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, slices: int = 2) -> int:
    """Slices that rank r keeps: ``m * slices``, all of them."""
    return m * slices
