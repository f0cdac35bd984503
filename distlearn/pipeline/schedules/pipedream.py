"""PipeDream: 1F1B without the flush. Weights are updated after every backward.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019,
section 3.3 (the note cites the earlier Harlap et al., arXiv:1806.03377). The pipeline never
drains, so the bubble is paid once; the price is that forward and backward of one minibatch must
use the same, by now outdated, weights. Rank r therefore stashes p-r versions of them.
"""

from __future__ import annotations

from collections.abc import Callable

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.one_f_one_b import one_f_one_b


def order(p: int, m: int, vertical_sync: bool = False) -> Schedule:
    """The order of 1F1B over m minibatches, each followed by an update; with weight versions.

    F and B of minibatch i on rank r both read version ``max(0, i - (p-1-r))``: the newest one
    that is there when the minibatch enters the stage.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and minibatches (PipeDream does not cut them up); any m >= 1.
    vertical_sync : bool
        All ranks read the version that rank 0 reads, ``max(0, i - (p-1))``, so that one minibatch
        sees one model; every rank then keeps p versions.
    """
    def version(r: int, action: Action) -> int:
        return max(0, action.microbatch - (p - 1 - (0 if vertical_sync else r)))

    return without_flush("pipedream", p, m, 1, version)


def without_flush(name: str, p: int, m: int, batch: int,
                  version: Callable[[int, Action], int], batches: int = 1) -> Schedule:
    """1F1B over m microbatches, an update after every ``batch`` backwards, and versions."""
    ranks = tuple(tuple(one_f_one_b(r, min(p - 1 - r, m), m)) for r in range(p))
    versions = tuple(tuple(version(r, a) for a in row) for r, row in enumerate(ranks))
    steps = tuple(
        tuple(k + 1 for k, a in enumerate(row) if a.kind == "B" and (a.microbatch + 1) % batch == 0)
        for row in ranks)
    return Schedule(name, p, m, 1, placement=tuple(range(p)), ranks=ranks,
                    versions=versions, steps=steps, batches=batches)


def bubble_time(p: int, m: int, costs: Costs, vertical_sync: bool = False) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, once for the whole run and not once per batch."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, vertical_sync: bool = False) -> int:
    """Minibatches, and (without vertical sync) weight versions, that rank r keeps: min(p-r, m)."""
    return min(p - r, m)
