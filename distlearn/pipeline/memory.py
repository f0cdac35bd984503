"""What a rank keeps while a schedule runs: activations, buffers, weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distlearn.pipeline.action import TRANSFERS, Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule

Change = tuple[float, int, int, float]  # when, order at equal times, pieces, bytes


def peaks(schedule: Schedule, costs: Costs, starts: Sequence[Sequence[float]],
          ends: Sequence[Sequence[float]]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Per rank, the most activations kept at once: in (stage, microbatch) pieces, and in bytes.

    A piece is kept from the start of its F (of its R, if it is recomputed) to the end of its B or
    W; half of it may go at I. In a pair the forward's is there before the backward's is freed.
    """
    if _moves(schedule) or costs.slice_size is not None:
        sums = [_running(schedule, costs, starts, ends, r) for r in range(schedule.p)]
        return (tuple(max(pieces for _, pieces, _ in row) for row in sums),
                tuple(max(size for _, _, size in row) for row in sums))
    kept = costs.per_stage("activation", schedule.stages)
    after_I = costs.per_stage("activation_after_I", schedule.stages)
    most, most_bytes = [], []
    for row in schedule.ranks:  # one rank does one thing at a time: its order is enough
        count = peak = 0
        size = peak_size = 0.0
        for action in row:
            for kind, stage, *_ in (action,) if len(action) < 5 else action.parts:
                if kind == "F":
                    count += 1
                    size += kept[stage]
                    if count > peak:
                        peak = count
                    if size > peak_size:
                        peak_size = size
                elif kind == "I":
                    size -= kept[stage] - after_I[stage]
                    if size > peak_size:  # I adds what W needs of the output's gradient
                        peak_size = size
                else:
                    count -= 1
                    size -= kept[stage] if kind == "B" else after_I[stage]
        most.append(peak)
        most_bytes.append(peak_size)
    return tuple(most), tuple(most_bytes)


def curve(schedule: Schedule, costs: Costs, starts: Sequence[Sequence[float]],
          ends: Sequence[Sequence[float]], rank: int, pieces_only: bool = False
          ) -> list[tuple[float, int, float]]:
    """What ``rank`` keeps over time: (time, pieces from then on, bytes), from (0, 0, 0) on.

    With ``pieces_only``, the points at which pieces come or go. What is freed at a moment makes
    room for what is taken at that moment. Evicted activations are on both ranks while they travel.
    """
    result: list[tuple[float, int, float]] = []
    for point in _running(schedule, costs, starts, ends, rank, pieces_only):
        if result and result[-1][0] == point[0]:
            result[-1] = point
        else:
            result.append(point)
    return result


def _running(schedule: Schedule, costs: Costs, starts: Sequence[Sequence[float]],
             ends: Sequence[Sequence[float]], rank: int, pieces_only: bool = False
             ) -> list[tuple[float, int, float]]:
    """The curve with every change, also those at one time."""
    changes = sorted(_changes(schedule, costs, starts, ends, rank), key=lambda c: c[:2])
    result, pieces, size = [(0.0, 0, 0.0)], 0, 0.0
    for time, _, more, more_bytes in changes:
        pieces, size = pieces + more, size + more_bytes
        if more or not pieces_only:
            result.append((time, pieces, size))
    return result


def _moves(schedule: Schedule) -> bool:
    return any(a[0] in TRANSFERS or a[0] == "R" for row in schedule.ranks for a in row)


def _changes(schedule: Schedule, costs: Costs, starts: Sequence[Sequence[float]],
             ends: Sequence[Sequence[float]], rank: int) -> Iterator[Change]:
    kept = costs.per_stage("activation", schedule.stages)
    after_I = costs.per_stage("activation_after_I", schedule.stages)
    checkpoint = costs.per_stage("checkpoint", schedule.stages)
    share = costs.per_slice("slice_size", schedule.slices)
    redone = {a[1:] for row in schedule.ranks for a in row if a[0] == "R"}
    for home, row in enumerate(schedule.ranks):
        mine = home == rank
        if not mine and not (schedule.partner and schedule.partner[home] == rank):
            continue
        for k, (action, start, end) in enumerate(zip(row, starts[home], ends[home], strict=True)):
            begun, done = 2 * k + 1, 2 * k + 2  # a rank's own changes go in its order
            for part in action.parts:
                kind, stage, size = part[0], part[1], share[part.slice or 0]
                if not mine:  # the partner's: free at first, take at last
                    if kind == "E":
                        yield start, 2 * len(row) + k, 1, size * kept[stage]
                    elif kind == "L":
                        yield end, -1, -1, -size * kept[stage]
                elif kind == "F" and part[1:] in redone:
                    yield start, begun, 0, size * checkpoint[stage]
                elif kind == "R":
                    yield start, begun, 1, size * (kept[stage] - checkpoint[stage])
                elif kind in "FLP":
                    yield start, begun, 1, size * kept[stage]
                elif kind == "I":
                    yield end, done, 0, size * (after_I[stage] - kept[stage])
                elif kind in "BEO":
                    yield end, done, -1, -size * kept[stage]
                else:
                    yield end, done, -1, -size * after_I[stage]


