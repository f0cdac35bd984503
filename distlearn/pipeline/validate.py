"""Is a schedule complete, and does it run? If not, say what is wrong, where, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.schedule import Schedule

Step = tuple[str, int, int]
"""An action as a plain triple: equal to the `Action`, and three times cheaper to make."""


class ScheduleError(ValueError):
    """A schedule that cannot be run.

    Attributes
    ----------
    problem : str
        ``"missing"``, ``"twice"``, ``"misplaced"``, ``"unknown"`` or ``"deadlock"``.
    rank : int
        The rank that shows it.
    action : Action
        The action that is missing, there twice, misplaced or stuck.
    chain : tuple of (rank, Action)
        For a deadlock: who waits for whom, each entry for the next. The last entry either closes
        the circle or is an action that no rank ever does.
    """

    def __init__(self, problem: str, rank: int, action: Action, message: str,
                 chain: tuple[tuple[int, Action], ...] = ()) -> None:
        super().__init__(message)
        self.problem, self.rank, self.action, self.chain = problem, rank, action, chain


def dependencies(action: Step, stages: int, split: bool) -> tuple[Step, ...]:
    """The actions that must have ended before this one starts, as (kind, stage, microbatch).

    F waits for the previous stage's F; B and I wait for their own F and for the next stage's
    backward; W waits for its I.

    Parameters
    ----------
    action : Action
    stages : int
        Stages of the whole pipeline.
    split : bool
        Whether the next stage does this microbatch's backward as I and W instead of B.

    Examples
    --------
    >>> dependencies(Action("B", 2, 5), stages=4, split=False)
    (('F', 2, 5), ('B', 3, 5))
    """
    kind, stage, i = action
    if kind == "F":
        return () if stage == 0 else (("F", stage - 1, i),)
    if kind == "W":
        return (("I", stage, i),)
    if stage == stages - 1:
        return (("F", stage, i),)
    return ("F", stage, i), ("I" if split else "B", stage + 1, i)


def validate(schedule: Schedule) -> None:
    """Check that every stage does every microbatch once, on its rank, and that all ranks finish.

    Raises
    ------
    ScheduleError
        Saying what is missing, there twice or on the wrong rank; or, for a deadlock, the chain of
        who waits for whom.

    Notes
    -----
    Cost: linear in the number of actions.

    Examples
    --------
    >>> from distlearn.pipeline import Schedule
    >>> text = "schedule mine p=1 m=1 v=1" + chr(10) + "placement 0" + chr(10) + "rank 0: B0.0 F0.0"
    >>> validate(Schedule.from_text(text))
    Traceback (most recent call last):
    distlearn.pipeline.validate.ScheduleError: deadlock: rank 0 waits in B0.0 (action 0) for \
