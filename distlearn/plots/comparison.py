"""Schedules side by side: the bubble against the number of microbatches, and the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from distlearn.pipeline import Costs, Timeline, build, simulate
from distlearn.plots.palette import PALETTE
from distlearn.plots.picture import Picture
from distlearn.plots.timeline_parts import pieces_per_microbatch

_LIGHT = PALETTE["light"]
_COLOURS = (_LIGHT["F"], _LIGHT["B"], _LIGHT["W"], _LIGHT["I"], _LIGHT["muted"])
_MARKERS, _DASHES = "osD^vPX", ("-", "--", "-.", ":")
DEFINITIONS = {
    "bubble_fraction": "bubble: idle / makespan",
    "bubble_over_ideal": "bubble: idle / ideal",
    "span_bubble_fraction": "bubble: idle / longest rank's span",
    "span_bubble_over_ideal": "bubble: idle within the longest rank's span / ideal",
}


def bubble(schedules: Mapping[str, Mapping[str, Any]], p: int, ms: Sequence[int], *,
           costs: Costs | None = None, definition: str = "bubble_fraction",
           title: str | None = None) -> Figure:
    """Simulated bubble against the number of microbatches, a line per schedule.

    Parameters
    ----------
    schedules : mapping
        Label -> arguments of `build` besides p and m: ``{"1F1B": {"name": "1f1b"}}``.
    p : int
        Ranks.
    ms : sequence of int
        Numbers of microbatches. One that a schedule refuses has no point on its line.
    costs : Costs, optional
        Times of a whole rank's layers; a stage takes 1/v of them. Transfers take ``comm`` each.
    definition : str
        Which of `Timeline`'s four: bubble_fraction, bubble_over_ideal, or these with ``span_``.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        One line per schedule, labelled; y is a share, shown in percent.

    Raises
    ------
    ValueError
        For an unknown definition, a schedule that runs with none of ``ms``, or costs that differ
        from stage to stage.
    """
    if definition not in DEFINITIONS:
        raise ValueError(f"definition must be one of {', '.join(DEFINITIONS)}; got {definition!r}")
    figure = Picture(7.2, 3.8)
    ax = figure.add_subplot()
    for k, (label, arguments) in enumerate(schedules.items()):
        points = _points(arguments, p, ms, costs if costs is not None else Costs(), definition)
        ax.plot([m for m, _ in points], [share for _, share in points], label=label,
                color=_COLOURS[k % len(_COLOURS)], marker=_MARKERS[k % len(_MARKERS)],
                linestyle=_DASHES[k % len(_DASHES)], markersize=5, linewidth=1.6)
    if len(ms) <= 12:
        ax.set_xticks(sorted(ms))
    ax.set_xlabel(f"microbatches m (p = {p} ranks)")
    ax.set_ylabel(DEFINITIONS[definition])
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    ax.legend(frameon=False)
    _finish(figure, ax, title)
    return figure


def memory(timelines: Mapping[str, Timeline], *, title: str | None = None) -> Figure:
    """Peak activations of every rank, schedules side by side.

    Parameters
    ----------
    timelines : mapping
        Label -> timeline. All with the same p.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        A group of bars per rank; heights in whole microbatches (v pieces make one).

    Raises
    ------
    ValueError
        If there is no timeline, or their p differ.
    """
    ps = {label: timeline.schedule.p for label, timeline in timelines.items()}
    if len(set(ps.values())) != 1:
        raise ValueError(f"memory compares timelines with one p; got p = {ps}")
    p = next(iter(ps.values()))
    figure = Picture(7.2, 3.4)
    ax = figure.add_subplot()
    width = 0.8 / len(timelines)
    for k, (label, timeline) in enumerate(timelines.items()):
        heights = [peak / pieces_per_microbatch(timeline) for peak in timeline.peak_activations]
        bars = ax.bar(np.arange(p) - 0.4 + (k + 0.5) * width, heights, width, label=label,
                      color=_COLOURS[k % len(_COLOURS)], edgecolor=_LIGHT["background"],
                      linewidth=0.8)
        if p * len(timelines) <= 24:
            ax.bar_label(bars, [f"{height:.3g}" for height in heights], fontsize=7, padding=1,
                         color=_LIGHT["text"])
    ax.set_xticks(range(p), [f"rank {rank}" for rank in range(p)])
    ax.set_ylabel("peak activations\n(whole microbatches)")
    ax.margins(y=0.12)
    ax.legend(frameon=False, ncols=min(len(timelines), 4), loc="lower left", bbox_to_anchor=(0, 1),
              columnspacing=1.2, handlelength=1.2)
    _finish(figure, ax, title)
    return figure


def _points(arguments: Mapping[str, Any], p: int, ms: Sequence[int], costs: Costs,
            definition: str) -> list[tuple[int, float]]:
    v = int(arguments.get("v", 1))
    F, B, I, W = Costs(costs.F, costs.B, costs.I, costs.W).uniform()
    stage = Costs(F / v, B / v, I / v, W / v, comm=costs.comm)
    points, refusal = [], ""
    for m in ms:
        try:
            schedule = build(p=p, m=m, **arguments)
        except ValueError as error:
            refusal = str(error)
            continue
        points.append((m, float(getattr(simulate(schedule, stage), definition))))
    if not points:
        raise ValueError(f"{dict(arguments)} runs with none of the m given: {refusal}")
    return points


def _finish(figure: Figure, ax: Axes, title: str | None) -> None:
    ax.grid(axis="y", color=_LIGHT["grid"], linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(_LIGHT["grid"])
    ax.tick_params(color=_LIGHT["grid"])
    if title:
        figure.suptitle(title, fontsize=11, fontweight="bold")
