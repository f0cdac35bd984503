"""Mario: recompute activations, in the time that the pipeline is idle anyway.

Liu et al., "Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism", PPoPP 2025,
section 4. Works on any schedule: a forward keeps only its input; a recomputation R brings the rest
back before the backward. R needs no gradient, so it runs while the rank would wait for one; R is
left out where the backward follows its forward at once; and with the memory that is saved,
forwards move up into the idle time before the first backward.

Bubble: the base's, less the recomputations that fall into it. Peak: on most bases one whole
activation per rank, and the inputs (``costs.checkpoint``) of those under way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distlearn.pipeline.action import Action, Slice
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.simulator import simulate
from distlearn.pipeline.validate import ScheduleError


def order(p: int, m: int, v: int = 1, base: str = "1f1b", prepose: bool = True,
          costs: Costs | None = None, **options: Any) -> Schedule:
    """Another schedule's order with recomputations.

    Parameters
    ----------
    p, m, v : int
        As for the base.
    base : str
        Name of the schedule to start from.
    prepose : bool
        Whether forwards may move up into the idle time before a rank's first backward.
    costs : Costs, optional
        Times by which to see the idle time. Default: F = I = W = R.
    **options
        Options of the base.
    """
    from distlearn.pipeline.schedules import build  # the registry holds this module, too

    if base == "mario":
        raise ValueError("mario needs another schedule as base; got base='mario'")
    if "v" not in options and v != 1:
        options["v"] = v
    start = build(base, p, m, **options)
    schedule = replace(start, name="mario", ranks=tuple(
        tuple(_checkpointed(row)) for row in start.ranks), versions=(), steps=())
    if any(a.kind in "ELOP" for row in start.ranks for a in row) or start.versions:
        raise ValueError(f"mario needs a synchronous base without swaps; got base={base!r}")
    return _prepose(schedule, costs if costs is not None else Costs()) if prepose else schedule


def _checkpointed(row: tuple[Action, ...]) -> list[Action]:
    """R right before each B or I, except where its own forward is the action before."""
    result: list[Action] = []
    for k, action in enumerate(row):
        for part in action.parts:
            before = row[k - 1].parts[-1] if k else None
            own = before is not None and before == ("F", *part[1:])
            if part.kind in "BI" and not own:
                result.append(_recompute(part))
        result.append(action)
    return result


def _recompute(part: Action) -> Action:
    return Slice("R", *part[1:]) if len(part) == 4 else Action("R", part.stage, part.microbatch)


def _prepose(schedule: Schedule, costs: Costs) -> Schedule:
    """Rank by rank, move forwards before the first R or backward, as long as nothing gets later.

    And as long as no rank keeps more whole activations than before.
    """
    timeline = simulate(schedule, costs)
    best, best_time, most = schedule, timeline.makespan, max(timeline.peak_activations)
    for rank in range(schedule.p):
        for _ in range(schedule.m):
            rows = list(best.ranks)
            rows[rank] = _one_forward_up(rows[rank])
            trial = replace(best, ranks=tuple(rows))
            if rows[rank] == best.ranks[rank]:
                break
            try:
                timeline = simulate(trial, costs)
            except ScheduleError:  # that forward needs a backward in between
                break
            if timeline.makespan > best_time or max(timeline.peak_activations) > most:
                break
            best, best_time = trial, timeline.makespan
    return best


def _one_forward_up(row: tuple[Action, ...]) -> tuple[Action, ...]:
    first = next((k for k, a in enumerate(row) if a.kind != "F"), len(row))
    later = next((k for k in range(first, len(row)) if row[k].kind == "F"), None)
    if later is None:
        return row
    return (*row[:first], row[later], *row[first:later], *row[later + 1:])