F0.0, which is later on rank 0 (action 1)
    """
    _check_complete(schedule)
    for _ in in_order(schedule):
        pass


def _check_complete(schedule: Schedule) -> None:
    stages, m = schedule.stages, schedule.m
    for stage, rank in enumerate(schedule.placement):
        if not 0 <= rank < schedule.p:
            raise ValueError(f"placement[{stage}] = {rank} is not a rank of p={schedule.p}")
    seen: dict[Action, tuple[int, int]] = {}
    for rank, actions in enumerate(schedule.ranks):
        for index, action in enumerate(actions):
            if not (0 <= action.stage < stages and 0 <= action.microbatch < m):
                raise ScheduleError(
                    "unknown", rank, action,
                    f"rank {rank}, action {index}: {action} names stage {action.stage} of "
                    f"{stages}, microbatch {action.microbatch} of {m} (both counted from 0)")
            home = schedule.placement[action.stage]
            if home != rank:
                raise ScheduleError(
                    "misplaced", rank, action,
                    f"rank {rank}, action {index}: {action} is done on rank {rank}, but stage "
                    f"{action.stage} lives on rank {home}")
            if action in seen:
                raise ScheduleError(
                    "twice", rank, action,
                    f"rank {rank}: {action} is done twice, as actions {seen[action][1]} "
                    f"and {index}")
            seen[action] = (rank, index)
    for stage, rank in enumerate(schedule.placement):
        for i in range(m):
            has = {kind for kind in "FBIW" if (kind, stage, i) in seen}
            wants = {"F", "I", "W"} if has & {"I", "W"} else {"F", "B"}
            if has == wants:
                continue
            if "B" in has and has & {"I", "W"}:
                half = next(kind for kind in "IW" if kind in has)
                raise ScheduleError(
                    "twice", rank, Action(half, stage, i),
                    f"rank {rank}: B{stage}.{i} and {half}{stage}.{i} are both done, but a full "
                    "backward B already is I and W")
            lost = Action(next(kind for kind in "FBIW" if kind in wants - has), stage, i)
            raise ScheduleError("missing", rank, lost, f"rank {rank}: {lost} is missing")


def in_order(schedule: Schedule) -> Iterator[tuple[int, Action, tuple[Step, ...]]]:
    """Run every rank's list in order, each action as soon as what it waits for is done.

    Yields ``(rank, action, waited_for)`` once per action, in an order in which every dependency
    comes first. A rank that is blocked sleeps until the action it waits for is done, so the cost
    is linear.

    Raises
    ------
    ScheduleError
        With ``problem == "deadlock"`` if some rank waits forever.
    """
    ranks, stages = schedule.ranks, schedule.stages
    split = {(stage, i) for actions in ranks for kind, stage, i in actions if kind == "I"}
    done: set[Step] = set()
    sleepers: dict[Step, list[int]] = {}
    position = [0] * len(ranks)
    ready = deque(range(len(ranks)))
    while ready:
        rank = ready.popleft()
        for index in range(position[rank], len(ranks[rank])):
            action = ranks[rank][index]
            _, stage, i = action
            waits = dependencies(action, stages, (stage + 1, i) in split)
            if not done.issuperset(waits):
                blocker = next(other for other in waits if other not in done)
                sleepers.setdefault(blocker, []).append(rank)
                position[rank] = index
                break
            yield rank, action, waits
            done.add(action)
            if action in sleepers:
                ready.extend(sleepers.pop(action))
    blocked = {rank: Action(*other) for other, asleep in sleepers.items() for rank in asleep}
    if blocked:
        raise _deadlock(schedule, position, blocked)


def _deadlock(schedule: Schedule, position: list[int], blocked: dict[int, Action]) -> ScheduleError:
    """Follow who waits for whom, from the lowest blocked rank, until the chain closes."""
    where = {a: (r, k) for r, actions in enumerate(schedule.ranks) for k, a in enumerate(actions)}
    rank = min(blocked)
    chain: list[tuple[int, Action]] = []
    parts: list[str] = []
    visited: dict[int, int] = {}
    while rank not in visited:
        visited[rank] = len(chain)
        stuck, wanted = schedule.ranks[rank][position[rank]], blocked[rank]
        chain.append((rank, stuck))
        text = f"rank {rank} waits in {stuck} (action {position[rank]}) for {wanted}"
        if wanted not in where:
            parts.append(f"{text}, which no rank does")
            chain.append((schedule.placement[wanted.stage], wanted))
            break
        home, index = where[wanted]
        if home == rank:
            parts.append(f"{text}, which is later on rank {rank} (action {index})")
            break
        parts.append(f"{text}, which rank {home} does later (action {index})")
        rank = home
    else:
        start = visited[rank]  # drop the approach: keep only the circle
        chain, parts = chain[start:], parts[start:]
        parts[-1] += ", and the circle closes"
    first_rank, first = chain[0]
    return ScheduleError("deadlock", first_rank, first, "deadlock: " + "; ".join(parts),
                         tuple(chain))
