"""What a picture of a timeline shows, whoever draws it: boxes, transfers, shades and words.

A merged pair is one box in two halves, its first action above. A transfer does not keep the rank
busy: it is a mark below the row. Shades tell a rank's chunks, or the copies of the model, apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from distlearn.pipeline import Action, Event, Timeline
from distlearn.plots.numbers import number, percent
from distlearn.plots.palette import KIND_NAMES

COMPUTED, TRANSFERS = "FBIWR", "ELOP"
LEAVING = "EO"  # transfers away from the rank; the others bring back


@dataclass(frozen=True)
class Piece:
    """A box, or half of one.

    Attributes
    ----------
    event : Event
        What runs.
    part : Action
        What the box is for: the event's action, or one of a pair's.
    shade : int
        Its lightness: 0 is the kind's own colour.
    half : int or None
        0 for the upper half of the row, 1 for the lower one, None for the whole height.
    seconds : float
        How long it runs, as the costs say, without the rounding of start and end.
    """

    event: Event
    part: Action
    shade: int
    half: int | None
    seconds: float

    @property
    def lines(self) -> tuple[str, ...]:
        """Its number: the microbatch; the slice in a line below, or after a dot in a half."""
        microbatch, part = str(self.part.microbatch), self.part.slice
        if part is None:
            return (microbatch,)
        return (microbatch, str(part)) if self.half is None else (f"{microbatch}.{part}",)


def pieces(timeline: Timeline) -> list[Piece]:
    """The boxes of all ranks, in the order of the events; transfers have none."""
    shades = _shades(timeline)
    direction = timeline.schedule.direction or (0,) * timeline.schedule.m
    seconds = {kind: _seconds(timeline, kind) for kind in kinds_of(timeline) if kind in COMPUTED}
    result = []
    for event in timeline.events:
        action = event.action
        if action.kind in TRANSFERS:
            continue
        paired = len(action.parts) > 1
        for half, part in enumerate(action.parts):
            result.append(Piece(
                event, part, shades[direction[part.microbatch]][part.stage],
                half if paired else None,
                event.end - event.start if paired
                else seconds[part.kind][part.slice or 0][part.stage]))
    return result


def transfers(timeline: Timeline) -> list[Event]:
    """The evictions, loads, offloads and prefetches, rank by rank."""
    return [event for event in timeline.events if event.action.kind in TRANSFERS]


def widest(timeline: Timeline, half: bool) -> int:
    """Characters that the widest number in a box (or half of one) may have."""
    s = timeline.schedule
    microbatch = len(str(s.m - 1))
    if s.slices == 1:
        return microbatch
    part = len(str(s.slices - 1))
    return microbatch + 1 + part if half else max(microbatch, part)


def tall(timeline: Timeline) -> bool:
    """Whether the boxes hold two numbers, one above the other."""
    return timeline.schedule.slices > 1 or any(
        len(event.action.parts) > 1 for event in timeline.events)


def shades_of(timeline: Timeline) -> int:
    """How many shades of each kind there may be: chunks of a rank, for each copy of the model."""
    return timeline.schedule.v * max(len(timeline.schedule.copies), 1)


def pieces_per_microbatch(timeline: Timeline) -> int:
    """How many activations, as the simulation counts them, are a rank's whole microbatch."""
    return timeline.schedule.v * timeline.schedule.slices


def kinds_of(timeline: Timeline) -> list[str]:
    """The kinds of action that occur: single ones in the order F, B, I, W, R, pairs, transfers."""
    there = {event.action.kind for event in timeline.events}
    return [*(kind for kind in COMPUTED if kind in there),
            *sorted(kind for kind in there if "&" in kind),
            *(kind for kind in TRANSFERS if kind in there)]


def duration_text(timeline: Timeline, kind: str) -> str:
    """What an action of this kind takes: one number, or the range over stages and slices."""
    if "&" in kind:
        seconds = [event.end - event.start for event in timeline.events
                   if event.action.kind == kind]
    else:
        seconds = [time for row in _seconds(timeline, kind) for time in row]
    least, most = number(min(seconds)), number(max(seconds))
    return least if least == most else f"{least} to {most}"


