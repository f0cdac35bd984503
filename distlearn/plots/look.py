"""Style sheet of the SVG figures: the palette as CSS, and as plain attributes where CSS fails."""

from __future__ import annotations

from collections.abc import Mapping

from distlearn.plots.palette import CHUNKS, PALETTE, box_colour, ink


def group_attributes(name: str, chunk: int = 0, *, text: bool = False) -> str:
    """Class and fallback colours of an SVG element or group, with a leading space.

    Parameters
    ----------
    name : str
        An action kind (F, B, I, W, R) or a part of the figure (bg, idle, grid, text, muted,
        memory, limit).
    chunk : int
        The rank's chunk, for kinds.
    text : bool
        Whether the group holds the writing on boxes of this kind, instead of the boxes.
    """
    return ATTRIBUTES[f"{name}{min(chunk, CHUNKS - 1)}{'t' if text else ''}"
                      if name in _ALL_KINDS else name]


_KINDS = "FBIW"  # in every figure; R has rules of its own, added where it occurs
_ALL_KINDS = _KINDS + "R"
_PARTS = {"bg": "background", "idle": "idle", "text": "text", "muted": "muted",
          "memory": "memory", "grid": "grid"}


def _attributes() -> dict[str, str]:
    light = PALETTE["light"]
    table = {name: f' class="dl-{name}" fill="{light[key]}"' for name, key in _PARTS.items()}
    table["memory"] += f' fill-opacity=".5" stroke="{light["memory"]}"'
    table["grid"] = f' class="dl-grid" fill="none" stroke="{light["grid"]}"'
    table["limit"] = (f' fill="none" stroke="{light["text"]}" style="stroke:var(--dl-text)" '
                      'stroke-dasharray="4 3"')
    for kind in _ALL_KINDS:
        for chunk in range(CHUNKS):
            fill = box_colour(kind, chunk)
            edge = light["background"] if chunk == 0 else light[kind]
            table[f"{kind}{chunk}"] = f' class="dl-{kind}{chunk}" fill="{fill}" stroke="{edge}"'
            table[f"{kind}{chunk}t"] = f' class="dl-{kind}{chunk}t" fill="{ink(fill)}"'
    return table


def _style(kinds: str, parts: Mapping[str, str]) -> str:
    """Rules that name each colour once, and the three places where dark is asked for."""
    rules = [f".dl-{name}{{fill:var(--dl-{name})}}" for name in parts if name != "grid"]
    if parts:
        rules += [".dl-grid{stroke:var(--dl-grid)}", ".dl-memory{stroke:var(--dl-memory)}"]
    for kind in kinds:
        for chunk in range(CHUNKS):
            name = f"{kind}{chunk}"
            edge = "bg" if chunk == 0 else f"{kind}0"
            rules.append(f".dl-{name}{{fill:var(--dl-{name});stroke:var(--dl-{edge})}}"
                         f".dl-{name}t{{fill:var(--dl-{name}t);stroke:none}}")
    light, dark = (_variables(mode, kinds, parts) for mode in ("light", "dark"))
    return (
        f".dl-svg{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.dl-svg:root{{{dark}}}}}"  # :root: not inlined
        f'html[data-theme="dark"] .dl-svg,body[data-jp-theme-light="false"] .dl-svg{{{dark}}}'
        + "".join(rules)
    )


def variables(mode: str) -> str:
    """The palette of a mode as CSS custom properties ``--dl-...``."""
    return _variables(mode, _KINDS, _PARTS)


def _variables(mode: str, kinds: str, parts: Mapping[str, str]) -> str:
    colours = PALETTE[mode]
    pairs = {name: colours[key] for name, key in parts.items()}
    for kind in kinds:
        for chunk in range(CHUNKS):
            fill = box_colour(kind, chunk, mode)
            pairs[f"{kind}{chunk}"], pairs[f"{kind}{chunk}t"] = fill, ink(fill)
    return ";".join(f"--dl-{name}:{colour}" for name, colour in pairs.items())


ATTRIBUTES = _attributes()
STYLE = _style(_KINDS, _PARTS)
RECOMPUTATION_STYLE = _style("R", {})
"""What a figure with recomputations (R) adds to `STYLE`."""
