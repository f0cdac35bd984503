"""A pipeline timeline as a matplotlib figure; `timeline_svg` draws the same for the web."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from distlearn.pipeline import Timeline
from distlearn.plots.palette import CHUNKS, PALETTE, box_colour, ink
from distlearn.plots.picture import Picture
from distlearn.plots.timeline_parts import (
    COMPUTED,
    LEAVING,
    TRANSFERS,
    Piece,
    further_notes,
    kind_text,
    kinds_of,
    pieces,
    pieces_per_microbatch,
    shade_text,
    shades_of,
    tall,
    transfers,
    widest,
)

COLOURS = PALETTE["light"]
_HEIGHT = 0.84  # of a box, where the distance between ranks is 1
_HEIGHT_OVER_TRANSFERS = 0.64
_LEGEND_WIDTH = 110  # letters; a wider one would squeeze the rows


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

    Examples
    --------
    >>> from distlearn.pipeline import build, simulate
    >>> figure = timeline(simulate(build("1f1b", p=4, m=8)), unit="ms")
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['', 'time in ms']
    """
    p, span = timeline.schedule.p, timeline.makespan or 1.0
    each = 0.28 + (0.08 if tall(timeline) else 0.0) + (0.08 if transfers(timeline) else 0.0)
    rows = each * p + 0.35
    strips = 0.2 * p + 0.3 if memory else 0.0
    legend = 0.2 * (_legend_rows(timeline) - 1)
    figure = Picture(8.0, rows + strips + 0.75 + legend + (0.3 if title else 0),
                     dark=_dark_recomputation() if "R" in kinds_of(timeline) else None)
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
    p = timeline.schedule.p
    high = _HEIGHT_OVER_TRANSFERS if transfers(timeline) else _HEIGHT
    for rank in range(p):
        ax.broken_barh([(0, timeline.makespan)], (rank - high / 2, high),
                       facecolors=COLOURS["idle"], gid=f"idle rank {rank}")
    shortest = min((e.end - e.start for e in timeline.events if e.end > e.start), default=1.0)
    edge = 0.6 if shortest * points_per_unit > 4 else 0.2  # an edge must not hide a thin box
    groups: dict[tuple[int, str, int, int | None], list[Piece]] = {}
    for piece in pieces(timeline):
        key = (piece.event.rank, piece.part.kind, piece.shade, piece.half)
        groups.setdefault(key, []).append(piece)
    sizes = {half: _label_size([piece for key, group in groups.items()
                                if (key[3] is not None) == half for piece in group],
                               timeline, points_per_unit, half) for half in (False, True)}
    for (rank, kind, shade, half), group in groups.items():
        fill = box_colour(kind, shade)
        tall_as = high if half is None else high / 2
        top = rank - high / 2 + (half or 0) * high / 2
        where = "" if half is None else " upper half" if half == 0 else " lower half"
        ax.broken_barh([(x.event.start, x.event.end - x.event.start) for x in group],
                       (top, tall_as), facecolors=fill,
                       edgecolors=COLOURS["background"] if shade == 0 else COLOURS[kind],
                       linewidth=edge, gid=f"{kind} chunk {shade}{where} rank {rank}")
        size, least = sizes[half is not None]
        for piece in group:
            if piece.seconds >= least:
                lines = piece.lines
                ax.text((piece.event.start + piece.event.end) / 2,
                        rank if half is None else top + tall_as / 2,
                        "\n".join(lines), ha="center", linespacing=0.95 if len(lines) > 1 else None,
                        va="center_baseline" if len(lines) == 1 else "center",
                        fontsize=size, color=ink(fill))
    _draw_transfers(ax, timeline)
    _style(ax, p)
    for rank in range(p):
        idle = max(timeline.makespan - timeline.busy[rank], 0.0)
        _note(ax, rank, f"idle {idle:.4g}")


