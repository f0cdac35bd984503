"""Conflicting accesses to global memory, within a block and between blocks."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Memory
from distlearn.kernels.oracle.races import Interval
from distlearn.kernels.simt.races import (
    Access,
    Iterations,
    conflicts,
    plain,
    within_block,
)
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array

LINES = 1 << 10  # of a kernel that access global memory
NOBODY = -1


class Owners:
    """Which thread last wrote, added to or read each element of a memory, and on which line.

    One code an element and kind of access, made when the first such access comes:
    ``thread of the grid * LINES + number of the line``, `NOBODY`, or ``-2 - code`` of the first if
    several blocks did.
    """

    def __init__(self, size: int, blocks: int, threads: int) -> None:
        self.size = size
        self.kind = np.int32 if blocks * threads * LINES < 1 << 31 else np.int64
        self.block = threads * LINES  # codes of the same block have the same quotient by it
        self.codes: dict[str, Array] = {}
        self.scratch = np.full(size, -1, np.int32)

    def note(self, op: str, word: Array, code: Array) -> None:
        """Threads access these elements; of plain writes the last is kept, as two are an error."""
        if op not in self.codes:
            self.codes[op] = np.full(self.size, NOBODY, self.kind)
        codes = self.codes[op]
        old = codes[word]
        codes[word] = code
        if op != "W":
            block = code // self.block
            many = (old < NOBODY) | ((old >= 0) & (old // self.block != block)) | (
                codes[word] // self.block != block)
            first = np.where(old < NOBODY, old, -2 - np.where(old >= 0, old, code))
            codes[word[many]] = first[many]


def _between(space: Space, memory: Memory, word: int, touches: list[tuple[int, int, int]],
             accesses: list[Access]) -> KernelError | None:
    """The error of the first two lanes of different blocks that conflict on one word."""
    if not {accesses[number].op for _, _, number in touches} - {"R"}:
        return None
    for (_, one, first), (_, two, second) in combinations(touches, 2):
        a, b = accesses[first], accesses[second]
        at, to = space.place(one), space.place(two)
        if at["block"] == to["block"] or a.op == b.op == "R" or a.op == b.op == "A":
            continue
        kind = "RW" if "R" in (a.op, b.op) else "WW"
        return KernelError(
            "global_race", f"thread {at['thread']} of block {at['block']} ({a.op}, line {a.line}) "
            f"and thread {to['thread']} of block {to['block']} ({b.op}, line {b.line}) touch "
            f"{memory.element(word)}", line=max(a.line, b.line),
            block=min(at["block"], to["block"]), race_kinds={kind: "cross_warp"})
    return None


class GlobalRaces:
    """Who wrote each element of global memory, over all blocks of a launch."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks, self.threads = blocks, threads
        self.lines: dict[int, int] = {}  # their numbers
        self.owners: dict[Memory, Owners] = {}
        self.seen: set[Any] = set()
        self.between: KernelError | None = None

    def interval(self, space: Space, accesses: list[Any], syncwarps: list[Mask]
                 ) -> KernelError | None:
        """Check the accesses of one interval of the blocks of a space."""
        if self._stored_at_once(space, accesses):
            return None
        accesses = plain(accesses)
        written = {a.array for a in accesses if a.op != "R"}
        blocks: defaultdict[int, Interval] = defaultdict(Interval)
        for memory in sorted(written, key=lambda m: m.number):
            mine = [a for a in accesses if a.array is memory]
            lanes = [a.words() for a in mine]
            assert isinstance(memory, Memory)
            owners, ops = self._of(memory), [a.op for a in mine]
            bad = conflicts(ops, [w for w, _ in lanes], [t for _, t in lanes], owners.scratch)
            for op, (word, _) in zip(ops, lanes, strict=True):
                if op == "W":
                    owners.scratch[word] = -1
            if bad.size:
                self._explain(space, memory, bad, mine, lanes, blocks)
            for access, (word, lane) in zip(mine, lanes, strict=True):
                if access.op != "R":
                    self._written(memory, access, word, self._code(space, access, lane))
        for access in accesses:
            if access.op == "R":
                self._read(space, access)
        memories = {memory.number: memory for memory in written if isinstance(memory, Memory)}
        errors = (within_block(space, block, blocks[block], "global", memories, syncwarps)
                  for block in sorted(blocks))
        return next((error for error in errors if error is not None), None)

    def _stored_at_once(self, space: Space, accesses: list[Any]) -> bool:
        """Note stores of all iterations of loops; False if there is more, or a conflict."""
        stores = [one for item in accesses for one in item.together()]
        if not any(isinstance(item, Iterations) for item in accesses) or any(
                one.op != "W" for one in stores):
            return False
        noted: list[tuple[Memory, Array, Array]] = []
        for memory in {one.array: None for one in stores}:
            assert isinstance(memory, Memory)
            mine = [one for one in stores if one.array is memory]
            lanes = [one.words() for one in mine]
            owners = self._of(memory)
            bad = conflicts(["W"] * len(mine), [word for word, _ in lanes],
                            [lane for _, lane in lanes], owners.scratch)
            for word, _ in lanes:
                owners.scratch[word] = -1
            if bad.size:
                return False
            for one, (word, lane) in zip(mine, lanes, strict=True):
                code = self._code(space, one, lane)
                if any(self._clash(memory, "W" + other, code, owners.codes[other][word], word)
                       for other in "WA" if other in owners.codes):
                    return False
                noted.append((memory, word, code))
        for memory, word, code in noted:
            self._of(memory).note("W", word, code)
        return True

    def _of(self, memory: Memory) -> Owners:
        if memory not in self.owners:
            self.owners[memory] = Owners(memory.flat.size, self.blocks, self.threads)
        return self.owners[memory]

    def _code(self, space: Space, access: Access, lane: Array) -> Array:
        """What `Owners` keeps of these lanes' access."""
        line = self.lines.setdefault(access.line, min(len(self.lines), LINES - 1))
        thread = space.numbers[lane // space.threads] * space.threads + lane % space.threads
        return np.asarray(thread * LINES + line)

    def _clash(self, memory: Memory, ops: str, one: Array, two: Array, words: Array | None
               ) -> KernelError | None:
        """The error of the first element that by these codes different blocks access."""
        size = self._of(memory).block
        bad = (one != NOBODY) & (two != NOBODY) & (
            (one < 0) | (two < 0) | (one // size != two // size))
        if not bad.any():
            return None
        at = int(np.flatnonzero(bad)[0])
        names = {number: line for line, number in self.lines.items()}
        who, blocks, lines = [], [], []
        for op, code in zip(ops, (int(one[at]), int(two[at])), strict=True):
            several, code = code < 0, -2 - code if code < 0 else code
            thread, line = code // LINES, names[code % LINES]
            blocks.append(thread // self.threads)
            lines.append(line)
            who.append(f"thread {thread % self.threads} of block {blocks[-1]}"
                       f"{' and one of another block' if several else ''} ({op}, line {line})")
        word = at if words is None else int(words[at])
        return KernelError(
            "global_race", f"{who[0]} and {who[1]} touch {memory.element(word)}", line=max(lines),
            block=min(blocks), race_kinds={"RW" if "R" in ops else "WW": "cross_warp"})

    def _explain(self, space: Space, memory: Memory, bad: Array, accesses: list[Access],
                 lanes: list[tuple[Array, Array]], blocks: dict[int, Interval]) -> None:
        """Note what the threads of each block did; what blocks did waits for the end."""
        here = [np.flatnonzero(np.isin(word, bad)) for word, _ in lanes]
        touches = sorted(
            (int(word[n]), int(lane[n]), number)
            for number, ((word, lane), some) in enumerate(zip(lanes, here, strict=True))
            for n in some)
        for word, lane, number in touches:
            op, epoch, line = accesses[number].op, accesses[number].epoch, accesses[number].line
            blocks[lane // space.threads].words["global", memory.number, word].add(
                (op, lane % space.threads, epoch, line))
        for word, of_word in groupby(touches, key=itemgetter(0)):
            if self.between is None:
                # One touch of each kind and block is enough.
                firsts = {(lane // space.threads, accesses[number].op): (word, lane, number)
                          for _, lane, number in reversed([*of_word])}
                by_op = {op: [t for (_, o), t in firsts.items() if o == op][:2] for op in "WAR"}
                self.between = _between(space, memory, word,
                                        [t for ts in by_op.values() for t in ts], accesses)

    def _written(self, memory: Memory, access: Access, word: Array, code: Array) -> None:
        """Two plain writers, or a writer and an atomic, of different blocks are a race."""
        owners = self._of(memory)
        for other in "WA" if access.op == "W" else "W":
            if other in owners.codes and self.between is None:
                self.between = self._clash(memory, access.op + other, code,
                                           owners.codes[other][word], word)
        owners.note(access.op, word, code)

    def _read(self, space: Space, access: Access) -> None:
        key = access.key()
        if key is not None:
            key = (key, int(space.numbers[0]))
            if key in self.seen:
                return
            self.seen.add(key)
        assert isinstance(access.array, Memory)
        word, lane = access.words()
        self._of(access.array).note("R", word, self._code(space, access, lane))

    def finish(self) -> None:
        """Raise what blocks do to each other.

        Raises
        ------
        KernelError
            "global_race".
        """
        for memory, owners in self.owners.items():
            for op in "WA":
                if self.between is None and op in owners.codes and "R" in owners.codes:
                    self.between = self._clash(memory, "R" + op, owners.codes["R"],
                                               owners.codes[op], None)
        if self.between is not None:
            raise self.between
