"""AMDP: several asynchronous pipelines, each with at most two minibatches in its first stage.

Wu, Chen and Yu, "AMDP: Asynchronous Multi-Directional Pipeline Parallelism for Large-Scale Models
Training", ICML 2026, arXiv:2605.29664. Few minibatches under way means few updates between a
minibatch's forward and backward; the other pipelines fill the time, as in Chimera, and there is no
flush.

What this is built from: the paper's abstract, and the orders that the authors' public code
(Vinsmoke86/AMDP, async_schedules.py) lists for 4 ranks with two directions. The paper's text and
figures were not at hand. At 4 ranks the order here is the authors', but for the outer ranks: there
they do both forwards of the next round before the last backward of this one. That takes as long for
F = B and k F less for B = 2F over k + 1 rounds, but three minibatches are under way for a moment,
against the abstract's two. Their list for 8 ranks and four directions has not been compared, and
more ranks are this file's own continuation (p/2 directions).
"""

from __future__ import annotations

from dataclasses import replace

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules import chimera


def order(p: int, m: int, batches: int = 3) -> Schedule:
    """Chimera's grid with p/2 directions, two minibatches each; one joint update per m minibatches.

    Every action reads the newest version its rank has, so between forward and backward of a
    minibatch there is at most one update.

    Parameters
    ----------
    p : int
        Pipeline ranks, divisible by 4.
    m : int
        Minibatches per update, a multiple of p.
    batches : int
        Updates run, >= 1.
    """
    if p % 4 or m % p or batches < 1:
        raise ValueError("amdp needs p divisible by 4, m divisible by p and batches >= 1; "
                         f"got p={p} m={m} batches={batches}")
    grid = chimera.order(p, m * batches, directions=p // 2)
    versions, steps = [], []
    for row in grid.ranks:
        left, done = [m] * batches, list[int]()
        read = []
        for k, action in enumerate(row):
            read.append(len(done))
            if action.kind == "B":
                left[action.microbatch // m] -= 1
                while len(done) < batches and left[len(done)] == 0:
                    done.append(k + 1)
        versions.append(tuple(read))
        steps.append(tuple(done))
    return replace(grid, name="amdp", batches=batches, versions=tuple(versions), steps=tuple(steps))


def bubble_time(p: int, m: int, costs: Costs, batches: int = 3) -> float:
    """Idle time of a rank, ``2 (B + (m batches / p - 1)(B - F))``, once for all batches; B >= F.

    Chimera's, with p/2 directions: nothing is idle between units if F = B.
    """
    return chimera.bubble_time(p, m * batches, costs, directions=p // 2)


def peak_activations(p: int, m: int, r: int, batches: int = 3) -> int:
    """Stage activations kept by rank r: ``p - 1 + min(r % 4, 3 - r % 4)``, as Chimera."""
    return chimera.peak_activations(p, m * batches, r, directions=p // 2)
