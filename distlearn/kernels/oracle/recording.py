"""The step debugger: what one warp does, statement by statement, recorded from the oracle.

The oracle runs a block's threads one after another; here what they did is put back into the order
of a warp in lockstep: by iteration numbers of the enclosing loops, then by line. Lanes that are at
the same place take the step together, the others are masked off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels.counters import WARP
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Dim, Kernel
from distlearn.kernels.launch import dim3
from distlearn.kernels.memory import Global, bind, copied
from distlearn.kernels.oracle.arrays import Small
from distlearn.kernels.oracle.block import Block
from distlearn.kernels.oracle.grid import Grid
from distlearn.kernels.oracle.rewrite import rewrite
from distlearn.kernels.oracle.thread import Key, Thread
from distlearn.kernels.oracle.tiles import Tile
from distlearn.kernels.shapes import check_dynamic


class Touch(NamedTuple):
    """A lane reads ("R"), writes ("W") or atomically changes ("A") an element of an array."""

    lane: int
    op: str
    array: str
    element: int


class Step(NamedTuple):
    """A statement that some lanes of the warp execute together.

    Attributes
    ----------
    line : int
        Line of the source file; 0 for the last step, after which nothing happens.
    lanes : tuple of int
        Active lanes.
    registers : dict of str to list
        Local variables before the statement, an entry per lane; None where a lane has none. A lane
        that has returned keeps what it had before its last statement.
    shared : dict of str to list
        Elements of each shared array before the statement, None for those that nobody has written.
    touches : tuple of Touch
        What the statement accesses, elements by their flat number.
    """

    line: int
    lanes: tuple[int, ...]
    registers: dict[str, list[Any]]
    shared: dict[str, list[Any]]
    touches: tuple[Touch, ...]


@dataclass(frozen=True, eq=False)
class Recording:
    """The steps of one warp.

    Attributes
    ----------
    name, source : str
        Of the kernel; ``first_line`` is the number of the source's first line.
    threads : int
        Threads of the warp, at most 32.
    steps : tuple of Step
    complete : bool
        False if the kernel goes on after the last step that was recorded.
    error : KernelError or None
        What the kernel does wrong; the steps end where a warp in lockstep would.
    """

    name: str
    source: str = field(repr=False)
    first_line: int
    threads: int
    steps: tuple[Step, ...] = field(repr=False)
    complete: bool
    error: KernelError | None


def record(function: Kernel, grid: Dim, block: Dim, *arguments: Any, at: int = 0, warp: int = 0,
           most: int = 400, shared_bytes: int = 0) -> Recording:
    """Run one block of a launch on copies of the arguments and record one of its warps.

    Parameters
    ----------
    function, grid, block, arguments, shared_bytes
        As `distlearn.kernels.launch`.
    at : int
        Linear number of the block, x fastest.
    warp : int
        Which warp of the block.
    most : int
        Steps to record at most, at least 1.

    Raises
    ------
    KernelError
        For a launch that cannot be; what goes wrong on the way is in the recording.
    ValueError
        If the launch has no such block or warp, or ``most`` is below 1.
    """
    blocks, threads = dim3(grid, "grid"), dim3(block, "block")
    check_dynamic(shared_bytes)
    bound = copied(bind(function.parameters, arguments, function.name))
    count = threads[0] * threads[1] * threads[2]
    for name, value, end in (("at", at, blocks[0] * blocks[1] * blocks[2]),
                             ("warp", warp, -(-count // WARP))):
        if not 0 <= value < end:
            raise ValueError(f"{name} must be from 0 to {end - 1}; got {name}={value!r}")
    if most < 1:
        raise ValueError(f"most must be at least 1; got most={most!r}")
    launch = _Grid(function, blocks, threads, shared_bytes, bound, most)
    place = (at % blocks[0], at // blocks[0] % blocks[1], at // (blocks[0] * blocks[1]))
    running = _Block(launch, at, launch.places(place))
    failure = None
    with np.errstate(all="ignore"):
        run = running.run(bound)
        while True:
            try:
                next(run)
            except StopIteration as end_:
                failure = end_.value
                break
    error = failure[2] if failure is not None and not launch.cut else None
    steps, complete = _merged(launch, running, warp, error)
    first = range(warp * WARP, min(count, (warp + 1) * WARP))
    return Recording(function.name, function.source, function.first_line, len(first), steps,
                     complete and not launch.cut, error)


@dataclass
class _Note:
    """A statement of one thread: where, its variables before, what it touched and wrote."""

    key: Key
    line: int
    variables: dict[str, Any]
    touches: list[tuple[str, str, int]] = field(default_factory=list)
    written: list[tuple[Small, int]] = field(default_factory=list)
    values: list[tuple[int, int, Any]] = field(default_factory=list)  # array, element, value

    def settle(self) -> None:
        """Take the values of what was written; nobody else has run since."""
        self.values += [(array.number, flat, array.flat[flat].item())
                        for array, flat in self.written]
        self.written.clear()


class _Grid(Grid):
    """Its kernel's threads leave a note before each statement, ``most`` of them at most."""

    def __init__(self, kernel: Kernel, grid: Any, block: Any, shared_bytes: int,
                 arguments: list[Any], most: int) -> None:
        super().__init__(kernel, grid, block, shared_bytes, arguments)
        self.most = most
        self.notes: defaultdict[int, list[_Note]] = defaultdict(list)
        self.names: dict[int, str] = {}
        self.cut: dict[int, Key] = {}  # threads that had more to do, and where

    def code(self, kernel: Kernel) -> tuple[Callable[..., Any], list[int]]:
        if kernel is not self.kernel:
            return super().code(kernel)
        inner, lines = rewrite(kernel, self.trees.get(kernel), steps=True)

        def recorded(thread: Thread, *arguments: Any) -> Generator[Any, Any, Any]:
            running, answer, notes = inner(thread, *arguments), None, self.notes[thread.number]
            while True:
                if notes:
                    notes[-1].settle()  # atomics happen while the thread waits
                try:
                    meeting = running.send(answer)
                except StopIteration:
                    return
                finally:
                    if notes:
                        notes[-1].settle()
                answer = None
                if meeting[0] != "step":
                    answer = yield meeting
                    continue
                key = _key(thread, lines, meeting[1], notes)
                if len(notes) == self.most:
                    self.cut[thread.number] = key
                    return
                notes.append(_Note(key, meeting[1], self.registers(running.gi_frame.f_locals)))

        return recorded, lines

    def registers(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Local variables that are values; shared arrays get their names here."""
        found = {}
        for name, value in variables.items():
            if isinstance(value, Small) and value.space == "shared":
                self.names.setdefault(value.number, name)
            elif not (name.startswith("_") or name in self.kernel.parameters or value is None
                      or isinstance(value, Small | Global | Tile)):
                found[name] = value
        return found


class _Block(Block):
    """Also tells the thread's note what it touches."""

    grid: _Grid

    def touch(self, thread: Thread, op: str, site: int, array: Global | Small, flat: int,
              width: int = 1, piece: int = 0) -> None:
        super().touch(thread, op, site, array, flat, width, piece)
        note = self.grid.notes[thread.number][-1]
        name = array.name if isinstance(array, Global) else f"{array.number}"
        for element in range(flat, flat + width):
            note.touches.append((op, name, element))
            if op != "R" and isinstance(array, Small):
                note.written.append((array, element))


def _key(thread: Thread, lines: list[int], line: int, notes: list[_Note]) -> Key:
    """Lines and iteration numbers of the loops, then the line; repeats of a line are counted."""
    loops = (lines[n] if i % 2 == 0 else n for i, n in enumerate(thread.stack))
    key = (*loops, line)
    if notes and notes[-1].key[:len(key)] == key:
        last = notes[-1].key[len(key):]
        if not last or last[0] == -1:
            return (*key, -1, last[1] + 1 if last else 0)
    return key


def _merged(grid: _Grid, block: Block, warp: int, error: KernelError | None
            ) -> tuple[tuple[Step, ...], bool]:
    """The warp's steps in the order of keys, each with what all threads had written before."""
    end = min(grid.cut.values(), default=None)
    if error is not None and error.thread is not None:
        keys = [n.key for n in grid.notes[error.thread] if n.line == error.line]
        end = (*keys[-1], 0) if keys and end is None else end
    places: defaultdict[Key, dict[int, _Note]] = defaultdict(dict)
    for thread, notes in grid.notes.items():
        for note in notes:
            if end is None or note.key < end:
                places[note.key][thread] = note
    mine = range(warp * WARP, min((warp + 1) * WARP, len(block.threads)))
    names = {str(number): name for number, name in grid.names.items()}
    memory: dict[str, list[Any]] = {}
    steps: list[Step] = []
    ahead = dict.fromkeys(mine, 0)  # the next note of each lane

    def state(line: int, here: Mapping[int, _Note]) -> Step:
        now = [grid.notes[t][min(ahead[t], len(grid.notes[t]) - 1)].variables
               if grid.notes[t] else {} for t in mine]
        known = dict.fromkeys(name for variables in now for name in variables)
        touches = tuple(Touch(t % WARP, op, names.get(array, array), element)
                        for t, note in here.items() for op, array, element in note.touches)
        return Step(line, tuple(t % WARP for t in here),
                    {name: [variables.get(name) for variables in now] for name in known},
                    {name: list(values) for name, values in memory.items()}, touches)

    for key in sorted(places):
        at_once = places[key]
        here = {t: at_once[t] for t in sorted(at_once) if t in ahead}
        if len(steps) == grid.most:
            return tuple(steps), False
        if here:
            steps.append(state(next(iter(here.values())).line, here))
        for t in here:
            ahead[t] += 1
        for done in at_once.values():
            for number, element, value in done.values:
                name = grid.names.get(number, str(number))
                size = next(a.flat.size for a in block.arrays.values() if a.number == number)
                memory.setdefault(name, [None] * size)[element] = value
    steps.append(state(0, {}))
    return tuple(steps), True