def weight_versions(schedule: Schedule, rank: int) -> int:
    """How many versions of its weights a rank keeps at its fullest moment; 1 if synchronous.

    From the oldest version that is still to be read to the newest one. A version read before it
    exists is predicted, which takes one more copy.
    """
    if not schedule.versions:
        return 1
    versions = schedule.versions[rank]
    steps = schedule.steps[rank] if schedule.steps else ()
    oldest, still = [0] * len(versions), max(versions, default=0)
    for k in range(len(versions) - 1, -1, -1):
        still = min(still, versions[k])
        oldest[k] = still
    most, newest, predicted = 1, 0, 0
    for k, needed in enumerate(oldest):
        while newest < len(steps) and steps[newest] <= k:
            newest += 1
        predicted = max(predicted, int(versions[k] > newest))
        most = max(most, newest - min(needed, newest) + 1)
    return most + predicted


def buffers(schedule: Schedule, costs: Costs, starts: Sequence[Sequence[float]],
            ends: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Per rank, the most bytes received and not yet used: inputs and gradients that wait.

    A message is held from its arrival to the end of the action that it feeds. With latency and
    bandwidth it has arrived at the latest when that action starts, which is what is counted for
    transfers that are still on the way.
    """
    message = costs.per_stage("message", schedule.stages)
    if not any(message):
        return (0.0,) * schedule.p
    share = costs.per_slice("slice_size", schedule.slices)
    end_of = {part: (r, end) for r, row in enumerate(schedule.ranks)
              for action, end in zip(row, ends[r], strict=True) for part in action.parts}
    peaks_found = []
    for rank, row in enumerate(schedule.ranks):
        changes: list[tuple[float, float]] = []
        for action, start, end in zip(row, starts[rank], ends[rank], strict=True):
            for part in action.parts:
                source = _source(schedule, part, end_of)
                if source is not None and source[0] != rank:
                    size = message[min(part[1], source[2])] * share[part.slice or 0]
                    changes += [(min(start, source[1]), size), (end, -size)]
        held = peak = 0.0
        for _, change in sorted(changes):
            held += change
            peak = max(peak, held)
        peaks_found.append(peak)
    return tuple(peaks_found)


def link_bytes(schedule: Schedule, costs: Costs) -> dict[tuple[int, int], float]:
    """Bytes sent over each link (from rank, to rank) in one run: outputs and gradients.

    Swapped activations (kind E, L) count with ``costs.activation``.
    """
    message = costs.per_stage("message", schedule.stages)
    kept = costs.per_stage("activation", schedule.stages)
    share = costs.per_slice("slice_size", schedule.slices)
    sent: dict[tuple[int, int], float] = {}
    for rank, row in enumerate(schedule.ranks):
        for action in row:
            for part in action.parts:
                kind, stage, i = part[:3]
                size = share[part.slice or 0]
                if kind in "EL":
                    other = schedule.partner[rank]
                    link = (rank, other) if kind == "E" else (other, rank)
                    sent[link] = sent.get(link, 0.0) + size * kept[stage]
                    continue
                target = stage + (1 if kind == "F" else -1)
                if kind not in "FBI" or not 0 <= target < schedule.stages:
                    continue
                home = schedule.home(target, i)
                if home != rank:
                    size *= message[min(stage, target)]
                    sent[rank, home] = sent.get((rank, home), 0.0) + size
    return sent


def _source(schedule: Schedule, part: Action, end_of: dict[Action, tuple[int, float]]
            ) -> tuple[int, float, int] | None:
    """(rank, when it ended, stage) of the action on another stage that feeds this one."""
    kind, stage = part[0], part[1]
    if kind == "F" and stage > 0:
        options = [("F", stage - 1)]
    elif kind in "BI" and stage < schedule.stages - 1:
        options = [("B", stage + 1), ("I", stage + 1)]
    else:
        return None
    for other, at in options:
        found = end_of.get((other, at, *part[2:]))  # type: ignore[call-overload]
        if found is not None:
            return found[0], found[1], at
    return None
