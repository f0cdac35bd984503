"""A matplotlib figure that shows itself in a notebook, and follows the page from light to dark."""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure

from distlearn.plots.palette import CHUNKS, PALETTE, box_colour, ink


class Picture(Figure):
    """A `matplotlib.figure.Figure`, drawn as SVG by notebooks; the same data give the same text.

    Made without pyplot, so that no list of figures grows. Draw with the light colours of
    `PALETTE`: the SVG carries a rule for each that turns it into the dark one where the page asks
    for dark (``prefers-color-scheme``, which for an image follows CSS ``color-scheme``).

    Parameters
    ----------
    width, height : float
        Size in inches.
    dark : mapping of str to str, optional
        Further light colours (``#rrggbb``) and what dark makes of them.
    """

    def __init__(self, width: float, height: float, *,
                 dark: Mapping[str, str] | None = None) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        self._dark = {one.lower(): other for one, other in (dark or {}).items()}
        self.set_facecolor(PALETTE["light"]["background"])

    def _repr_svg_(self) -> str:
        buffer = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "distlearn", "svg.fonttype": "none"}):
            self.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        return text.replace("</svg>", f"<style>{dark_style(self._dark)}</style>\n</svg>", 1)


def dark_style(further: Mapping[str, str]) -> str:
    """CSS for a matplotlib SVG: each light colour of the palette, and ``further``, goes dark."""
    light, dark = PALETTE["light"], PALETTE["dark"]
    pairs = {light[name]: dark[name] for name in light if name != "R"} | dict(further)
    inks = {}
    for kind in "FBIW":
        for chunk in range(CHUNKS):
            fills = box_colour(kind, chunk), box_colour(kind, chunk, "dark")
            pairs[fills[0]] = fills[1]
            inks[ink(fills[0])] = ink(fills[1])
    rules = [f"text{{fill:{dark['text']}}}"]  # what has no colour of its own is black otherwise
    for one, other in pairs.items():
        rules += [f'[style*="{key}: {one}"]{{{key}:{other}!important}}'
                  for key in ("fill", "stroke")]
    # a group, where the backend draws letters as paths
    rules += [f'{tag}[style*="fill: {one}"]{{fill:{other}!important}}'
              for one, other in inks.items() for tag in ("text", "g")]
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
