"""Run every rank's list in order, each action as early as it can: the one loop behind everything.

`validate` runs it to see whether it ends, `simulate` to see when. Actions are found by the number
of their unit, ``(stage * m + microbatch) * slices + slice``, in flat lists that say when the input
of a unit's forward, and of its backward, arrives on the rank that needs it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule

Times = list[list[float]]
Row = Sequence[tuple[str, int, int]]


class StuckError(Exception):
    """Some ranks wait forever; ``position[r]`` is the action at which rank r stands."""

    def __init__(self, position: list[int]) -> None:
        super().__init__(position)
        self.position = position


def run_in_order(schedule: Schedule, costs: Costs) -> tuple[Times, Times]:
    """When each action starts and ends: ``starts[r][k]`` and ``ends[r][k]``, in seconds.

    An action starts when its rank is free and what it needs has arrived: a forward needs the
    previous stage's output, a backward the next stage's gradient (at the last stage, its own
    forward), W its I. A pair starts when both its parts can. A forward right after an eviction
    waits until that has left, for it needs the room.

    Raises
    ------
    StuckError
        If some rank waits forever.

    Notes
    -----
    Cost: linear in the number of actions. A rank that is blocked sleeps until the input it waits
    for arrives.
    """
    rows = [_units(row, schedule.slices) for row in schedule.ranks]
    run = _Run(schedule, costs)
    forward_in, backward_in, input_done = run.forward_in, run.backward_in, run.input_done
    width, last, sleepers, away = run.width, schedule.stages - 1, run.sleepers, run.away
    seconds, link, scale, slices = run.seconds, run.link, run.scale, schedule.slices
    direction = [copy for copy in schedule.direction for _ in range(schedule.slices)]
    ahead, back = run.delays(1), run.delays(-1)

    position, free, leaves = [0] * len(rows), [0.0] * len(rows), [0.0] * len(rows)
    starts: Times = [[] for _ in rows]
    ends: Times = [[] for _ in rows]
    ready = deque(range(len(rows)))
    while ready:
        rank = ready.popleft()
        row, now = rows[rank], free[rank]
        evicted = leaves[rank]  # when the room is there, right after an eviction; else 0
        started, ended = starts[rank].append, ends[rank].append
        for index in range(position[rank], len(row)):
            action = row[index]
            kind, stage, i = action[0], action[1], action[2]
            unit = stage * width + i
            arrived: float | None
            if kind == "F":
                arrived = forward_in[unit]
                if arrived is None:
                    sleepers[unit] = rank
                    break
                if evicted > arrived:
                    arrived = evicted
            elif kind == "B" or kind == "I":
                arrived = backward_in[unit]
                if arrived is None:
                    sleepers[~unit] = rank
                    break
                if away and unit in away:
                    returned = run.returned.get(unit)
                    if returned is None:
                        break
                    arrived = max(arrived, returned)
            elif kind == "W":
                if not input_done[unit]:
                    break
                arrived = now
            else:
                times = run.other(rank, action, now)
                if times is None:
                    break
                started(times[0])
                ended(times[1])
                now = times[2]
                evicted = times[1] if kind == "E" else 0.0
                ready.extend(run.awake)
                run.awake.clear()
                continue
            evicted = 0.0
            start = arrived if arrived > now else now
            now = start + (seconds[kind][stage] if scale is None
                           else seconds[kind][stage] * scale[i % slices])
            started(start)
            ended(now)
            if kind == "F":
                if stage == last:
                    backward_in[unit] = now
                    key = ~unit
                else:
                    key = unit + width
                    if link is None:
                        forward_in[key] = now + ahead[direction[i] if direction else 0][stage]
                    else:
                        forward_in[key], now = link(rank, stage, stage + 1, i, now)
            elif kind == "W":
                continue
            else:
                input_done[unit] = 1
                if stage == 0:
                    continue
                key = ~(unit - width)
                if link is None:
                    backward_in[~key] = now + back[direction[i] if direction else 0][stage]
                else:
                    backward_in[~key], now = link(rank, stage, stage - 1, i, now)
            if key in sleepers:
                ready.append(sleepers.pop(key))
        else:
            index = len(row)
        position[rank], free[rank], leaves[rank] = index, now, evicted
    if any(at < len(row) for at, row in zip(position, rows, strict=True)):
        raise StuckError(position)
    return starts, ends


def _units(row: Sequence[Action], slices: int) -> Row:
    """A rank's actions as triples: a slice of a microbatch counts as a microbatch of its own."""
    if slices == 1:
        return row
    return [(a[0], a[1], a[2] * slices + (a.slice or 0)) for a in row]


