"""The pipes of a cube core over time: a row a pipe, a box an instruction."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from distlearn.hardware.ai_core import PIPES
from distlearn.kernels.ascend import Timeline
from distlearn.plots.palette import PALETTE, box_colour
from distlearn.plots.picture import Picture

_LIGHT = PALETTE["light"]
_KINDS = {"MTE2": "W", "MTE1": "I", "M": "F", "FIXP": "B", "MTE3": "W", "V": "F", "S": "R"}


def pipes(timelines: Mapping[str, Timeline]) -> Figure:
    """Draw timelines below one another, on one axis of clocks.

    Parameters
    ----------
    timelines : mapping
        Title -> what `distlearn.kernels.ascend.CubeCore.run` gave.

    Returns
    -------
    Figure
        Only pipes that do something have a row. Its label is the text alternative, `pipes_text`.

    Raises
    ------
    ValueError
        If there is no timeline.
    """
    text = pipes_text(timelines)
    figure = Picture(6.0, 0.5 + 1.45 * len(timelines))
    figure.set_label(text)
    every = figure.subplots(len(timelines), 1, sharex=True, squeeze=False)[:, 0]
    used = [pipe for pipe in PIPES if any(t.busy[pipe] for t in timelines.values())]
    for axes, (title, timeline) in zip(every, timelines.items(), strict=True):
        for row, pipe in enumerate(used):
            spans = [(e.start, e.end - e.start) for e in timeline.events if e.pipe == pipe]
            axes.broken_barh([(0, timeline.makespan)], (row - 0.36, 0.72),
                             facecolors=_LIGHT["idle"])
            axes.broken_barh(spans, (row - 0.36, 0.72), facecolors=box_colour(_KINDS[pipe]),
                             edgecolors=_LIGHT["background"], linewidth=0.6)
        axes.set_yticks(range(len(used)), used, fontsize=8)
        axes.invert_yaxis()
        axes.set_title(f"{title}: {timeline.makespan:,} clocks", loc="left", fontsize=8.5)
        axes.tick_params(length=0, labelsize=8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(_LIGHT["grid"])
    every[-1].set_xlabel("clocks", fontsize=8.5)
    return figure


def pipes_text(timelines: Mapping[str, Timeline]) -> str:
    """What the figure shows, in words. Errors as `pipes`."""
    if not timelines:
        raise ValueError("pipes draws at least one timeline; got none")
    return "\n".join(
        f"{title}: {t.makespan:,} clocks; " + ", ".join(
            f"{pipe} works {t.busy[pipe] / t.makespan:.0%}" for pipe in PIPES if t.busy[pipe])
        + "." for title, t in timelines.items())
