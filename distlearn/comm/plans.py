"""A collective as data: who sends which chunks to whom, step by step.

An algorithm is a pure function that returns a `Plan`. One executor performs plans for all virtual
ranks at once (`distlearn.comm.bulk`), another performs one rank's part of them between processes
(`distlearn.comm.stepwise`), and a chapter draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple


class Message(NamedTuple):
    """One message of a step.

    Attributes
    ----------
    source, dest : int
        Ranks within the group.
    chunks : tuple of int
        Chunk numbers that travel.
    reduce : bool
        Whether the receiver combines them with its own partial result (else it stores them).
    """

    source: int
    dest: int
    chunks: tuple[int, ...]
    reduce: bool


Chunks = tuple[int, ...]
Step = tuple[Message, ...]
Steps = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of one collective for a group of ``size`` ranks.

    All messages of a step travel at once: each carries what its source held before the step.
    Where two partial results meet, that of the lower rank is the left operand; with the order of
    the steps this fixes the order of summation, hence every bit of the result, on every engine.

    Attributes
    ----------
    operation, algorithm : str
        Such as ``"all_reduce"`` and ``"ring"``.
    size : int
        Ranks of the group.
    chunks : int
        Number of chunks that the data is cut into.
    steps : tuple of tuple of Message
    initial, final : tuple of tuple of int
        Chunks that each rank brings, and that its result consists of.

    Examples
    --------
    >>> from distlearn.comm import plan
    >>> print(plan("all_reduce", "ring", size=3))
    all_reduce, ring, 3 ranks, 3 chunks
    step 1: 0 -2+> 1   1 -0+> 2   2 -1+> 0
    step 2: 0 -1+> 1   1 -2+> 2   2 -0+> 0
    step 3: 0 -0-> 1   1 -1-> 2   2 -2-> 0
    step 4: 0 -2-> 1   1 -0-> 2   2 -1-> 0
    """

    operation: str
    algorithm: str
    size: int
    chunks: int
    steps: Steps = field(repr=False)
    initial: tuple[Chunks, ...] = field(repr=False)
    final: tuple[Chunks, ...] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"{self.operation}, {self.algorithm}, {self.size} ranks, {self.chunks} chunks"]
        for number, step in enumerate(self.steps, start=1):
            arrows = (f"{m.source} -{','.join(map(str, m.chunks))}{'+' if m.reduce else '-'}> "
                      f"{m.dest}" for m in step)
            lines.append(f"step {number}: " + "   ".join(arrows))
        return "\n".join(lines)


def beside(*parts: Steps) -> Steps:
    """Do several step lists at the same time: step k of each becomes one step.

    Examples
    --------
    >>> a, b = Message(0, 1, (0,), True), Message(2, 3, (0,), True)
    >>> beside(((a,),), ((b,), (a,))) == ((a, b), (a,))
    True
    """
    return tuple(sum(steps, ()) for steps in zip_longest(*parts, fillvalue=()))


def union(blocks: Sequence[Chunks]) -> Chunks:
    """All chunks of several blocks, in ascending order."""
    return tuple(sorted(chunk for block in blocks for chunk in block))


@lru_cache(maxsize=1024)
def even_split(total: int, parts: int) -> tuple[int, ...]:
    """Cut ``total`` items as ``numpy.array_split`` does: the first ``total % parts`` get one more.

    Examples
    --------
    >>> even_split(10, 4)
    (3, 3, 2, 2)
    """
    base, more = divmod(total, parts)
    return (base + 1,) * more + (base,) * (parts - more)
