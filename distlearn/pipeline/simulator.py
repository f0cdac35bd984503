"""When does each action of a schedule run? The simulated reading of a pipeline."""

from __future__ import annotations

from distlearn.pipeline.action import TRANSFERS
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.memory import peaks
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.timeline import Timeline
from distlearn.pipeline.validate import check_placed, run


def simulate(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """Run a schedule in simulated time: each rank does its list in order, as early as it can.

    An action starts when its rank is free and everything it depends on has ended; what comes from
    another rank arrives ``costs.comm`` later, and later still if a link has a bandwidth. Transfers
    do not keep a rank busy, unless ``costs.blocking``.

    Parameters
    ----------
    schedule : Schedule
    costs : Costs, optional
        Default: F = I = W = 1, B = 2, transfers free.

    Returns
    -------
    Timeline

    Raises
    ------
    ScheduleError
        If the schedule deadlocks or waits for an action that nobody does, or an action is there
        twice or on the wrong rank. `validate` also finds what is missing.
    ValueError
        If the costs are for another number of stages.

    Notes
    -----
    Cost: linear in the number of actions.

    Examples
    --------
    >>> from distlearn.pipeline import build
    >>> timeline = simulate(build("1f1b", p=4, m=8))
    >>> timeline.makespan, timeline.bubble_over_ideal, timeline.peak_activations
    (33.0, 0.375, (4, 3, 2, 1))
    """
    costs = costs if costs is not None else Costs()
    if not isinstance(costs, Costs):
        raise TypeError(f"simulate needs a Costs; got {costs!r}")
    check_placed(schedule)
    starts, ends = run(schedule, costs)
    busy = _busy(schedule, costs)
    spans = [end[-1] - start[0] for start, end in zip(starts, ends, strict=True) if start]
    peak_activations, peak_bytes = peaks(schedule, costs, starts, ends)
    return Timeline(
        schedule=schedule,
        costs=costs,
        starts=tuple(map(tuple, starts)),
        ends=tuple(map(tuple, ends)),
        makespan=max((row[-1] for row in ends if row), default=0.0),
        busy=busy,
        longest_span=max(spans, default=0.0),
        peak_activations=peak_activations,
        peak_bytes=peak_bytes,
    )


def _busy(schedule: Schedule, costs: Costs) -> tuple[float, ...]:
    """Per rank, the sum of its durations (not of end - start, which would be rounded)."""
    stages, scale = schedule.stages, costs.slice_scale
    seconds = {kind: costs.per_stage(kind, stages) for kind in "FBIWR"}
    pair = None if costs.pair is None else costs.per_stage("pair", stages)
    totals = []
    for row in schedule.ranks:
        total = 0.0
        for action in row:
            kind = action[0]
            if len(action) == 5:
                parts = action.parts
                total += (sum(seconds[part[0]][part[1]] for part in parts) if pair is None
                          else pair[action[1]])
            elif kind not in TRANSFERS:
                duration = seconds[kind][action[1]]
                total += duration if scale is None else duration * scale[action.slice or 0]
        totals.append(total)
    return tuple(totals)
