"""The colours of every figure, light and dark, and the tints of a rank's chunks.

Chosen so that forward, backward, its two halves and recomputation stay apart for protan, deutan
and tritan eyes, so that a box stands out from an idle row (3:1, WCAG 2.2 criterion 1.4.11) and the
number in it can be read (4.5:1, criterion 1.4.3). ``tests/plots/test_palette.py`` computes all.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PALETTE: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "light": MappingProxyType({
        "F": "#1249a3", "B": "#b44a05", "I": "#964273", "W": "#208554",
        "R": "#33291a",
        "background": "#ffffff", "idle": "#e9edf2", "grid": "#cfd6de", "text": "#1c2530",
        "muted": "#566272", "memory": "#5d6b7d", "good": "#1d7a4c", "bad": "#b3261e",
    }),
    "dark": MappingProxyType({
        "F": "#559af9", "B": "#fc883a", "I": "#efb6ce", "W": "#bdf098",
        "R": "#868663",
        "background": "#14181e", "idle": "#2b323c", "grid": "#46505d", "text": "#e3e8ee",
        "muted": "#a4b0be", "memory": "#94a3b5", "good": "#5fd39a", "bad": "#ff9a92",
    }),
})
"""Colours by mode (``light``, ``dark``): one per action kind, and those of the figure around."""

SERIES: Mapping[str, str] = MappingProxyType({
    "#0072B2": "#6cc0f5", "#D55E00": "#ff9d57", "#007A5A": "#4fd0a5", "#AA4499": "#e79adb",
    "#555555": "#c0c6ce",
})
"""Of series of points or lines: Okabe and Ito's colours that keep 3:1 contrast on white, and what
each becomes where the page is dark: 4.5:1 there even when the book's theme dims images."""

KIND_NAMES: Mapping[str, str] = MappingProxyType({
    "F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient",
    "R": "recomputation", "E": "evict to partner", "L": "load from partner",
    "O": "offload to host", "P": "prefetch from host",
})

_INKS = ("#ffffff", "#0b0f14")
# How much of the kind's own colour is in a chunk's. The same for every v, so that a page with
# several figures needs one rule; dark steps are such that dark ink always turns into white.
_SHARES = {
    "light": (1.0, 0.6, 0.36, 0.22, 0.13, 0.08, 0.05, 0.03),
    "dark": (1.0, 0.46, 0.27, 0.12, 0.06, 0.03, 0.015, 0.0),
}
CHUNKS = len(_SHARES["light"])
"""Shades kept apart; a rank's ninth chunk and those after it are drawn like the eighth."""


def box_colour(kind: str, chunk: int = 0, mode: str = "light") -> str:
    """Fill of a box: the kind's colour, paler for each further chunk of the rank.

    Parameters
    ----------
    kind : str
        ``F``, ``B``, ``I``, ``W`` or ``R``.
    chunk : int
        Which of its v stages the rank works on, 0-based.
    mode : str
        ``light`` or ``dark``.

    Examples
    --------
    >>> box_colour("F"), box_colour("F", chunk=1)
    ('#1249a3', '#7192c8')
    """
    colours = PALETTE[mode]
    share = _SHARES[mode][min(chunk, CHUNKS - 1)]
    mixed = (
        round(share * strong + (1 - share) * behind)
        for strong, behind in zip(
            _rgb(colours[kind]), _rgb(colours["background"]), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(fill: str) -> str:
    """White or near-black, whichever can be read better on ``fill``.

    Examples
    --------
    >>> ink("#1249a3"), ink("#ffd27f")
    ('#ffffff', '#0b0f14')
    """
    return max(_INKS, key=lambda colour: contrast(colour, fill))


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21, as WCAG 2 defines it.

    Examples
    --------
    >>> contrast("#000000", "#ffffff")
    21.0
    """
    darker, lighter = sorted((_luminance(a), _luminance(b)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
        for x in (channel / 255 for channel in _rgb(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
