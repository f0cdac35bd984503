"""PipeMare: no flush and no stash; live with forward and backward on different weights.

Yang et al., "PipeMare: Asynchronous Pipeline Parallel DNN Training", MLSys 2021. A rank has one
version of its weights, always the newest. A minibatch's backward therefore sees weights that were
updated since its forward; the paper makes up for it with a learning rate that grows with
1 / delay at first (technique 1) and with a correction of the forward's weights (technique 2).
"""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.pipedream import without_flush


def order(p: int, m: int) -> Schedule:
    """PipeDream's order; every action reads the newest version: F ``max(0, i-(p-1-r))``, B ``i``.

    So between forward and backward of a minibatch rank r does ``min(i, p-1-r)`` updates.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and minibatches; any m >= 1.
    """
    def version(r: int, action: Action) -> int:
        i = action.microbatch
        return i if action.kind == "B" else max(0, i - (p - 1 - r))

    return without_flush("pipemare", p, m, 1, version)


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, once for the whole run."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int) -> int:
    """Minibatches that rank r keeps: ``min(p-r, m)``; one weight version."""
    return min(p - r, m)
