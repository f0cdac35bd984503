"""Direct: each message goes straight from its source to its destination."""

from __future__ import annotations

from collections.abc import Sequence

from distlearn.comm.plans import Chunks, Message, Steps


def gather(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Everyone sends to ``ranks[0]``, one after the other: the root can take one at a time."""
    return tuple((Message(ranks[i], ranks[0], blocks[i], False),) for i in range(1, len(ranks)))


def scatter(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """``ranks[0]`` sends to everyone, one after the other."""
    return tuple((Message(ranks[0], ranks[i], blocks[i], False),) for i in range(1, len(ranks)))


def all_to_all(p: int) -> Steps:
    """Pairwise exchange: in step s rank i sends to i + s. Chunk i p + j goes from i to j."""
    return tuple(
        tuple(Message(i, (i + s) % p, (i * p + (i + s) % p,), False) for i in range(p))
        for s in range(1, p)
    )


def barrier(p: int) -> Steps:
    """Dissemination: in step k rank i tells i + 2^k that it, and all it heard of, are there.

    After ceil(log2 p) steps every rank has heard of every other (Hensgen, Finkel and Manber 1988).
    """
    return tuple(
        tuple(Message(i, (i + (1 << k)) % p, (), False) for i in range(p))
        for k in range((p - 1).bit_length())
    )
