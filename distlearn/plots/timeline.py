"""A pipeline timeline as a matplotlib figure; `timeline_svg` draws the same for the web."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch

from distlearn.pipeline import Event, Timeline
from distlearn.plots.look import require_plain
from distlearn.plots.palette import KIND_NAMES, PALETTE, box_colour, ink
from distlearn.plots.picture import Picture
from distlearn.plots.timeline_svg import chunk_of, duration_text, kinds_of

COLOURS = PALETTE["light"]
_HEIGHT = 0.84  # of a box, where the distance between ranks is 1


def timeline(timeline: Timeline, *, memory: bool = True, title: str | None = None,
             unit: str = "") -> Figure:
    """Draw a timeline: a row per rank, boxes to scale, and below what each rank keeps.

    Parameters
    ----------
    timeline : Timeline
    memory : bool
        Whether to draw, below the rows, the activations that each rank keeps over time, in whole
        microbatches (v pieces of a rank's v stages make one).
    title : str, optional
    unit : str
        Unit of the costs, for example ``"ms"``.

    Returns
    -------
    matplotlib.figure.Figure
        ``axes[0]`` holds the rows; ``axes[1]``, if ``memory``, the curves.

    Raises
    ------
    ValueError
        For merged pairs, recomputation and transfers between memories, which it cannot draw yet.

    Examples
    --------
    >>> from distlearn.pipeline import build, simulate
    >>> figure = timeline(simulate(build("1f1b", p=4, m=8)), unit="ms")
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['', 'time in ms']
    """
    require_plain(timeline)
    p, span = timeline.schedule.p, timeline.makespan or 1.0
    rows = 0.28 * p + 0.35
    strips = 0.2 * p + 0.3 if memory else 0.0
    figure = Picture(8.0, rows + strips + 0.75 + (0.3 if title else 0))
    axes = _panels(figure, rows, strips)
    _draw_boxes(axes[0], timeline, 6.6 * 72 / span)
    if memory:
        _draw_memory(axes[1], timeline)
    axes[0].set_xlim(0, span)
    axes[-1].set_xlabel(f"time in {unit}" if unit else "time, in the unit of the costs")
    _draw_legend(axes[0], timeline)
    if title:
        figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure


def _panels(figure: Figure, rows: float, strips: float) -> list[Axes]:
    if not strips:
        return [figure.add_subplot()]
    grid = figure.add_gridspec(2, 1, height_ratios=[rows, strips])
    first = figure.add_subplot(grid[0])
    second = figure.add_subplot(grid[1], sharex=first)
    first.tick_params(labelbottom=False)
    return [first, second]


def _draw_boxes(ax: Axes, timeline: Timeline, points_per_unit: float) -> None:
    p, chunks = timeline.schedule.p, chunk_of(timeline)
    for rank in range(p):
        ax.broken_barh([(0, timeline.makespan)], (rank - _HEIGHT / 2, _HEIGHT),
                       facecolors=COLOURS["idle"], gid=f"idle rank {rank}")
    shortest = min((e.end - e.start for e in timeline.events if e.end > e.start), default=1.0)
    edge = 0.6 if shortest * points_per_unit > 4 else 0.2  # an edge must not hide a thin box
    size, labelled = _label_size(timeline, points_per_unit)
    groups: dict[tuple[int, str, int], list[Event]] = {}
    for event in timeline.events:
        key = (event.rank, event.action.kind, chunks[event.action.stage])
        groups.setdefault(key, []).append(event)
    for (rank, kind, chunk), events in groups.items():
        fill = box_colour(kind, chunk)
        ax.broken_barh([(e.start, e.end - e.start) for e in events], (rank - _HEIGHT / 2, _HEIGHT),
                       facecolors=fill, edgecolors=COLOURS["background"] if chunk == 0
                       else COLOURS[kind], linewidth=edge, gid=f"{kind} chunk {chunk} rank {rank}")
        for event in events:
            if (kind, event.action.stage) in labelled:
                ax.text((event.start + event.end) / 2, rank, str(event.action.microbatch),
                        ha="center", va="center_baseline", fontsize=size, color=ink(fill))
    _style(ax, p)
    for rank in range(p):
        idle = max(timeline.makespan - timeline.busy[rank], 0.0)
        _note(ax, rank, f"idle {idle:.4g}")


def _label_size(timeline: Timeline, points_per_unit: float) -> tuple[float, set[tuple[str, int]]]:
    """One font size for the numbers, and the (kind, stage) whose boxes have room for it."""
    digits, size, labelled = len(str(timeline.schedule.m - 1)), 9.0, set()
    for kind in kinds_of(timeline):
        for stage, seconds in enumerate(timeline.costs.per_stage(kind, timeline.schedule.stages)):
            fits = (seconds * points_per_unit - 1.5) / (0.65 * digits)
            if fits >= 5.5:
                labelled.add((kind, stage))
                size = min(size, fits)
    return size, labelled


def _draw_memory(ax: Axes, timeline: Timeline) -> None:
    """A strip per rank, all to one scale, the rank's peak beside it."""
    p, v = timeline.schedule.p, timeline.schedule.v
    most = max(max(timeline.peak_activations), 1)
    for rank in range(p):
        curve = timeline.memory_curve(rank)
        times = [time for time, _ in curve] + [timeline.makespan]
        base = rank + 0.42
        heights = [base - 0.84 * kept / most for _, kept in curve]
        heights.append(heights[-1])
        ax.fill_between(times, base, heights, step="post", color=COLOURS["memory"], alpha=0.45,
                        linewidth=0, gid=f"memory rank {rank}")
        ax.step(times, heights, where="post", color=COLOURS["memory"], linewidth=1)
        _note(ax, rank, f"peak {timeline.peak_activations[rank] / v:.4g}")
    _style(ax, p)
    pieces = "" if v == 1 else f" of {v} pieces"
    ax.set_title(f"activations kept, in whole microbatches{pieces}", fontsize=9, loc="left")


def _style(ax: Axes, p: int) -> None:
    ax.set_ylim(p - 0.45, -0.55)
    ax.set_yticks(range(p), [f"rank {rank}" for rank in range(p)])
    ax.tick_params(axis="both", labelsize=9, color=COLOURS["grid"], length=3)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(COLOURS["grid"])


def _note(ax: Axes, rank: int, text: str) -> None:
    ax.annotate(text, (1.0, rank), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=8.5, color=COLOURS["muted"])


def _draw_legend(ax: Axes, timeline: Timeline) -> None:
    """An entry per kind that occurs, with its duration and a patch per chunk; and the bubble."""
    v = timeline.schedule.v
    handles: list[Any] = []
    labels: list[str] = []
    for kind in kinds_of(timeline):
        handles.append(tuple(
            Patch(facecolor=box_colour(kind, chunk), edgecolor=COLOURS[kind], linewidth=0.6)
            for chunk in range(v)))
        chunks = "" if v == 1 else f" (chunks 0 to {v - 1})"
        labels.append(f"{kind} {KIND_NAMES[kind]}: {duration_text(timeline, kind)}{chunks}")
    handles.append(Patch(facecolor=COLOURS["idle"]))
    labels.append("bubble (idle)")
    ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
              frameon=False, ncols=len(labels), fontsize=9, handlelength=1.1 * v,
              handleheight=1.0, columnspacing=1.2,
              handler_map={tuple: HandlerTuple(ndivide=None, pad=0.2)})
