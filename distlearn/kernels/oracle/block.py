"""One block: its threads run one after another from barrier to barrier."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.hardware.memory_system import BANK_BYTES, BANKS, LINE_BYTES, SECTOR_BYTES
from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import EXITED, NO_NUMBERS, KernelError
from distlearn.kernels.memory import Global, Memory
from distlearn.kernels.names import BARRIERS
from distlearn.kernels.oracle.arrays import Small
from distlearn.kernels.oracle.races import Interval, Touch, conflict
from distlearn.kernels.oracle.thread import DYNAMIC, Key, Meeting, Thread
from distlearn.kernels.oracle.warp import exchange

if TYPE_CHECKING:
    from distlearn.kernels.oracle.grid import Grid

GENERATED = "<oracle of "  # files of the code that `rewrite` makes
LATER = 1024  # checks that a machine makes after those of the bounds
END: tuple[float, ...] = (math.inf,)
# Of errors at one barrier these come first, in the order of a machine that runs all blocks at once.
BARRIER, UNINITIALISED = -4, -1
RACES = {"race": -3, "global_race": -2}
Located = tuple[tuple[float, ...], int, KernelError]  # key, one of these or a thread, error


class Block:
    """Shared memory, accesses of the interval, and requests of a block."""

    def __init__(self, grid: Grid, number: int, places: list[dict[str, int]]) -> None:
        self.grid, self.number = grid, number
        self.arrays: dict[Key, Small] = {}
        self.interval = Interval()
        self.unwritten: list[tuple[Key, int, int]] = []
        self.requests: defaultdict[Any, list[tuple[int, int]]] = defaultdict(list)
        self.tests: defaultdict[tuple[int, Key, int], list[bool]] = defaultdict(list)
        self.fresh: defaultdict[tuple[int, int], list[Touch]] = defaultdict(list)
        self.syncwarps = 0
        self.moves: Counter[tuple[int, int]] = Counter()  # of ``while``: turns with a change
        self.threads = [Thread(self, i, place) for i, place in enumerate(places)]

    def run(self, arguments: list[Any]) -> Generator[Key, None, Located | None]:
        """Run to the end or to the first error in the order of a lockstep machine.

        Before every atomic it yields the key: atomics of all blocks happen in the order of keys.
        """
        code, lines = self.grid.code(self.grid.kernel)
        running: dict[int, Generator[Any, Any, Any]] = {}
        for thread in self.threads:
            thread.lines = lines
            running[thread.number] = code(thread, *arguments)
        answers: dict[int, Any] = dict.fromkeys(running)
        while running:
            waiting, errors = yield from self._advance(running, answers)
            keys = [meeting.key for meeting in waiting.values()]
            end: tuple[float, ...] = min(keys) if keys else END
            if waiting and (len(set(keys)) > 1 or len(waiting) < len(self.threads)):
                line = min(waiting.values(), key=lambda m: m.key).line
                here = sum(key == end for key in keys)
                errors.append((end, BARRIER, KernelError(
                    "barrier_divergence", f"{here} of {len(self.threads)} threads of block "
                    f"{self.number} reach this barrier{EXITED}", line=line, block=self.number)))
            errors += self._interval_errors(end)
            if errors:
                return min(errors, key=lambda e: e[:2])
            if waiting:
                row = self.grid.tally.row(next(iter(waiting.values())).line)
                row[INDEX["barrier_warps"]] += -(-len(self.threads) // 32)
                try:
                    answers = _counted(waiting)
                except (KernelError, TypeError, ValueError) as error:
                    line = next(iter(waiting.values())).line
                    return end, BARRIER, self._located(error, 0, line)[2]
        self._count()
        return None

    def _advance(self, running: dict[int, Generator[Any, Any, Any]], answers: dict[int, Any]
                 ) -> Generator[Key, None, tuple[dict[int, Meeting], list[Located]]]:
        """Run every thread to the next barrier or its end; on the way those at the least key go on.

        So lanes that took another way, and come to the same shuffle later, are waited for.
        """
        waiting: dict[int, Meeting] = {}
        errors: list[Located] = []
        met: dict[int, Meeting] = {}
        while answers:
            for lane, answer in answers.items():
                try:
                    meeting = running[lane].send(answer)
                    while meeting[0] == "step":
                        meeting = next(running[lane])
                except StopIteration:
                    del running[lane]
                except (KernelError, UnboundLocalError, TypeError, ValueError) as error:
                    del running[lane]
                    errors.append(self._located(error, lane))
                else:
                    (waiting if meeting.what in BARRIERS else met)[lane] = meeting
            answers = {}
            while met and not answers:
                key = min(meeting.key for meeting in met.values())
                here = {lane: met.pop(lane) for lane in sorted(met) if met[lane].key == key}
                if next(iter(here.values())).what == "atomic":
                    yield key
                answers = self._meet(here, running, errors)
        return waiting, errors

    def _meet(self, here: dict[int, Meeting], running: dict[int, Generator[Any, Any, Any]],
              errors: list[Located]) -> dict[int, Any]:
        """What threads get that wait at one place; those of a warp that fails end."""
        answers: dict[int, Any] = {}
        if next(iter(here.values())).what == "atomic":
            for lane, meeting in here.items():
                try:
                    answers[lane] = self.threads[lane].atomic(meeting.key[-1], *meeting.arguments)
                except (KernelError, TypeError, ValueError) as error:
                    del running[lane]
                    errors.append(self._located(error, lane, meeting.line))
            return answers
        for warp in sorted({lane // 32 for lane in here}):
            mine = {lane: meeting for lane, meeting in here.items() if lane // 32 == warp}
            try:
                answers.update(exchange(self, mine))
            except (KernelError, TypeError, ValueError) as error:
                lane = getattr(error, "thread", None) or min(mine)
                errors.append((mine[lane].key, *self._located(error, lane, mine[lane].line)[1:]))
                for lane in mine:
                    del running[lane]
        return answers

    def _located(self, error: Exception, lane: int, line: int = 0) -> Located:
        """An error of one thread, with where in the order of a lockstep machine it happened."""
        thread = self.threads[lane]
        if isinstance(error, UnboundLocalError):
            error = KernelError("unbound_variable", str(error), line=_statement(error))
        elif not isinstance(error, KernelError):
            line = line or _statement(error)
            error = KernelError("unsupported", f"{NO_NUMBERS}: {error}")
        error.line = error.line or line or _statement(error)
        error.block, error.thread = self.number, lane
        later = LATER if error.kind == "misaligned_address" else 0
        return (*thread.stack, _site(error, thread)), later + lane, error

    # ---- memory

    def shared(self, key: Key, shape: tuple[int, ...], dtype: Any, name: str = "") -> Small:
        """The array that all threads of the block get at this declaration."""
        if key not in self.arrays:
            self.arrays[key] = Small.new("shared", len(self.arrays), shape, dtype, name)
        return self.arrays[key]

    def dynamic(self, dtype: Any) -> Small:
        """The block's dynamic shared memory as an array of this type."""
        kind, available = np.dtype(dtype), self.grid.shared_bytes
        memory = self.shared(DYNAMIC, (-(-available // 16) * 16,), np.uint8)
        return Small("shared", memory.number, (available // kind.itemsize,), kind,
                     memory.flat.view(kind), memory.written, (1,), cell=kind.itemsize)

    def touch(self, thread: Thread, op: str, site: int, array: Global | Small, flat: int,
              width: int = 1, piece: int = 0) -> None:
        """Note an access for counters, races and reads of what nobody wrote.

        It is of ``width`` elements; ``piece`` tells several requests of one site apart.
        """
        key, line = thread.key(site), thread.line_of(site)
        if isinstance(array, Global):
            space, number = "global", array.memory.number
            self.grid.memories[number] = array.memory
        else:
            space, number = "shared", array.number
        self.requests[thread.warp, (*key, piece), op, space, array.dtype.itemsize, width, line
                      ].append((thread.number, flat))
        cell = 1 if isinstance(array, Global) else array.cell
        here = Touch(op, thread.number, len(thread.joined), line)
        words = self.interval.words
        for unit in range(flat * cell, (flat + width) * cell):
            words[space, number, unit].add(here)
            if isinstance(array, Global):
                self.grid.touched[number, unit].setdefault((self.number, op), line)
                continue
            if op != "W" and unit not in array.written and not any(
                    t.thread == thread.number or not conflict(t, here, self.ordered)
                    for t in self.fresh[number, unit]):
                self.unwritten.append((key, thread.number, line))
            if op != "R":
                self.fresh[number, unit].append(here)

    def _interval_errors(self, end: tuple[float, ...]) -> list[Located]:
        """Races and uninitialised reads of the interval that ends; begins the next one."""
        found: list[Located] = []
        for space, kind in (("shared", "race"), ("global", "global_race")):
            kinds, pair = self.interval.races(space, self.ordered)
            if pair is not None and not found:
                a, b, word = pair
                memories: list[Memory] | list[Small] = list(
                    self.grid.memories.values()) if space == "global" else list(
                        self.arrays.values())
                what = next(m for m in memories if m.number == word[1]).element(word[2])
                found.append((end, RACES[kind], KernelError(
                    kind, f"threads {a.thread} ({a.op}, line {a.line}) and {b.thread} ({b.op}, line"
                    f" {b.line}) touch {what} with no barrier between",
                    line=max(a.line, b.line), block=self.number, thread=a.thread,
                    race_kinds=kinds)))
        if self.unwritten and not found:
            _, thread, line = min(self.unwritten)
            found.append((end, UNINITIALISED, KernelError(
                "uninitialised_shared_read", f"thread {thread} of block {self.number} reads a "
                "shared element that no thread has written", line=line, block=self.number,
                thread=thread)))
        for number, flat in self.fresh:
            next(a for a in self.arrays.values() if a.number == number).written.add(flat)
        self.fresh.clear()
        self.unwritten.clear()
        self.interval = Interval()
        for one in self.threads:
            one.joined.clear()
        return found

    def ordered(self, a: Touch, b: Touch) -> bool:
        """Whether both threads took part in a syncwarp after one access and before the other."""
        one, two = self.threads[a.thread].joined, self.threads[b.thread].joined
        return not (set(one[a.epoch:]).isdisjoint(two[:b.epoch])
                    and set(two[b.epoch:]).isdisjoint(one[:a.epoch]))

    # ---- counting

    def _count(self) -> None:
        for (_, _, op, space, size, width, line), lanes in self.requests.items():
            row = self.grid.tally.row(line)
            flats = {flat for _, flat in lanes}
            if op == "A":
                row[INDEX["atomic_requests"]] += 1
                wanted = [flat for _, flat in lanes]
                row[INDEX["atomic_conflicts"]] += max(map(wanted.count, flats)) - 1
                continue
            name = f"{space}_{'load' if op == 'R' else 'store'}_"
            row[INDEX[name + "requests"]] += 1
            if space == "shared":
                row[INDEX[name + "wavefronts"]] += wavefronts(flats, size) if (
                    width == 1) else vector_wavefronts(lanes, size, width)
                continue
            for unit, width in (("sectors", SECTOR_BYTES), ("lines", LINE_BYTES)):
                row[INDEX[name + unit]] += len({flat * size // width for flat in flats})
        for (_, _, line), truths in self.tests.items():
            row = self.grid.tally.row(line)
            row[INDEX["branches"]] += 1
            row[INDEX["divergent_branches"]] += len(set(truths)) > 1


def _counted(waiting: dict[int, Meeting]) -> dict[int, Any]:
    """What threads get from a barrier that counts how many of them bring a truth."""
    what = next(iter(waiting.values())).what
    if what == "syncthreads":
        return dict.fromkeys(waiting)
    true = sum(bool(meeting.arguments[0]) for meeting in waiting.values())
    found = {"syncthreads_count": true, "syncthreads_and": int(true == len(waiting)),
             "syncthreads_or": int(true > 0)}
    return dict.fromkeys(waiting, found[what])


def vector_wavefronts(lanes: list[tuple[int, int]], size: int, width: int) -> int:
    """Half-warps take turns at 8 bytes a lane, quarter-warps at 16."""
    turns = max(1, size * width // BANK_BYTES)
    parts: defaultdict[int, set[int]] = defaultdict(set)
    for thread, flat in lanes:
        parts[thread % 32 // (32 // turns)] |= {flat + n for n in range(width)}
    return sum(wavefronts(flats, size) for flats in parts.values())


def wavefronts(flats: set[int], size: int) -> int:
    """The most distinct 4-byte words in one bank; elements of 8 bytes take two words."""
    words = {flat * size // BANK_BYTES + extra for flat in flats
             for extra in range(max(1, size // BANK_BYTES))}
    banks = [word % BANKS for word in words]
    return max(map(banks.count, set(banks)))


def _statement(error: Exception) -> int:
    """Line of the kernel's statement that an error comes from."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(GENERATED):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _site(error: KernelError, thread: Thread) -> float:
    """The site that failed: the first of the line, as an error does not carry its site."""
    return next((i for i, line in enumerate(thread.lines) if line == error.line), math.inf)