def _draw_transfers(ax: Axes, timeline: Timeline) -> None:
    """Below each row: what leaves the rank, from a mark on; below that, what comes back."""
    for event in transfers(timeline):
        leaving = event.action.kind in LEAVING
        y = event.rank + _HEIGHT_OVER_TRANSFERS / 2 + (0.09 if leaving else 0.27)
        ax.plot([event.start, event.end], [y, y], color=COLOURS["muted"], linewidth=1,
                marker=_marker(event.action.kind), markersize=3.5, markeredgewidth=0,
                markevery=[0 if leaving else 1], clip_on=False,
                gid=f"{event.action} rank {event.rank}")


def _marker(kind: str) -> str:
    return "v" if kind in LEAVING else "^"


def _label_size(shown: list[Piece], timeline: Timeline, points_per_unit: float,
                half: bool) -> tuple[float, float]:
    """One font size for the numbers, and the duration from which on boxes have room for it."""
    digits = widest(timeline, half)
    size, least = 7.5 if half or timeline.schedule.slices > 1 else 9.0, math.inf
    for seconds in {piece.seconds for piece in shown}:
        fits = (seconds * points_per_unit - 1.5) / (0.65 * digits)
        if fits >= 5.5:
            least = min(least, seconds)
            size = min(size, fits)
    return size, least


def _draw_memory(ax: Axes, timeline: Timeline) -> None:
    """A strip per rank, all to one scale, the rank's peak beside it."""
    p, v = timeline.schedule.p, pieces_per_microbatch(timeline)
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
    """An entry per kind that occurs, with its duration and a patch per shade; and the bubble."""
    shades = shades_of(timeline)
    handles: list[Any] = []
    for kind in kinds_of(timeline):
        if "&" in kind:
            handles.append(tuple(_patch(half, 0) for half in kind.split("&")))
        elif kind in TRANSFERS:
            handles.append(Line2D([], [], linestyle="none", marker=_marker(kind), markersize=5,
                                  markeredgewidth=0, color=COLOURS["muted"]))
        else:
            handles.append(tuple(_patch(kind, shade) for shade in range(shades)))
    handles.append(Patch(facecolor=COLOURS["idle"]))
    labels = _legend_texts(timeline)
    handles += [Line2D([], [], linestyle="none") for _ in labels[len(handles):]]  # of the notes
    ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
              frameon=False, ncols=math.ceil(len(labels) / _legend_rows(timeline)), fontsize=9,
              handlelength=1.1 * shades, handleheight=1.0, columnspacing=1.2,
              handler_map={tuple: HandlerTuple(ndivide=None, pad=0.2)})


def _patch(kind: str, shade: int) -> Patch:
    return Patch(facecolor=box_colour(kind, shade), edgecolor=COLOURS[kind], linewidth=0.6)


def _legend_texts(timeline: Timeline) -> list[str]:
    """What the entries say, in order: kinds, the bubble, and what else there is to explain."""
    v, copies = timeline.schedule.v, timeline.schedule.copies
    chunks = f" (chunks 0 to {v - 1})" if v > 1 and not copies else ""
    return [
        *(kind_text(timeline, kind) + (chunks if kind in COMPUTED else "")
          for kind in kinds_of(timeline)),
        "bubble (idle)",
        *([shade_text(timeline)] if copies else []),
        *further_notes(timeline),
    ]


def _legend_rows(timeline: Timeline) -> int:
    """One row where a plain schedule's entries fit; else as many as columns that fit need."""
    texts, patch = _legend_texts(timeline), 4 + 2 * shades_of(timeline)
    plain = set(kinds_of(timeline)) <= set("FBIW") and len(texts) == len(kinds_of(timeline)) + 1
    if plain and sum(len(text) + patch for text in texts) <= _LEGEND_WIDTH:
        return 1
    wide = max(map(len, texts)) + patch
    return math.ceil(len(texts) / min(max(_LEGEND_WIDTH // wide, 1), 3))


def _dark_recomputation() -> dict[str, str]:
    return {box_colour("R", shade): box_colour("R", shade, "dark") for shade in range(CHUNKS)}
