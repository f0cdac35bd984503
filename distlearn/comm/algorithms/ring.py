"""Ring: every rank sends to its right neighbour only.

Bandwidth-optimal: each rank sends (p - 1) / p of the data per phase, in p - 1 steps
(Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms", section 4).
"""

from __future__ import annotations

from collections.abc import Sequence

from distlearn.comm.plans import Chunks, Message, Steps


def reduce_scatter(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Each block travels once around, growing by one contribution a step; ends at its owner.

    In step s (0-based) rank i sends block i - 1 - s: what it received in step s - 1, its own part
    added. After p - 1 steps ``ranks[i]`` holds the sum of ``blocks[i]``. The order of summation of
    block i is x[i+1] + x[i+2] + ... + x[i], from the left.
    """
    p = len(ranks)
    return tuple(
        tuple(Message(ranks[i], ranks[(i + 1) % p], blocks[(i - 1 - s) % p], True)
              for i in range(p))
        for s in range(p - 1)
    )


def all_gather(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Each block travels once around, and everyone keeps a copy: in step s rank i sends i - s."""
    p = len(ranks)
    return tuple(
        tuple(Message(ranks[i], ranks[(i + 1) % p], blocks[(i - s) % p], False)
              for i in range(p))
        for s in range(p - 1)
    )


def all_reduce(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Reduce-scatter, then all-gather: 2 (p - 1) steps, 2 (p - 1) / p of the data sent."""
    return reduce_scatter(ranks, blocks) + all_gather(ranks, blocks)