def kind_text(timeline: Timeline, kind: str) -> str:
    """What the legend says of a kind: letter, name and duration."""
    name = (kind.replace("&", " and ") + " overlapped" if "&" in kind
            else f"{kind} {KIND_NAMES[kind]}")
    return f"{name}: {duration_text(timeline, kind)}"


def shade_text(timeline: Timeline) -> str:
    """What the shades stand for; empty if there is one."""
    v, copies = timeline.schedule.v, len(timeline.schedule.copies)
    if copies > 1 and v > 1:
        return f"shades: v x copy of the model (0 to {copies - 1}) + chunk (0 to {v - 1})"
    if copies > 1:
        return f"shades: copies 0 to {copies - 1} of the model"
    return f"shades: chunks 0 to {v - 1} of a rank" if v > 1 else ""


def further_notes(timeline: Timeline) -> list[str]:
    """What else the legend has to say: how slices are written, where transfers are."""
    notes = []
    if timeline.schedule.slices > 1:
        notes.append("numbers: microbatch, below it the slice")
    if transfers(timeline):
        notes.append("marks below a row: transfers beside the work")
    return notes


def describe(timeline: Timeline, unit: str = "") -> str:
    """The numbers of a timeline in words: the picture's text alternative."""
    s = timeline.schedule
    after = f" {unit}" if unit else ""
    whole = pieces_per_microbatch(timeline)
    peaks = ", ".join(number(peak / whole) for peak in timeline.peak_activations)
    sliced = f" in {s.slices} slices each" if s.slices > 1 else ""
    return (
        f"Schedule {s.name} with p={s.p} ranks, m={s.m} microbatches{sliced}, v={s.v} "
        f"{'stage' if s.v == 1 else 'stages'} per rank"
        + (f" in each of {len(s.copies)} copies of the model" if s.copies else "") + ". "
        f"Makespan {number(timeline.makespan)}{after}. "
        f"Bubble: {percent(timeline.bubble_fraction)} of the makespan, "
        f"{percent(timeline.bubble_over_ideal)} of the ideal time. "
        + _extras(timeline)
        + f"Most activations kept, in whole microbatches, from rank 0 on: {peaks}."
    )


def _extras(timeline: Timeline) -> str:
    """A sentence for recomputations, pairs and transfers, each where they occur."""
    count: dict[str, int] = {}
    for event in timeline.events:
        count[event.action.kind] = count.get(event.action.kind, 0) + 1
    text = ""
    for kind in kinds_of(timeline):
        if "&" in kind:
            text += f"Pairs of {kind.replace('&', ' and ')} run overlapped: {count[kind]}. "
        elif kind == "R":
            text += f"Recomputations: {count[kind]}. "
    moved = [f"{kind} {KIND_NAMES[kind]}: {count[kind]}" for kind in kinds_of(timeline)
             if kind in TRANSFERS]
    if moved:
        text += f"Transfers beside the work: {', '.join(moved)}. "
    return text


def _seconds(timeline: Timeline, kind: str) -> list[list[float]]:
    """``[slice][stage]``: how long an action of a single kind takes."""
    costs = timeline.costs
    stages = costs.per_stage("swap" if kind in TRANSFERS else kind, timeline.schedule.stages)
    if costs.slice_scale is None or kind in TRANSFERS:
        return [stages] * timeline.schedule.slices
    return [[time * scale for time in stages] for scale in costs.slice_scale]


def _shades(timeline: Timeline) -> list[list[int]]:
    """``[copy][stage]``: which of its rank's stages it is, after those of the copies before."""
    s = timeline.schedule
    return [[copy * s.v + chunk for chunk in _chunks(s.p, placement)]
            for copy, placement in enumerate(s.placements)]


def _chunks(p: int, placement: Iterable[int]) -> list[int]:
    """For each stage, which of its rank's stages it is, 0-based."""
    seen = [0] * p
    chunks = []
    for rank in placement:
        chunks.append(seen[rank])
        seen[rank] += 1
    return chunks