class _Run:
    """What the loop knows: which inputs are where, who sleeps, which activations are away."""

    def __init__(self, schedule: Schedule, costs: Costs) -> None:
        stages = schedule.stages
        self.schedule, self.costs = schedule, costs
        self.width = schedule.m * schedule.slices
        first, units = self.width, stages * self.width
        self.forward_in: list[float | None] = [0.0] * first + [None] * (units - first)
        self.backward_in: list[float | None] = [None] * units
        self.input_done = bytearray(units)
        self.sleepers: dict[int, int] = {}  # unit whose forward input is missing; ~unit: backward
        self.awake: list[int] = []
        self.away: dict[int, float] = {}  # evicted or offloaded: when it was gone
        self.returned: dict[int, float] = {}
        self.out_free = [0.0] * len(schedule.ranks)
        self.in_free = [0.0] * len(schedule.ranks)
        self.seconds = {kind: costs.per_stage(kind, stages) for kind in "FBIWR"}
        self.scale = (None if costs.slice_scale is None
                      else costs.per_slice("slice_scale", schedule.slices))
        self.swap = costs.per_stage("swap", stages)
        self.pair = None if costs.pair is None else costs.per_stage("pair", stages)
        plain = not isinstance(costs.comm, tuple) and costs.bandwidth == math.inf
        self.link: Callable[..., tuple[float, float]] | None = (
            None if plain and not costs.blocking else _Links(schedule, costs).send)

    def delays(self, step: int) -> list[list[float]]:
        """``[copy][stage]``: seconds from stage to stage + step, if no link is ever busy."""
        stages = self.schedule.stages
        comm = 0.0 if self.link else float(self.costs.comm)  # type: ignore[arg-type]
        return [[comm if 0 <= s + step < stages and copy[s] != copy[s + step] else 0.0
                 for s in range(stages)]
                for copy in self.schedule.placements]

    def other(self, rank: int, action: tuple[object, ...], now: float
              ) -> tuple[float, float, float] | None:
        """Pairs, recomputations and swaps: (start, end, rank free again), or None if blocked."""
        kind, stage, i = action[:3]
        assert isinstance(kind, str) and isinstance(stage, int) and isinstance(i, int)
        unit = stage * self.width + i
        if len(action) == 5:
            return self._pair(rank, action[3:], stage, now)  # type: ignore[arg-type]
        if not self._forward_done(stage, unit):
            return None
        if kind == "R":
            scale = 1.0 if self.scale is None else self.scale[i % self.schedule.slices]
            end = now + self.seconds["R"][stage] * scale
            return now, end, end
        if kind in "EO":
            start = max(now, self.out_free[rank])
            self.away[unit] = self.out_free[rank] = start + self.swap[stage]
            return start, self.away[unit], now
        if unit not in self.away:
            return None
        start = max(now, self.in_free[rank], self.away[unit])
        self.returned[unit] = self.in_free[rank] = start + self.swap[stage]
        return start, self.returned[unit], now

    def _pair(self, rank: int, parts: tuple[tuple[str, int, int], ...], stage: int, now: float
              ) -> tuple[float, float, float] | None:
        start, total = now, 0.0
        for kind, s, i in parts:
            unit = s * self.width + i
            arrived = (self.forward_in if kind == "F" else self.backward_in)[unit]
            if arrived is None:
                self.sleepers[unit if kind == "F" else ~unit] = rank
                return None
            start, total = max(start, arrived), total + self.seconds[kind][s]
        end = start + (total if self.pair is None else self.pair[stage])
        free = end
        for kind, s, i in parts:
            free = max(free, self._hand_on(rank, kind, s, i, end))
        return start, end, free

    def _hand_on(self, rank: int, kind: str, stage: int, i: int, now: float) -> float:
        unit = stage * self.width + i
        step = 1 if kind == "F" else -1
        key, free, arrived = unit + step * self.width, now, now
        if kind == "F" and stage == self.schedule.stages - 1:
            self.backward_in[unit] = now
            key = ~unit
        elif kind != "F" and stage == 0:
            return now
        else:
            if self.link:
                arrived, free = self.link(rank, stage, stage + step, i, now)
            elif self._home(stage, i) != self._home(stage + step, i):
                arrived = now + float(self.costs.comm)  # type: ignore[arg-type]
            (self.forward_in if kind == "F" else self.backward_in)[key] = arrived
            key = key if kind == "F" else ~key
        if key in self.sleepers:
            self.awake.append(self.sleepers.pop(key))
        return free

    def _home(self, stage: int, i: int) -> int:
        return self.schedule.home(stage, i // self.schedule.slices)

    def _forward_done(self, stage: int, unit: int) -> bool:
        if stage == self.schedule.stages - 1:
            return self.backward_in[unit] is not None
        return self.forward_in[unit + self.width] is not None


class _Links:
    """Transfers with latency and bandwidth: a link carries one message at a time."""

    def __init__(self, schedule: Schedule, costs: Costs) -> None:
        self.schedule, self.costs = schedule, costs
        self.message = costs.per_stage("message", schedule.stages)
        self.share = costs.per_slice("slice_size", schedule.slices)
        self.busy: dict[tuple[int, int], float] = {}

    def send(self, rank: int, stage: int, to_stage: int, i: int, now: float
             ) -> tuple[float, float]:
        """(when it has arrived, when the sender is free again)."""
        target = self.schedule.home(to_stage, i // self.schedule.slices)
        if target == rank:
            return now, now
        link = (rank, target)
        size = self.message[min(stage, to_stage)] * self.share[i % self.schedule.slices]
        start = max(now, self.busy.get(link, 0.0))
        sent = start + size / self.costs.per_link("bandwidth", *link)
        self.busy[link] = sent
        arrived = sent + self.costs.per_link("comm", *link)
        return arrived, arrived if self.costs.blocking else now
