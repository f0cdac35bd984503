"""A timeline drawn in characters: one row per rank, durations to scale, readable without colour."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.text import Text

from distlearn.pipeline import Event, Timeline
from distlearn.pipeline.action import TRANSFERS

# The colours of distlearn.plots.PALETTE["light"] (a test compares them): importing the figures
# would cost a second of matplotlib for four numbers.
COLOURS = {"F": "#1249a3", "B": "#b44a05", "I": "#964273", "W": "#208554"}
FILL = {"F": "-", "B": "=", "I": "~", "W": "+"}
WORDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
_LINES = 60  # how long a wrapped drawing may get before it is drawn small instead


@dataclass(frozen=True)
class Drawing:
    """A timeline cut into bands of rows.

    Attributes
    ----------
    bands : tuple of Text
        Each band is the rows of all ranks and an axis below, from left to right in time.
    scale : float
        Columns per unit of time.
    labelled : bool
        Whether every box is wide enough for its label. If not, a column shows what takes most of
        its time, by letter.
    """

    bands: tuple[Text, ...]
    scale: float
    labelled: bool


def draw(timeline: Timeline, width: int, wrap: bool | None = None,
         idle: str = "·") -> Drawing:
    """Draw a timeline in ``width`` columns.

    Boxes carry the kind and the microbatch (with more than one stage per rank, the stage too) as
    long as all of them fit, in several bands one below the other if need be.

    Parameters
    ----------
    timeline : Timeline
    width : int
        Columns to draw in, names of the ranks included.
    wrap : bool, optional
        True: wrap however long it gets. False: one band. Default: wrap up to 60 lines.
    idle : str
        The character of idle time.
    """
    ranks = len(timeline.schedule.ranks)
    margin = len(f"rank {ranks - 1} ")
    room = max(width - margin - 1, 8)  # one column less: an axis label may stick out
    makespan = timeline.makespan
    if makespan <= 0:
        return Drawing((), 0.0, labelled=False)
    needed = max(((len(_label(timeline, event)) / (event.end - event.start))
                  for event in timeline.events
                  if event.end > event.start and event.action.kind not in TRANSFERS), default=1.0)
    quantum = _quantum(timeline)
    whole = _whole_up(needed, quantum)
    needed = whole if whole <= 1.5 * needed else needed
    # A short run need not be stretched over the whole screen.
    fit = _whole(min(room / makespan, 3 * needed), quantum)
    lines = math.ceil(makespan * needed / room) * (ranks + 2)
    wrapped = wrap if wrap is not None else lines <= _LINES
    labelled = wrapped or fit >= needed
    scale = fit if fit >= needed or not wrapped else needed
    columns = max(round(makespan * scale), 1)
    rows = [_row(timeline, rank, scale, columns, labelled, idle) for rank in range(ranks)]
    bands = []
    step = math.ceil(columns / math.ceil(columns / room))  # bands of equal width, which end
    unit = max(round(quantum * scale), 1)  # where boxes do
    if unit < room:
        step = min(math.ceil(step / unit) * unit, room // unit * unit)
    for left in range(0, columns, step):
        right = min(left + step, columns)
        band = [Text.assemble((f"rank {rank}".ljust(margin), "bold"), row[left:right])
                for rank, row in enumerate(rows)]
        axis = " " * margin + _axis(left, right, scale, width - margin)
        bands.append(Text("\n").join([*band, Text(axis, style="dim")]))
    return Drawing(tuple(bands), scale, labelled)


def legend(timeline: Timeline, drawing: Drawing, idle: str = "·") -> Text:
    """Say what letters, numbers and characters mean, and the scale if boxes have no labels."""
    there = {part.kind for row in timeline.schedule.ranks for a in row for part in a.parts}
    parts = []
    for kind in (k for k in WORDS if k in there):
        parts.append(Text.assemble((f" {kind} ", _style(kind)), " " + WORDS[kind]))
    if "R" in there:
        parts.append(Text.assemble((" R ", _style("R")), " recomputation"))
    parts.append(Text.assemble((idle * 3, "dim"), " idle"))
    text = Text("   ").join(parts)
    if not drawing.bands:
        text.append("\nNo action takes any time, so there is nothing to draw.")
    elif not drawing.labelled:
        text.append(f"\nOne column is {1 / drawing.scale:.3g} of time, named by what takes most "
                    "of it. Wider (--width), wrapped (--wrap) or as --svg, each box shows.")
    elif _plain(timeline):
        text.append("\nF2 is the forward of microbatch 2.")
    elif timeline.schedule.slices > 1:
        text.append("\nF1.2.0 is the forward of stage 1, microbatch 2, slice 0.")
    else:
        text.append("\nF1.2 is the forward of stage 1, microbatch 2.")
    return text


def _plain(timeline: Timeline) -> bool:
    """Whether a kind and a microbatch name an action of a rank."""
    made = timeline.schedule
    return made.v == 1 and made.slices == 1 and not made.copies


def _label(timeline: Timeline, event: Event) -> str:
    action = event.action
    plain = _plain(timeline) and len(action.parts) == 1
    return f"{action.kind}{action.microbatch}" if plain else str(action)


def _style(kind: str) -> str:
    return f"bold #ffffff on {_colour(kind)}"


def _colour(kind: str) -> str:
    """A pair looks like its forward, and so does what is done again."""
    return COLOURS["F" if kind[0] == "R" else kind[0]]


def _row(timeline: Timeline, rank: int, scale: float, columns: int, labelled: bool,
         idle: str) -> Text:
    row = Text()
    if labelled:
        for event in _computed(timeline, rank):
            left, right = round(event.start * scale), round(event.end * scale)
            row.append(idle * (left - len(row)), style="dim")
            label = _label(timeline, event)[: right - left]
            kind = event.action.kind
            row.append(label, style=_style(kind))
            rest = FILL.get(kind[0], ":") * (right - left - len(label))
            row.append(rest, style=f"#dddddd on {_colour(kind)}")
    else:
        for kind in _dominant(timeline, rank, scale, columns):
            row.append(kind[:1] or idle, style=_style(kind) if kind else "dim")
    row.append(idle * (columns - len(row)), style="dim")
    return row


def _dominant(timeline: Timeline, rank: int, scale: float, columns: int) -> Iterator[str]:
    """For each column, the kind that takes most of its time; empty if idle does."""
    shares = [{"": 1.0} for _ in range(columns)]
    for event in _computed(timeline, rank):
        kind, start, end = event.action.kind, event.start * scale, event.end * scale
        for column in range(int(start), min(math.ceil(end), columns)):
            part = min(end, column + 1) - max(start, column)
            share = shares[column]
            share[kind] = share.get(kind, 0.0) + part
            share[""] -= part
    return (max(share, key=share.__getitem__) for share in shares)


def _computed(timeline: Timeline, rank: int) -> list[Event]:
    """A rank's events without the transfers that run beside them."""
    return [event for event in timeline.rank_events(rank) if event.action.kind not in TRANSFERS]


