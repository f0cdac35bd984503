"""Pipes and event flags as a timeline: when each instruction runs, and whether it may.

Each pipe does its instructions in order; between pipes only flags order anything. An instruction
of one pipe *happens before* one of another only if a chain of ``set_flag`` and ``wait_flag`` leads
from the first to the second. Two that touch the same bytes, one of them writing, without such a
chain are a race, whatever the clock says (Lamport, "Time, Clocks, and the Ordering of Events in a
Distributed System", Communications of the ACM 21(7), 1978; the chains are kept as vector clocks).
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from distlearn.hardware.ai_core import PIPES
from distlearn.kernels.ascend.errors import AscendError

Flag = tuple[str, str, int]
"""Pipe that sets it, pipe that waits for it, event id."""


class Region(NamedTuple):
    """A rectangle of a memory: rows of bytes. In on-chip buffers there is one row."""

    buffer: str
    start: int
    stop: int
    top: int = 0
    bottom: int = 1

    def overlaps(self, other: Region) -> bool:
        """Whether a byte is in both; the buffers are taken as the same."""
        return (self.start < other.stop and other.start < self.stop
                and self.top < other.bottom and other.top < self.bottom)

    def contains(self, other: Region) -> bool:
        """Whether all of the other is in this one."""
        return (self.start <= other.start and other.stop <= self.stop
                and self.top <= other.top and other.bottom <= self.bottom)


@dataclass(frozen=True)
class Instruction:
    """One instruction in the queue of its pipe.

    Attributes
    ----------
    pipe, name : str
    clocks : int
        How long it takes.
    reads, writes : tuple of Region
    nbytes : int
        Bytes it moves, for the account of the pipe.
    run : function or None
        Does it.
    flag : Flag or None
        What ``set_flag`` or ``wait_flag`` is about.
    """

    pipe: str
    name: str
    clocks: int = 0
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    nbytes: int = 0
    run: Callable[[], None] | None = None
    flag: Flag | None = None


class Event(NamedTuple):
    """An instruction that did something, and when, in clocks."""

    pipe: str
    name: str
    start: int
    end: int
    nbytes: int


@dataclass(frozen=True)
class Timeline:
    """What the pipes of one core did.

    Attributes
    ----------
    events : tuple of Event
        In an order in which they may happen.
    makespan : int
        Clocks until the last pipe is done.
    busy, nbytes : mapping of str to int
        Clocks that each pipe worked, bytes that it moved.
    fill : mapping of str to int
        Bytes that the program has allocated in each buffer.
    capacity : mapping of str to int
    clock_hz : float
    """

    events: tuple[Event, ...] = field(repr=False)
    makespan: int
    busy: Mapping[str, int]
    nbytes: Mapping[str, int]
    fill: Mapping[str, int]
    capacity: Mapping[str, int] = field(repr=False)
    clock_hz: float

    @property
    def time_s(self) -> float:
        """Seconds until the last pipe is done."""
        return self.makespan / self.clock_hz

    @property
    def utilisation(self) -> float:
        """Share of the time in which the cube unit works."""
        return self.busy["M"] / self.makespan if self.makespan else 0.0

    @property
    def bottleneck(self) -> str:
        """The pipe that works longest."""
        return max(self.busy, key=lambda pipe: self.busy[pipe])


def order(program: Sequence[Instruction]) -> list[tuple[Instruction, int, int]]:
    """Each instruction with its start and end, in an order in which they may happen.

    Raises
    ------
    AscendError
        Of kind ``"deadlock"``, ``"race"`` or ``"unpaired_flag"``.
    """
    queues: dict[str, list[Instruction]] = {pipe: [] for pipe in PIPES}
    for instruction in program:
        queues[instruction.pipe].append(instruction)
    clocks = {pipe: dict.fromkeys(PIPES, 0) for pipe in PIPES}
    ends = dict.fromkeys(PIPES, 0)
    heads = dict.fromkeys(PIPES, 0)
    pending: defaultdict[Flag, deque[tuple[int, dict[str, int]]]] = defaultdict(deque)
    waited: dict[Flag, int] = {}
    again: AscendError | None = None  # a flag set too early; what that does to data tells more
    places = {id(instruction): place for place, instruction in enumerate(program)}
    races = _Races()
    done: list[tuple[Instruction, int, int]] = []
    moved = True
    while moved:
        moved = False
        for pipe, queue in queues.items():
            seen = clocks[pipe]
            while heads[pipe] < len(queue):
                now = queue[heads[pipe]]
                start = ends[pipe]
                if now.name == "wait_flag" and now.flag is not None:
                    if not pending[now.flag]:
                        break
                    set_at, known = pending[now.flag].popleft()
                    start = max(start, set_at)
                    for other, index in known.items():
                        seen[other] = max(seen[other], index)
                heads[pipe] += 1
                seen[pipe] = heads[pipe]
                ends[pipe] = start + now.clocks
                if now.flag is None:
                    races.check(now, heads[pipe], seen, places[id(now)])
                elif now.name == "wait_flag":
                    waited[now.flag] = heads[pipe]
                else:
                    again = again or _set_again(now.flag, pending, waited, seen)
                    pending[now.flag].append((ends[pipe], dict(seen)))
                done.append((now, start, ends[pipe]))
                moved = True
    _check_finished(queues, heads, [flag for flag, sets in pending.items() if sets])
    if again is not None:
        raise again
    return done


def _set_again(flag: Flag, pending: Mapping[Flag, Sequence[object]], waited: Mapping[Flag, int],
               seen: Mapping[str, int]) -> AscendError | None:
    """A flag holds one event: setting it again is safe only after it was surely waited for."""
    source, target, event = flag
    if not pending[flag] and seen[target] >= waited.get(flag, 0):
        return None
    return AscendError("race", f"{source} sets flag {event} for {target} again before {target} has "
                               f"surely waited for it, and a flag holds one event: {source} must "
                               f"wait for a flag back from {target}")


def _check_finished(queues: Mapping[str, Sequence[Instruction]], heads: Mapping[str, int],
                    pending: Sequence[Flag]) -> None:
    stuck = {pipe: queue[heads[pipe]].flag for pipe, queue in queues.items()
             if heads[pipe] < len(queue)}
    for pipe, flag in stuck.items():
        assert flag is not None
        rest = queues[flag[0]][heads[flag[0]]:]
        if not any(i.name == "set_flag" and i.flag == flag for i in rest):
            raise AscendError("deadlock", f"{pipe} waits for flag {flag[2]} from {flag[0]}, which "
                                          "nobody sets")
    if stuck:
        path = [next(iter(stuck))]
        while path.count(path[-1]) < 2:
            flag = stuck[path[-1]]
            assert flag is not None
            path.append(flag[0])
        cycle = path[path.index(path[-1]):]
        raise AscendError("deadlock", "; ".join(
            f"{pipe} waits for flag {(stuck[pipe] or ('', '', 0))[2]} from {source}"
            for pipe, source in itertools.pairwise(cycle)) + ": a circle")
    for source, target, event in pending:
        raise AscendError("unpaired_flag", f"{source} sets flag {event} for {target}, which never "
                                           "waits for it")


class _Access(NamedTuple):
    region: Region
    writes: bool
    pipe: str
    place: int
    name: str
    order: int  # in the program


class _Races:
    """The accesses to each memory that a later one may still race with."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, list[_Access]] = defaultdict(list)

    def check(self, now: Instruction, index: int, seen: Mapping[str, int], order: int) -> None:
        for writes, regions in ((False, now.reads), (True, now.writes)):
            for region in regions:
                before = self._seen[region.buffer]
                for old in before:
                    if ((writes or old.writes) and old.place > seen[old.pipe]
                            and region.overlaps(old.region)):
                        raise AscendError("race", _race(now, index, order, region, writes, old))
                # What this one covers and follows can race with nothing that this one does not.
                before[:] = [old for old in before if not (
                    region.contains(old.region) and (writes or (
                        not old.writes and old.pipe == now.pipe)))]
                before.append(_Access(region, writes, now.pipe, index,
                                      f"{now.name}, instruction {index} of {now.pipe},", order))


def _race(now: Instruction, index: int, order: int, region: Region, writes: bool, old: _Access
          ) -> str:
    kind: dict[bool, Literal["writes", "reads"]] = {True: "writes", False: "reads"}
    low, high = max(region.start, old.region.start), min(region.stop, old.region.stop)
    first, then = ((old.pipe, old.place), now.pipe) if old.order < order else (
        (now.pipe, index), old.pipe)
    return (f"{region.buffer} bytes {low:,} to {high:,}: {now.name}, instruction {index} of "
            f"{now.pipe}, {kind[writes]} what {old.name} {kind[old.writes]}, and no flag orders "
            f"the two: {then} must wait for a flag that {first[0]} sets after its instruction "
            f"{first[1]}")
