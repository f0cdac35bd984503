"""A matplotlib figure that shows itself in a notebook, without pyplot and its list of figures."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.figure import Figure

from distlearn.plots.palette import PALETTE


class Picture(Figure):
    """A `matplotlib.figure.Figure`, drawn as SVG by notebooks; the same data give the same text.

    Parameters
    ----------
    width, height : float
        Size in inches.
    """

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        self.set_facecolor(PALETTE["light"]["background"])

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "distlearn", "svg.fonttype": "none"}):
            self.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        return text.getvalue()
