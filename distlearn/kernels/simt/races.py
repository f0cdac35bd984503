"""Conflicting accesses between two barriers, and between blocks.

An interval whose accesses are the same expressions under the same masks as an earlier one that was
found clean is clean too, so that loops pay once. Otherwise one array says which thread wrote each
word: an access by another thread is a conflict. Only then is the slow classification run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Memory
from distlearn.kernels.oracle.races import Interval, Touch
from distlearn.kernels.simt.access import Storage, placed
from distlearn.kernels.simt.numbers import Whole
from distlearn.kernels.simt.space import Array, Mask, Space


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
        static = self.mask.static and (isinstance(self.at, int) or self.at.vec.static)
        return (self.op, self.array.number, at, self.mask, self.epoch) if static else None

    def same_in_all_blocks(self) -> bool:
        """Whether neither the element nor the mask depends on the block."""
        flat: tuple[int, ...] = (1, 1, 1)
        return self.mask.array.shape[:3] == flat and (
            isinstance(self.at, int) or self.at.vec.array.shape[:3] == flat)


def shared_race(space: Space, accesses: list[Access], clean: set[Any]) -> KernelError | None:
    """The conflict of one interval, classified in the first block that has one."""
    if all(access.op == "R" for access in accesses):
        return None
    keys = tuple(access.key() for access in accesses)
    known = None not in keys
    if known and keys in clean:
        return None
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
    if any(a.epoch for a in accesses):
        suspects = set(range(blocks))
    else:
        suspects = {int(w) // total for w in conflicts(
            [a.op for a in accesses], words, threads, np.full(blocks * total, -1))}
    for block in sorted(suspects):
        interval = Interval()
        for access, (owners, who, at) in zip(accesses, lanes, strict=True):
            here = owners == block
            for thread, element in zip(who[here].tolist(), at[here].tolist(), strict=True):
                interval.add(("shared", access.array.number, element),
                             Touch(access.op, thread, access.epoch, access.line))
        kinds, pairs = interval.races("shared")
        if kinds:
            a, b, word = min(pairs)
            return KernelError(
                "race", f"threads {a.thread} ({a.op}, line {a.line}) and {b.thread} ({b.op}, line "
                f"{b.line}) touch element {word[2]} of one shared array with no barrier between",
                line=max(a.line, b.line), block=block, thread=a.thread, race_kinds=kinds)
    if known:
        clean.add(keys)
    return None


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


class GlobalRaces:
    """Who wrote each element of global memory, over all blocks of a launch."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.blocks: dict[Memory, tuple[Array, Array]] = {}
        self.reads: dict[Any, tuple[Memory, Array, Array, int]] = {}
        self.between: KernelError | None = None

    def interval(self, space: Space, accesses: list[Access], numbers: Array) -> KernelError | None:
        """Check one interval; ``numbers`` are the blocks' numbers in the grid."""
        written = {a.array for a in accesses if a.op != "R"}
        found = None
        for memory in sorted(written, key=lambda m: m.number):
            mine = [a for a in accesses if a.array is memory]
            lanes = [(placed(space, a.at, a.mask), numbers[a.mask.index // space.threads]
                      * self.threads + a.mask.index % space.threads) for a in mine]
            assert isinstance(memory, Memory)
            ops = [a.op for a in mine]
            bad = conflicts(ops, [w for w, _ in lanes], [t for _, t in lanes],
                            np.full(memory.flat.size, -1))
            found = found or self._explain(bad, mine, lanes)
            for op, (word, thread) in zip(ops, lanes, strict=True):
                if op != "R":
                    self._own(memory, op, word, thread // self.threads, mine[0].line)
        for access in accesses:
            if access.op == "R":
                self._remember(space, access, numbers)
        return found

    def _explain(self, bad: Array, accesses: list[Access],
                 lanes: list[tuple[Array, Array]]) -> KernelError | None:
        """The error if two threads of one block conflict; between blocks it waits for the end."""
        for word in np.unique(bad).tolist():
            touches = [(access, int(t)) for access, (w, ts) in zip(accesses, lanes, strict=True)
                       for t in ts[w == word]]
            for n, (a, one) in enumerate(touches):
                for b, two in touches[n + 1:]:
                    if one == two or a.op == b.op == "R" or a.op == b.op == "A":
                        continue
                    if one // 32 == two // 32 and a.epoch != b.epoch:
                        continue
                    kind = "RW" if "R" in (a.op, b.op) else "WW"
                    block, other = one // self.threads, two // self.threads
                    error = KernelError(
                        "global_race", f"thread {one % self.threads} of block {block} ({a.op}, line"
                        f" {a.line}) and thread {two % self.threads} of block {other} ({b.op}, line"
                        f" {b.line}) touch element {word} of one array", line=max(a.line, b.line),
                        block=min(block, other), race_kinds={kind: "cross_warp"})
                    if block == other:
                        return error
                    self.between = self.between or error
        return None

    def _own(self, memory: Memory, op: str, word: Array, block: Array, line: int) -> None:
        """Note which blocks wrote; two plain writers, or a writer and an atomic, are a race."""
        if memory not in self.blocks:
            size = memory.flat.size
            self.blocks[memory] = np.full(size, -1), np.full(size, -1)
        writer, adder = self.blocks[memory]
        clash = (writer[word] >= 0) & (writer[word] != block)
        if op == "W":
            clash |= ((adder[word] >= 0) & (adder[word] != block)) | (adder[word] == -2)
            writer[word] = block
        else:
            old = adder[word]
            adder[word] = block
            many = ((old != -1) & (old != block)) | (adder[word] != block)
            adder[word[many]] = -2
        if clash.any() and self.between is None:
            self.between = _between(int(word[clash][0]), "WW", line, int(block[clash][0]))

    def _remember(self, space: Space, access: Access, numbers: Array) -> None:
        key = access.key()
        key = (key, int(numbers[0])) if key is not None else len(self.reads)
        if key not in self.reads:
            memory = access.array
            assert isinstance(memory, Memory)
            self.reads[key] = (memory, placed(space, access.at, access.mask),
                               numbers[access.mask.index // space.threads], access.line)

    def finish(self) -> None:
        """Raise what blocks do to each other.

        Raises
        ------
        KernelError
            "global_race".
        """
        for memory, word, block, line in self.reads.values():
            if memory in self.blocks and self.between is None:
                writer, adder = self.blocks[memory]
                clash = ((writer[word] >= 0) & (writer[word] != block)) | (
                    (adder[word] != -1) & (adder[word] != block))
                if clash.any():
                    self.between = _between(int(word[clash][0]), "RW", line, int(block[clash][0]))
        if self.between is not None:
            raise self.between


def _between(word: int, kind: str, line: int, block: int) -> KernelError:
    return KernelError("global_race", f"block {block} and another touch element {word} of one "
                       "array, and one of them writes", line=line, block=block,
                       race_kinds={kind: "cross_warp"})
