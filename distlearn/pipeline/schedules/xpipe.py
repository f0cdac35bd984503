"""XPipe: no flush and no stash; predict the weights that the update will meet.

Guan et al., "XPipe: Efficient Pipeline Model Parallelism for Multi-GPU DNN Training",
arXiv:1911.04610, section 3. The forward computes with ``W - lr * s * (Adam's direction)``, a
prediction of the weights s updates later: those that will be current when the minibatch's gradient
is applied. Forward and backward then agree up to the prediction's error.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.pipedream import without_flush


def order(p: int, m: int, batches: int = 3) -> Schedule:
    """1F1B over ``m * batches`` microbatches without a flush, an update after every m.

    All microbatches of batch b read version b, the one their update is applied to, in forward and
    backward. Where version b is not there yet it is predicted from the newest; all microbatches of
    a batch on a rank use the prediction made for the first of them (the "bellwether").

    Parameters
    ----------
    p : int
        Pipeline ranks.
    m : int
        Microbatches per batch; any m >= 1.
    batches : int
        Batches run, >= 1.
    """
    if batches < 1:
        raise ValueError(f"xpipe needs batches >= 1; got batches={batches}")

    def version(r: int, action: Action) -> int:
        return action.microbatch // m

    return without_flush("xpipe", p, m * batches, m, version, batches)


def version_difference(p: int, m: int, r: int, batch: int) -> int:
    """How many updates ahead rank r predicts for a batch: the updates still out at its first F.

    That F is microbatch ``batch * m``, and ``p-1-r`` backwards are still to come before it.
    """
    first = batch * m
    done = max(0, first - (p - 1 - r)) // m
    return batch - done


def bubble_time(p: int, m: int, costs: Costs, batches: int = 3) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, once for all batches."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, batches: int = 3) -> int:
    """Microbatches that rank r keeps: ``min(p-r, m batches)``."""
    return min(p - r, m * batches)
