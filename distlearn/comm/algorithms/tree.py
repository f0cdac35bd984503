"""Binomial tree: ceil(log2 p) rounds, in which the number of ranks that are done doubles.

Position v receives from v minus its lowest set bit, so each subtree is a run of positions
(as in MPICH; Thakur, Rabenseifner and Gropp 2005, section 4). The root is ``ranks[0]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distlearn.comm.plans import Chunks, Message, Steps, union


def _rounds(p: int) -> list[list[tuple[int, int, int]]]:
    """Rounds from the root outwards: (parent, child, end of the child's subtree)."""
    masks: Iterator[int] = (1 << k for k in reversed(range((p - 1).bit_length())))
    return [
        [(v, v + mask, min(v + 2 * mask, p)) for v in range(0, p - mask, 2 * mask)]
        for mask in masks
    ]


def broadcast(ranks: Sequence[int], chunks: Chunks) -> Steps:
    """Who has the data sends it on, to one more rank a round."""
    return tuple(
        tuple(Message(ranks[parent], ranks[child], chunks, False) for parent, child, _ in step)
        for step in _rounds(len(ranks))
    )


def reduce(ranks: Sequence[int], chunks: Chunks) -> Steps:
    """The broadcast backwards: partial sums meet in pairs."""
    return tuple(
        tuple(Message(ranks[child], ranks[parent], chunks, True) for parent, child, _ in step)
        for step in reversed(_rounds(len(ranks)))
    )


def scatter(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """A child gets the blocks of its whole subtree and passes on what is not its own."""
    return tuple(
        tuple(Message(ranks[parent], ranks[child], union(blocks[child:end]), False)
              for parent, child, end in step)
        for step in _rounds(len(ranks))
    )


def gather(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """The scatter backwards: a child hands in the blocks of its whole subtree."""
    return tuple(
        tuple(Message(ranks[child], ranks[parent], union(blocks[child:end]), False)
              for parent, child, end in step)
        for step in reversed(_rounds(len(ranks)))
    )


def all_reduce(ranks: Sequence[int], chunks: Chunks) -> Steps:
    """Reduce to ``ranks[0]``, then broadcast."""
    return reduce(ranks, chunks) + broadcast(ranks, chunks)
