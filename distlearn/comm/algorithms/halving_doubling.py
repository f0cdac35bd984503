"""Recursive halving and doubling: partners at distance 1, 2, 4, ... exchange; log2 p steps.

Halving-doubling sends as few bytes as the ring in fewer steps (Rabenseifner 2004; Thakur,
Rabenseifner and Gropp 2005, section 4.5). Recursive doubling exchanges whole buffers: more bytes,
fewest steps, best for small messages.

If p is not a power of two, q is the largest one below it: the first p - q odd positions fold, that
is, each hands its data to its left neighbour, sits out, and gets the result at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from distlearn.comm.plans import Chunks, Message, Steps, union


def largest_power_of_two(p: int) -> int:
    """The largest power of two that is not above p: the ranks that exchange."""
    return 1 << (p.bit_length() - 1)


def cores(p: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Positions that take part in the exchange, and the folded pairs (who sits out, its partner).

    Examples
    --------
    >>> cores(6)
    ([0, 2, 4, 5], [(1, 0), (3, 2)])
    """
    extra = p - largest_power_of_two(p)
    return [*range(0, 2 * extra, 2), *range(2 * extra, p)], [(i + 1, i)
                                                             for i in range(0, 2 * extra, 2)]


def _distances(q: int) -> list[int]:
    """1, 2, 4, ... q / 2."""
    return [1 << k for k in range(q.bit_length() - 1)]


def _halving(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Split the range in two, give the partner its half, go on with one's own: q/2, ..., 2, 1."""
    return tuple(
        tuple(Message(ranks[j], ranks[j ^ d], _aligned(blocks, j ^ d, d), True)
              for j in range(len(ranks)))
        for d in reversed(_distances(len(ranks)))
    )


def _doubling(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Swap all one has with the partner, so that it doubles: 1, 2, ..., q/2."""
    return tuple(
        tuple(Message(ranks[j], ranks[j ^ d], _aligned(blocks, j, d), False)
              for j in range(len(ranks)))
        for d in _distances(len(ranks))
    )


def _aligned(blocks: Sequence[Chunks], j: int, length: int) -> Chunks:
    start = j // length * length
    return union(blocks[start:start + length])


def reduce_scatter(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Recursive halving; ``ranks[i]`` ends with the sum of ``blocks[i]``."""
    core, folded = cores(len(ranks))
    everything = union(blocks)
    fold = tuple(Message(ranks[i], ranks[j], everything, True) for i, j in folded)
    hand_back = tuple(Message(ranks[j], ranks[i], blocks[i], False) for i, j in folded)
    return _nonempty(fold, *_halving([ranks[j] for j in core], _with_folded(core, folded, blocks)),
                     hand_back)


def all_gather(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Recursive doubling of what each rank holds, starting from ``blocks[i]`` at ``ranks[i]``."""
    core, folded = cores(len(ranks))
    hand_in = tuple(Message(ranks[i], ranks[j], blocks[i], False) for i, j in folded)
    unfold = tuple(Message(ranks[j], ranks[i], union([*blocks[:i], *blocks[i + 1:]]), False)
                   for i, j in folded)
    return _nonempty(hand_in,
                     *_doubling([ranks[j] for j in core], _with_folded(core, folded, blocks)),
                     unfold)


def _with_folded(core: list[int], folded: list[tuple[int, int]],
                 blocks: Sequence[Chunks]) -> list[Chunks]:
    """The blocks a core rank stands for: its own and that of the rank folded into it."""
    guest = {j: i for i, j in folded}
    return [union([blocks[j], blocks[guest[j]]]) if j in guest else blocks[j] for j in core]


def all_reduce(ranks: Sequence[int], blocks: Sequence[Chunks]) -> Steps:
    """Recursive halving, then doubling, over `largest_power_of_two` blocks (Rabenseifner)."""
    core, folded = cores(len(ranks))
    everything, members = union(blocks), [ranks[j] for j in core]
    return _nonempty(
        tuple(Message(ranks[i], ranks[j], everything, True) for i, j in folded),
        *_halving(members, blocks),
        *_doubling(members, blocks),
        tuple(Message(ranks[j], ranks[i], everything, False) for i, j in folded),
    )


def recursive_doubling_all_reduce(ranks: Sequence[int], chunks: Chunks) -> Steps:
    """Partners exchange their whole partial sums; after step k each sums 2^k ranks."""
    core, folded = cores(len(ranks))
    members = [ranks[j] for j in core]
    return _nonempty(
        tuple(Message(ranks[i], ranks[j], chunks, True) for i, j in folded),
        *(tuple(Message(members[j], members[j ^ d], chunks, True) for j in range(len(members)))
          for d in _distances(len(members))),
        tuple(Message(ranks[j], ranks[i], chunks, False) for i, j in folded),
    )


def _nonempty(*steps: tuple[Message, ...]) -> Steps:
    return tuple(step for step in steps if step)
