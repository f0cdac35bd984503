"""When does each action of a schedule run? The simulated reading of a pipeline."""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.timeline import Timeline
from distlearn.pipeline.validate import Step, in_order


def simulate(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """Run a schedule in simulated time: each rank does its list in order, as early as it can.

    An action starts when its rank is free and everything it depends on has ended; what comes from
    another rank arrives ``costs.comm`` later. Transfers do not keep a rank busy.

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
        If the schedule deadlocks or waits for an action that nobody does. `validate` also finds
        what is there twice or on the wrong rank.
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
    seconds = {kind: costs.per_stage(kind, schedule.stages) for kind in "FBIW"}
    kept = costs.per_stage("activation", schedule.stages)
    kept_after_I = costs.per_stage("activation_after_I", schedule.stages)
    home, comm, p = schedule.placement, costs.comm, len(schedule.ranks)
    ended: dict[Step, float] = {}
    starts: list[list[float]] = [[] for _ in range(p)]
    ends: list[list[float]] = [[] for _ in range(p)]
    free, busy = [0.0] * p, [0.0] * p
    count, peak_count = [0] * p, [0] * p
    size, peak_size = [0.0] * p, [0.0] * p

    for rank, action, waited_for in in_order(schedule):
        start = free[rank]
        for other in waited_for:
            arrived = ended[other] if home[other[1]] == rank else ended[other] + comm
            if arrived > start:
                start = arrived
        kind, stage, _ = action
        duration = seconds[kind][stage]
        free[rank] = ended[action] = start + duration
        busy[rank] += duration
        starts[rank].append(start)
        ends[rank].append(free[rank])
        if kind == "F":
            count[rank] += 1
            size[rank] += kept[stage]
            peak_count[rank] = max(peak_count[rank], count[rank])
            peak_size[rank] = max(peak_size[rank], size[rank])
        elif kind == "I":
            size[rank] -= kept[stage] - kept_after_I[stage]
        else:
            count[rank] -= 1
            size[rank] -= kept[stage] if kind == "B" else kept_after_I[stage]

    spans = [end[-1] - start[0] for start, end in zip(starts, ends, strict=True) if start]
    return Timeline(
        schedule=schedule,
        costs=costs,
        starts=tuple(map(tuple, starts)),
        ends=tuple(map(tuple, ends)),
        makespan=max(free, default=0.0),
        busy=tuple(busy),
        longest_span=max(spans, default=0.0),
        peak_activations=tuple(peak_count),
        peak_bytes=tuple(peak_size),
    )
