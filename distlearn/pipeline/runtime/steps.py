"""A rank's program: its actions, and between them what it does for the rank that parks with it.

A schedule lists an eviction only on the rank that evicts. When its partner takes the activation in
is read off the simulation, so both readings agree about what is where; and because all ranks follow
one order of time, none can wait for another in a circle.
"""

from __future__ import annotations

from typing import NamedTuple

from distlearn.pipeline.action import Action
from distlearn.pipeline.runtime.batch import Key
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.simulator import simulate
from distlearn.pipeline.timeline import Timeline


class Step(NamedTuple):
    """One thing a rank does.

    Attributes
    ----------
    what : str
        ``act``: an action of its own; ``take_in`` and ``give_back``: for its partner.
    place : int
        Of the action in its rank's list.
    action : Action
    home : int
        Rank whose action it is.
    """

    what: str
    place: int
    action: Action
    home: int

    @property
    def key(self) -> Key:
        """Stage and microbatch."""
        return tuple(self.action[1:])


def programs(schedule: Schedule) -> tuple[tuple[Step, ...], ...]:
    """The steps of every rank, in order."""
    own = [[Step("act", k, action, r) for k, action in enumerate(row)]
           for r, row in enumerate(schedule.ranks)]
    if not schedule.partner:
        return tuple(map(tuple, own))
    timeline = simulate(schedule)
    return tuple(_with_guests(timeline, own[r], r) for r in range(schedule.p))


def _with_guests(timeline: Timeline, own: list[Step], rank: int) -> tuple[Step, ...]:
    """Own steps and guests' in time: room is taken when an action begins, freed when it ends."""
    order: list[tuple[float, int, Step]] = []
    for step in own:
        begins = step.action.kind in "FRLP"
        times = timeline.starts if begins else timeline.ends
        order.append((times[rank][step.place], 2 * step.place + 1, step))
    # a swap may end after actions that follow it, but is begun before them: the list's order stays
    now = 0.0
    for n, (time, rank_order, step) in enumerate(order):
        if step.action.kind in "ELOP":
            time = now
        now = max(now, time)
        order[n] = (now, rank_order, step)
    for home, partner in enumerate(timeline.schedule.partner):
        if partner != rank or home == rank:
            continue
        row = timeline.schedule.ranks[home]
        for k, action in enumerate(row):
            if action.kind == "E":  # at equal times: first all that frees, last what comes in
                guest = Step("take_in", k, action, home)
                order.append((timeline.starts[home][k], 2 * (len(own) + len(row)) + k, guest))
            elif action.kind == "L":
                order.append((timeline.ends[home][k], -1, Step("give_back", k, action, home)))
    return tuple(step for _, _, step in sorted(order, key=lambda item: item[:2]))
