"""The numbers of a timeline, each with its definition, and the closed formula beside it."""

from __future__ import annotations

import inspect
import math
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from distlearn.pipeline import Timeline, bubble_span, bubble_time, definition, peak_activations


@dataclass(frozen=True)
class Formula:
    """What a schedule's closed formulas say, beside the simulation.

    Attributes
    ----------
    idle : float or None
        Idle time of a rank; None where the formula does not hold.
    peaks : tuple of int or None
        Most activations kept, per rank; None where the formula does not hold.
    span : str
        Within which span a rank idles: ``makespan`` or ``longest_span``.
    text : str
        The formula in words, or why there is none.
    """

    idle: float | None
    peaks: tuple[int, ...] | None
    text: str
    span: str = "makespan"

    @classmethod
    def of(cls, timeline: Timeline, options: dict[str, Any]) -> Formula:
        """Evaluate the formulas of a schedule that `build` made with these options."""
        schedule = timeline.schedule
        name, p, m, v = schedule.name, schedule.p, schedule.m // schedule.batches, schedule.v
        at = {} if v == 1 else {"v": v}
        peaks = None
        with suppress(ValueError):
            peaks = tuple(peak_activations(name, p, m, r=r, costs=timeline.costs, **at, **options)
                          for r in range(p))
        try:
            idle = bubble_time(name, p, m, costs=timeline.costs, **at, **options)
        except ValueError as error:
            return cls(None, peaks, str(error))
        module = sys.modules[definition(name).__module__]
        return cls(idle, peaks, first_line(module.bubble_time), bubble_span(name))


def table(timeline: Timeline, formula: Formula, width: int) -> Table:
    """Makespan, idle time and the definitions of "bubble"; in words too where there is room."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column(no_wrap=True)
    grid.add_column("simulated", justify="right", no_wrap=True)
    grid.add_column("formula", justify="right", no_wrap=True)
    if width >= 72:
        grid.add_column("definition", style="dim")
    ideal = timeline.ideal
    idle = in_span = None
    if formula.idle is not None:  # of the rank that idles most; the rows below are of the mean
        least = min(timeline.busy)
        in_span = least + formula.idle
        if formula.span == "makespan":
            idle = formula.idle if math.isclose(least, ideal) else in_span - ideal
    whole = None if idle is None else ideal + idle

    def row(name: str, simulated: float, closed: float | None, meaning: str,
            percent: bool = False, mark: str = "-") -> None:
        second = mark if closed is None else _number(closed, percent)
        if closed is not None and not math.isclose(simulated, closed, abs_tol=1e-12):
            second += " !"
        grid.add_row(name, _number(simulated, percent), second, *[meaning][: len(grid.columns) - 3])

    row("makespan", timeline.makespan, whole, "until the last action ends")
    row("idle time of a rank", timeline.makespan - ideal, idle, "makespan - mean busy time")
    row("bubble / makespan", timeline.bubble_fraction, idle / whole if idle and whole else idle,
        "idle / makespan (GPipe, zero bubble)", percent=True)
    row("bubble / ideal", timeline.bubble_over_ideal, idle / ideal if idle and ideal else idle,
        "idle / mean busy time (Megatron-LM)", percent=True)
    if not math.isclose(timeline.longest_span, timeline.makespan):
        row("longest rank's span", timeline.longest_span,
            in_span if formula.span != "makespan" else None,
            "from a rank's first start to its last end", mark="")
        row("bubble in span / span", timeline.span_bubble_fraction, None,
            "idle in that span / span", percent=True, mark="")
        row("bubble in span / ideal", timeline.span_bubble_over_ideal, None,
            "idle in that span / mean busy time", percent=True, mark="")
    return grid


def peaks(timeline: Timeline, formula: Formula) -> str:
    """The most activations that each rank keeps at once."""
    v, simulated = timeline.schedule.v, timeline.peak_activations
    text = f"peak activations, rank 0..{len(simulated) - 1}: {' '.join(map(str, simulated))}"
    if formula.peaks is None:
        text += " (no formula here)"
    elif formula.peaks == simulated:
        text += " (formula: the same)"
    else:
        text += f"\nformula: {' '.join(map(str, formula.peaks))}  ! differs from the simulation"
    return text if v == 1 else f"{text}\nOne is worth 1/{v} of a rank's layers."


def first_line(function: Any) -> str:
    """The first line of a docstring, without its backquotes and final period."""
    return (inspect.getdoc(function) or "").partition("\n")[0].replace("``", "").rstrip(".")


def _number(value: float, percent: bool = False) -> str:
    return f"{100 * value:.4g} %" if percent else f"{value:.6g}"