def _quantum(timeline: Timeline) -> float:
    """A time of which every start and end is a multiple; 0 if the times have no common one.

    With whole columns per quantum, equal durations are drawn equally wide.
    """
    costs, stages = timeline.costs, timeline.schedule.stages
    kinds = {part.kind for row in timeline.schedule.ranks for a in row for part in a.parts}
    times = {costs.one_comm(), *(x for kind in kinds - TRANSFERS
                                 for x in costs.per_stage(kind, stages))} - {0.0}
    fractions = [Fraction(time).limit_denominator(1000) for time in times]
    if any(abs(float(f) - t) > 1e-9 * t for f, t in zip(fractions, times, strict=True)):
        return 0.0
    denominator = math.lcm(*(f.denominator for f in fractions))
    return math.gcd(*(int(f * denominator) for f in fractions)) / denominator


def _whole(scale: float, quantum: float) -> float:
    columns = scale * quantum
    return math.floor(columns) / quantum if columns >= 1 else scale


def _whole_up(scale: float, quantum: float) -> float:
    columns = scale * quantum
    return max(math.ceil(columns - 1e-9), 1) / quantum if columns > 0 else scale


def _axis(left: int, right: int, scale: float, width: int) -> str:
    """Times below their columns, at round steps that leave room for the numbers."""
    step = _round_step(9 / scale)
    first = math.ceil(left / scale / step - 1e-9)
    axis = ""
    for k in range(first, math.floor(right / scale / step + 1e-9) + 1):
        column = round(k * step * scale) - left
        number = f"{k * step:.10g}"
        if (not axis or column > len(axis)) and column + len(number) <= width:
            axis = axis.ljust(column) + number
    return axis


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... (and 0.5, 0.2, ...) that is at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


class _Console(Console):
    """A console that leaves a broken pipe to the place where all errors are handled."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(width: int | None = None) -> Console:
    """A console on stdout: as wide as the terminal, 80 columns in a pipe; NO_COLOR is heeded."""
    if width is None and "COLUMNS" not in os.environ and not sys.stdout.isatty():
        width = 80
    return _Console(width=width)
