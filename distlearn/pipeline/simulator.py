"""When does each action of a schedule run? The simulated reading of a pipeline."""

from __future__ import annotations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.timeline import Event, Timeline
from distlearn.pipeline.validate import run_in_order


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
    comm, p = costs.comm, len(schedule.ranks)
    finished: dict[Action, tuple[int, float]] = {}
    events: list[list[Event]] = [[] for _ in range(p)]
    free, busy = [0.0] * p, [0.0] * p
    count, peak_count = [0] * p, [0] * p
    size, peak_size = [0.0] * p, [0.0] * p

    def run(rank: int, index: int, action: Action, waited_for: tuple[Action, ...]) -> None:
        start = free[rank]
        for other in waited_for:
            other_rank, end = finished[other]
            start = max(start, end if other_rank == rank else end + comm)
        kind, stage, _ = action
        duration = seconds[kind][stage]
        free[rank] = start + duration
        busy[rank] += duration
        finished[action] = (rank, free[rank])
        events[rank].append(Event(rank, action, start, free[rank]))
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

    run_in_order(schedule, run)
    spans = [row[-1].end - row[0].start for row in events if row]
    return Timeline(
        schedule=schedule,
        costs=costs,
        events=tuple(event for row in events for event in row),
        makespan=max(free, default=0.0),
        busy=tuple(busy),
        longest_span=max(spans, default=0.0),
        peak_activations=tuple(peak_count),
        peak_bytes=tuple(peak_size),
    )
