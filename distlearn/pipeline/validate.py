"""Is a schedule complete, and does it run? If not, say what is wrong, where, and why."""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import KINDS, Action, Slice
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.engine import StuckError, run_in_order
from distlearn.pipeline.schedule import Schedule


class ScheduleError(ValueError):
    """A schedule that cannot be run.

    Attributes
    ----------
    problem : str
        ``"missing"``, ``"twice"``, ``"misplaced"``, ``"unknown"``, ``"disorder"`` or
        ``"deadlock"``.
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


def validate(schedule: Schedule) -> None:
    """Check that every stage does every microbatch once, on its rank, and that all ranks finish.

    Raises
    ------
    ScheduleError
        Saying what is missing, there twice, on the wrong rank or in the wrong order; or, for a
        deadlock, the chain of who waits for whom.

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
    masks = _check_placed(schedule)
    _check_complete(schedule, masks)
    if schedule.slices > 1 or max(masks, default=0) > _PLAIN:
        _check_order(schedule)
    run(schedule, _NO_COSTS)


_NO_COSTS = Costs(F=0, B=0)

Where = dict[Action, tuple[int, int]]  # an action -> its rank and index

_BIT = {kind: 1 << n for n, kind in enumerate(KINDS)}  # F, B, I, W come first
_PLAIN = 15
_USUAL = frozenset("FBIW")
_PAIRED = frozenset("FBI")


def check_placed(schedule: Schedule) -> None:
    """Check that every action is there at most once, on the rank that holds its stage.

    Raises
    ------
    ScheduleError, ValueError
        As `validate`; actions that are missing are not looked for.

    Notes
    -----
    Usual rows are checked as sets, a tenth of the cost of simulating them.
    """
    if schedule.slices > 1 or schedule.direction:
        _check_placed(schedule)
        return
    for rank, row in enumerate(schedule.ranks):
        if not set(map(type, row)) <= {Action}:
            _check_placed(schedule)
            return
        stages, microbatches = {a[1] for a in row}, {a[2] for a in row}
        usual = ({a[0] for a in row} <= _USUAL and set(map(type, stages | microbatches)) <= {int}
                 and stages <= set(schedule.held(rank)) and len(set(row)) == len(row)
                 and (not row or (min(microbatches) >= 0 and max(microbatches) < schedule.m)))
        if not usual:
            _check_placed(schedule)
            return


def run(schedule: Schedule, costs: Costs) -> tuple[list[list[float]], list[list[float]]]:
    """`engine.run_in_order`, with a deadlock explained.

    Raises
    ------
    ScheduleError
        With ``problem == "deadlock"`` if some rank waits forever.
    """
    try:
        return run_in_order(schedule, costs)
    except StuckError as stuck:
        raise _deadlock(schedule, stuck.position) from None


def _check_placed(schedule: Schedule) -> list[int]:
    """Every action is there once, on the rank that holds its stage. What each unit has, as bits."""
    stages, m, slices = schedule.stages, schedule.m, schedule.slices
    copies = schedule.placements
    direction = schedule.direction or (0,) * m
    masks = [0] * (stages * m * slices)
    for rank, actions in enumerate(schedule.ranks):
        for index, whole in enumerate(actions):
            if not isinstance(whole, Action):
                raise ValueError(f"rank {rank}, action {index}: {whole!r} is not an Action; "
                                 "Action.parse reads its text")
            for action in (whole,) if len(whole) < 5 else whole.parts:
                kind, stage, i = action[:3]
                if kind not in _BIT or type(stage) is not int or type(i) is not int:
                    raise ValueError(f"rank {rank}, action {index}: {action!r} needs a kind out of "
                                     f"{', '.join(KINDS)} and integers")
                if whole is not action and (kind not in _PAIRED or slices > 1):
                    raise ScheduleError(
                        "unknown", rank, whole,
                        f"rank {rank}, action {index}: {whole} is no pair that can be run: two of "
                        f"{', '.join(sorted(_PAIRED))}, of whole microbatches")
                if kind in "EL" and not schedule.partner:
                    raise ScheduleError(
                        "unknown", rank, action,
                        f"rank {rank}, action {index}: {action} moves an activation to or from a "
                        "partner rank, but the schedule names none")
                if not (0 <= stage < stages and 0 <= i < m):
                    raise ScheduleError(
                        "unknown", rank, action,
                        f"rank {rank}, action {index}: {action} names stage {stage} of "
                        f"{stages}, microbatch {i} of {m} (both counted from 0)")
                unit = (stage * m + i) * slices
                if slices > 1 or len(action) > 3:
                    unit += _slice(rank, index, action, slices)
                home = copies[direction[i]][stage]
                if home != rank:
                    raise ScheduleError(
                        "misplaced", rank, action,
                        f"rank {rank}, action {index}: {action} is done on rank {rank}, but stage "
                        f"{stage} lives on rank {home}")
                bit = _BIT[kind]
                if masks[unit] & bit:
                    first = next(k for k, other in enumerate(actions) if action in other.parts)
                    raise ScheduleError(
                        "twice", rank, action,
                        f"rank {rank}: {action} is done twice, as actions {first} and {index}")
                masks[unit] |= bit
    return masks


