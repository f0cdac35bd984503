"""Axes of a log-log figure: a line and a plain number for every power of ten."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from distlearn.plots.palette import PALETTE


def mark_decades(axes: Axes) -> None:
    """Set ticks, grid and frame of axes that are logarithmic already."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color=PALETTE["light"]["grid"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
