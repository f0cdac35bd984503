"""Accesses and their conflicts between two barriers.

An interval whose accesses are the same expressions under the same masks as an earlier one that was
found clean is clean too, so that loops pay once. Otherwise one array says which thread wrote each
word: an access by another thread is a conflict. Only then is the slow classification run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Memory
from distlearn.kernels.oracle.races import Interval, Touch
from distlearn.kernels.simt.access import Storage, placed
from distlearn.kernels.simt.numbers import Whole
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym


class Access(NamedTuple):
    """One instruction: op "R", "W" or "A"; ``at`` is the element within the block's array."""

    op: str
    array: Storage | Memory
    at: Whole
    mask: Mask
    line: int
    epoch: int

    def key(self) -> Any:
        """What decides about conflicts, or None if it depends on data."""
        at = self.at if isinstance(self.at, int) else (self.at.vec, self.at.const)
        static = self.mask.static and self.mask.space.lasting and (
            isinstance(self.at, int) or self.at.vec.static)
        return (self.op, self.array.number, at, self.mask, self.epoch) if static else None

    def plain(self, depth: int, steps: tuple[int, ...]) -> Iterator[Access]:
        """What is left of it in one iteration of ``depth`` loops."""
        mask = self.mask.at(steps)
        if mask is not None:
            at = self.at
            if isinstance(at, Sym):
                const, at = at.const, at.vec.at(depth, steps)
                at = at + const if isinstance(at, int) else Sym(at.vec, at.const + const)
            yield self._replace(at=at, mask=mask)

    def together(self) -> Iterator[Access]:
        """Itself."""
        yield self

    def words(self) -> tuple[Array, Array]:
        """The elements of the active threads, and their lanes among all."""
        return placed(self.mask.space, self.at, self.mask), self.mask.lanes

    @property
    def writes(self) -> bool:
        """Whether it is more than a load."""
        return self.op != "R"

    def same_in_all_blocks(self) -> bool:
        """Whether neither the element nor the mask depends on the block."""
        flat: tuple[int, ...] = (1, 1, 1)
        return self.mask.array.shape[:3] == flat and (
            isinstance(self.at, int) or self.at.vec.array.shape[:3] == flat)


class Iterations(NamedTuple):
    """Instructions of all iterations of the innermost ``loops`` of a space, in a step's order."""

    space: Space
    loops: int
    steps: tuple[Any, ...]

    def key(self) -> Any:
        """The keys of its instructions, or None if one of them has none."""
        keys = tuple(item.key() for item in self.steps)
        return None if None in keys else keys

    def together(self) -> Iterator[Access]:
        """Its instructions, each of all iterations."""
        for item in self.steps:
            yield from item.together()

    @property
    def writes(self) -> bool:
        """Whether there is more than loads."""
        return any(item.writes for item in self.steps)

    def plain(self, depth: int, outer: tuple[int, ...]) -> Iterator[Access]:
        """Instructions of one iteration of the loops around, in the order of steps."""
        trips = self.space.trips
        for steps in np.ndindex(*trips[self.loops - 1::-1]):
            here = (*steps[::-1], *outer)
            for item in self.steps:
                yield from item.plain(len(trips), here)


def plain(accesses: list[Any]) -> list[Access]:
    """Instructions as if all loops had run step by step."""
    return [one for item in accesses for one in (
        (item,) if isinstance(item, Access) else item.plain(0, ()))]


