"""Mario: recompute activations, in the time that the pipeline is idle anyway.

Liu et al., "Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism", PPoPP 2025,
section 4. Works on any schedule: a forward keeps only its input; a recomputation R brings the rest
back before the backward. R needs no gradient, so it runs while the rank would wait for one; R is
left out where the backward follows its forward at once; and with the memory that is saved,
forwards move up into the idle time before the first backward.

Bubble: on gpipe the base's own, ``(p-1)(F+B)``: all ranks recompute alike. On 1f1b the last rank
never does, and waits for those that do: ``(p-1)(F+B) + max(0, m-3) R`` for R = F, B = 2F. On other
bases there is no closed formula. Peak: on bases with a whole, unmerged backward one activation per
rank, and the inputs (``costs.checkpoint``) of those under way; a split backward keeps it until W.
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


def bubble_time(p: int, m: int, costs: Costs, v: int = 1, base: str = "1f1b",
                prepose: bool = True) -> float:
    """Idle time of the rank that idles most: on gpipe ``(p-1)(F+B)``, whatever R is.

    On 1f1b, for p >= 2, R = F and B = 2F, ``(p-1)(F+B) + max(0, m-2) R``; moving forwards up
    (``prepose``) saves one R if m >= 3. Without options of the base.
    """
    F, B, _, _ = costs.uniform()
    R = costs.R
    known = base == "gpipe" or (base == "1f1b" and R == F and B == 2 * F)
    if v != 1 or not known:
        raise ValueError("mario's bubble formula needs base 'gpipe', or '1f1b' with R = F and "
                         f"B = 2F; got base={base!r} v={v} F={F} B={B} R={R}")
    again = 0.0 if base == "gpipe" or p == 1 else max(0, m - (3 if prepose else 2)) * F
    return (p - 1) * (F + B) + again


def peak_activations(p: int, m: int, r: int, v: int = 1, base: str = "1f1b", prepose: bool = True,
                     costs: Costs | None = None, **options: Any) -> int:
    """Whole activations kept by rank r: ``1``, if the base's backward is neither split nor merged.

    An activation is whole from its R (or its F, if B follows at once) to its B.
    """
    if base not in WHOLE or options.get("overlap") or options.get("method", "direct") != "direct":
        raise ValueError(f"mario's peak formula needs a base out of {', '.join(WHOLE)} without "
                         f"overlap or method; got base={base!r} {options}")
    return 1


WHOLE = ("gpipe", "1f1b", "dapple", "interleaved_1f1b", "breadth_first", "chimera", "hanayo",
         "1f1b_v", "seq1f1b", "terapipe")


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
