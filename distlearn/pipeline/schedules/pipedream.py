"""PipeDream: 1F1B without the flush. Weights are updated after every backward.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019,
section 3.3 (the note cites the earlier Harlap et al., arXiv:1806.03377). The pipeline never
drains, so the bubble is paid once; the price is that forward and backward of one minibatch must
use the same, by now outdated, weights. Rank r therefore stashes p-r versions of them.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.one_f_one_b import one_f_one_b


def order(p: int, m: int) -> Schedule:
    """The order of 1F1B over m minibatches, each followed by an update; with weight versions.

    F and B of minibatch i on rank r both read version ``max(0, i - (p-1-r))``: the newest one
    that is there when the minibatch enters the stage.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and minibatches (PipeDream does not cut them up); any m >= 1.
    """
    ranks = tuple(tuple(one_f_one_b(r, min(p - 1 - r, m), m)) for r in range(p))
    versions = tuple(tuple(_version(p, action) for action in actions) for actions in ranks)
    return Schedule("pipedream", p, m, 1, placement=tuple(range(p)), ranks=ranks,
                    versions=versions)


def _version(p: int, action: Action) -> int:
    return max(0, action.microbatch - (p - 1 - action.stage))


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, once for the whole run and not once per batch."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int) -> int:
    """Minibatches, and weight versions, that rank r keeps: ``min(p-r, m)``."""
    return min(p - r, m)