def shared_race(space: Space, accesses: list[Any], clean: set[Any], syncwarps: list[Mask]
                ) -> KernelError | None:
    """The conflict of one interval, classified in the first block that has one."""
    if not any(access.writes for access in accesses):
        return None
    keys = (*(access.key() for access in accesses), *syncwarps)
    known = None not in keys and all(mask.static for mask in syncwarps)
    if known and keys in clean:
        return None
    accesses = plain(accesses)
    arrays: dict[int, Storage] = {a.array.number: a.array for a in accesses
                                  if isinstance(a.array, Storage)}
    starts, total = {}, 0
    for number, array in arrays.items():
        starts[number] = total
        total += array.size
    blocks = 1 if all(a.same_in_all_blocks() for a in accesses) else space.blocks
    lanes = [_lanes(space, a, blocks) for a in accesses]
    words = [block * total + starts[a.array.number] + at
             for a, (block, _, at) in zip(accesses, lanes, strict=True)]
    threads = [thread for _, thread, _ in lanes]
    suspects = {int(w) // total for w in conflicts(
        [a.op for a in accesses], words, threads, np.full(blocks * total, -1))}
    for block in sorted(suspects):
        interval = Interval()
        for access, (owners, who, at) in zip(accesses, lanes, strict=True):
            here = owners == block
            for thread, element in zip(who[here].tolist(), at[here].tolist(), strict=True):
                interval.words["shared", access.array.number, element].add(
                    (access.op, thread, access.epoch, access.line))
        error = within_block(space, block, interval, "shared", arrays, syncwarps)
        if error is not None:
            return error
    if known:
        clean.add(keys)
    return None


def within_block(space: Space, block: int, interval: Interval, where: str,
                  arrays: Mapping[int, Storage | Memory], syncwarps: list[Mask]
                  ) -> KernelError | None:
    """The error of the threads of one block that conflict, and of what kinds that is."""
    start = block * space.threads

    def both(a: Touch, b: Touch) -> bool:
        return ordered(syncwarps, (start + a.thread, a.epoch), (start + b.thread, b.epoch))

    kinds, pair = interval.races(where, both)
    if pair is None:
        return None
    a, b, word = pair
    return KernelError(
        "race" if where == "shared" else "global_race", f"threads {a.thread} ({a.op}, line "
        f"{a.line}) and {b.thread} ({b.op}, line {b.line}) of block {space.numbers[block]} touch "
        f"{arrays[word[1]].element(word[2])} with no barrier between", line=max(a.line, b.line),
        block=int(space.numbers[block]), thread=a.thread, race_kinds=kinds)


def ordered(syncwarps: list[Mask], a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two (lane, epoch) of one warp took part in a syncwarp that lies between."""
    (one, first), (two, second) = sorted((a, b), key=itemgetter(1))
    return any(mask.flat[one] and mask.flat[two] for mask in syncwarps[first:second])


def _lanes(space: Space, access: Access, blocks: int) -> tuple[Array, Array, Array]:
    """Block, thread and element of every active lane; of one block where all are alike."""
    if blocks == 1:
        shape = (1, 1, 1, *space.shape[3:])
        active = np.flatnonzero(np.broadcast_to(access.mask.array, shape))
        at = access.at if isinstance(access.at, int) else access.at.array
        return np.zeros_like(active), active, np.broadcast_to(at, shape).ravel()[active]
    index = access.mask.index
    return index // space.threads, index % space.threads, placed(space, access.at, access.mask)


def conflicts(ops: list[str], words: list[Array], threads: list[Array], writer: Array) -> Array:
    """Words that two threads touch, one of them writing; ``writer`` is scratch filled with -1."""
    bad = []
    for op, word, thread in zip(ops, words, threads, strict=True):
        if op == "W":
            old = writer[word]
            bad.append(word[(old >= 0) & (old != thread)])
            writer[word] = thread
            bad.append(word[writer[word] != thread])
    if "A" in ops:
        adder, several = np.full_like(writer, -1), np.zeros(writer.shape, bool)
        for op, word, thread in zip(ops, words, threads, strict=True):
            if op == "A":
                old = adder[word]
                several[word[(old >= 0) & (old != thread)]] = True
                adder[word] = thread
                several[word[adder[word] != thread]] = True
        for op, word, thread in zip(ops, words, threads, strict=True):
            if op != "A":
                bad.append(word[(adder[word] >= 0) & ((adder[word] != thread) | several[word])])
    for op, word, thread in zip(ops, words, threads, strict=True):
        if op != "W":
            old = writer[word]
            bad.append(word[(old >= 0) & (old != thread)])
    return np.concatenate(bad) if bad else np.empty(0, np.int64)
