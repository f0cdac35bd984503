"""Boxes, cells and arrows of pictures of hardware: an axis in units of one's own, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from distlearn.plots.palette import PALETTE, box_colour, ink
from distlearn.plots.picture import Picture

_LIGHT = PALETTE["light"]
SMALL, NORMAL = 7.0, 8.5
Point = tuple[float, float]


def canvas(width: float, height: float, units: Point) -> tuple[Figure, Axes]:
    """A figure of so many inches whose only axis counts ``units``, from the upper left corner."""
    figure = Picture(width, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, units[0]), ylim=(units[1], 0))
    axes.axis("off")
    return figure, axes


def shade(kind: str = "", chunk: int = 0) -> str:
    """A fill of the palette: of an action kind, else the grey of what is idle."""
    return box_colour(kind, chunk) if kind else _LIGHT["idle"]


def box(axes: Axes, at: Point, size: Point, text: str = "", *, fill: str = "",
        fontsize: float = NORMAL, dashed: bool = False) -> None:
    """A box with text in its middle; ``fill`` is a colour of `shade`, without one it is empty."""
    axes.add_patch(Rectangle(
        at, *size, facecolor=fill or "none", edgecolor=_LIGHT["muted"], linewidth=0.9,
        linestyle=(0, (4, 2)) if dashed else "-"))
    colour = ink(fill) if fill and fill != _LIGHT["idle"] else _LIGHT["text"]
    if text:
        axes.text(at[0] + size[0] / 2, at[1] + size[1] / 2, text, ha="center", va="center",
                  color=colour, fontsize=fontsize, linespacing=1.35)


def note(axes: Axes, at: Point, text: str, *, ha: str = "center", va: str = "center",
         fontsize: float = NORMAL, muted: bool = False, bold: bool = False) -> None:
    """Text that stands free."""
    axes.text(*at, text, ha=ha, va=va, color=_LIGHT["muted" if muted else "text"],
              fontsize=fontsize, fontweight="bold" if bold else "normal", linespacing=1.35)


def line(axes: Axes, points: Sequence[Point]) -> None:
    """A line through points, as an arrow's that turns corners."""
    axes.plot(*zip(*points, strict=True), color=_LIGHT["text"], linewidth=1.1)


def arrow(axes: Axes, start: Point, end: Point, text: str = "", *, shift: Point = (0, -0.25),
          both: bool = False) -> None:
    """An arrow, its text beside the middle."""
    axes.add_patch(FancyArrowPatch(
        start, end, arrowstyle="<|-|>" if both else "-|>", mutation_scale=9, linewidth=1.1,
        color=_LIGHT["text"], shrinkA=0, shrinkB=0))
    if text:
        note(axes, ((start[0] + end[0]) / 2 + shift[0], (start[1] + end[1]) / 2 + shift[1]), text,
             fontsize=SMALL)