def _slice(rank: int, index: int, action: Action, slices: int) -> int:
    part = action.slice
    if (part is None) != (slices == 1) or not 0 <= (part or 0) < slices:
        raise ScheduleError(
            "unknown", rank, action,
            f"rank {rank}, action {index}: {action} names slice {part}, but microbatches are cut "
            f"into {slices} slices")
    return part or 0


def _check_complete(schedule: Schedule, masks: list[int]) -> None:
    """Every unit has one F, and one B or an I and a W; what leaves a rank comes back."""
    whole, split = (sum(_BIT[kind] for kind in kinds) for kinds in ("FB", "FIW"))
    for (stage, i, part), mask in zip(_units(schedule), masks, strict=True):
        if mask in (whole, split):
            continue
        has = {kind for kind in KINDS if mask & _BIT[kind]}
        wants = "FIW" if has & {"I", "W"} else "FB"
        rank = schedule.home(stage, i)
        if wants == "FIW" and "B" in has:
            half = _action("I" if "I" in has else "W", stage, i, part)
            raise ScheduleError(
                "twice", rank, half,
                f"rank {rank}: {_action('B', stage, i, part)} and {half} are both done, but a full "
                "backward B already is I and W")
        wants += "".join(pair for pair in ("EL", "OP") if has & set(pair))
        for kind in wants:
            if kind not in has:
                lost = _action(kind, stage, i, part)
                raise ScheduleError("missing", rank, lost, f"rank {rank}: {lost} is missing")


def _check_order(schedule: Schedule) -> None:
    """What one rank has to do in order: F, R, B; E, L; slices forward up, backward down."""
    where = _where(schedule)
    for action, (rank, index) in where.items():
        kind, stage, i = action[:3]
        part = action[3:]
        before: list[Action] = []
        if kind in "ROE":
            before = [_action("F", stage, i, part)]
        elif kind in "LP":
            before = [_action("E" if kind == "L" else "O", stage, i, part)]
        elif kind in "BI":
            before = [_action(other, stage, i, part) for other in "RLP"]
            if part and part[0] + 1 < schedule.slices:
                before.append(Slice(kind, stage, i, part[0] + 1))
        elif kind == "F" and part and part[0] > 0:
            before = [Slice("F", stage, i, part[0] - 1)]
        for other in before:
            if other in where and where[other][1] > index:
                raise ScheduleError(
                    "disorder", rank, action,
                    f"rank {rank}: {action} (action {index}) comes before {other} (action "
                    f"{where[other][1]}), which it needs")


def _where(schedule: Schedule) -> Where:
    return {part: (r, k) for r, actions in enumerate(schedule.ranks)
            for k, action in enumerate(actions) for part in action.parts}


def _units(schedule: Schedule) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    parts = [()] if schedule.slices == 1 else [(part,) for part in range(schedule.slices)]
    for stage in range(schedule.stages):
        for i in range(schedule.m):
            for part in parts:
                yield stage, i, part


def _action(kind: str, stage: int, i: int, part: tuple[int, ...]) -> Action:
    return Slice(kind, stage, i, part[0]) if part else Action(kind, stage, i)


def _needs(schedule: Schedule, action: Action, where: Where) -> list[Action]:
    """What an action waits for, nearest first."""
    kind, stage, i = action[:3]
    part = action[3:]
    if kind == "F":
        return [_action("F", stage - 1, i, part)] if stage else []
    if kind in "WROELP":
        return [_action({"W": "I", "L": "E", "P": "O"}.get(kind, "F"), stage, i, part)]
    home = [back for gone, back in ((_action(a, stage, i, part), _action(b, stage, i, part))
                                    for a, b in ("EL", "OP")) if gone in where or back in where]
    if stage == schedule.stages - 1:
        return [_action("F", stage, i, part), *home]
    split = _action("I", stage + 1, i, part)
    return [split if split in where else _action("B", stage + 1, i, part), *home]


def _deadlock(schedule: Schedule, position: list[int]) -> ScheduleError:
    """Follow who waits for whom, from the lowest blocked rank, until the chain closes."""
    where = _where(schedule)
    rank = next(r for r, at in enumerate(position) if at < len(schedule.ranks[r]))
    chain: list[tuple[int, Action]] = []
    parts: list[str] = []
    visited: dict[int, int] = {}
    while rank not in visited:
        visited[rank] = len(chain)
        stuck = schedule.ranks[rank][position[rank]]
        wanted = next(other for part in stuck.parts for other in _needs(schedule, part, where)
                      if other not in where or where[other][1] >= position[where[other][0]])
        chain.append((rank, stuck))
        text = f"rank {rank} waits in {stuck} (action {position[rank]}) for {wanted}"
        if wanted not in where:
            parts.append(f"{text}, which no rank does")
            chain.append((schedule.home(wanted.stage, wanted.microbatch), wanted))
            break
        home, index = where[wanted]
        if home == rank:
            which = "is part of it" if index == position[rank] else (
                f"is later on rank {rank} (action {index})")
            parts.append(f"{text}, which {which}")
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
