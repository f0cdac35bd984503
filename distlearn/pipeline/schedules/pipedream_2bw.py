"""PipeDream-2BW: two versions of the weights, whatever the depth.

Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section 3.1.
Gradients of m microbatches are summed before an update, and each microbatch uses the version
before the newest: two buffers are enough, and every update is late by exactly one step.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.pipedream import without_flush


def order(p: int, m: int, batches: int = 3) -> Schedule:
    """1F1B over ``m * batches`` microbatches without a flush, an update after every m.

    Microbatch k (they are numbered on across batches) reads version ``max(k // m - 1, 0)`` in
    forward and backward: ``W(t+1) = W(t) - lr * gradient(W(t-1))``.

    Parameters
    ----------
    p : int
        Pipeline ranks.
    m : int
        Microbatches per batch, m >= p - 1: with fewer, version k // m - 1 is not there yet when
        microbatch k starts on rank 0. (The paper asks m >= p.)
    batches : int
        Batches run, >= 1.
    """
    if m < p - 1 or batches < 1:
        raise ValueError("pipedream_2bw needs m >= p - 1 microbatches per batch and batches >= 1; "
                         f"got p={p} m={m} batches={batches}")
    return without_flush("pipedream_2bw", p, m * batches, m,
                         lambda r, action: max(action.microbatch // m - 1, 0), batches)


def bubble_time(p: int, m: int, costs: Costs, batches: int = 3) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, once for all batches."""
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, batches: int = 3) -> int:
    """Microbatches that rank r keeps: ``min(p-r, m batches)``; two weight versions."""
    return min(p - r, m * batches)
