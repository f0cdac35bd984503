"""The difference between an answer and what was wanted, as a small picture.

Two rows, got above wanted: boxes for an order, with every column that differs marked and the first
one framed; bars on a common scale for numbers. Nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import Any

from distlearn.plots.palette import PALETTE, ink

_BOX, _GAP, _LEFT, _HEIGHT, _SHOWN = 54, 4, 64, 26, 12
_BAR = 420
_WORDS = 190  # px, for what is written below the first difference


def difference_svg(got: Any, wanted: Any, *, shown: int = _SHOWN) -> str:
    """A stand-alone SVG of ``got`` against ``wanted``.

    Parameters
    ----------
    got, wanted : number, or sequence of text or numbers
        Sequences are drawn as boxes, coloured by action kind where they are actions such as
        ``F0.1``; numbers as bars.
    shown : int
        Boxes per row; the window follows the first difference.

    Returns
    -------
    str
        SVG text with a title and a description for screen readers; "" for values of any other
        type, of which there is no picture.

    Examples
    --------
    >>> "first difference, at index 1" in difference_svg(["F0.0", "B0.0"], ["F0.0", "F0.1"])
    True
    >>> difference_svg("a", "b")
    ''
    """
    if isinstance(got, list | tuple) and isinstance(wanted, list | tuple):
        return _boxes([_text(x) for x in got], [_text(x) for x in wanted], shown)
    if _is_number(got) and _is_number(wanted):
        return _bars(_float(got), _float(wanted))
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number beyond 1e308
        return math.inf if number > 0 else -math.inf


def _text(item: Any) -> str:
    """An item as text without the characters that a page may not hold."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(item))


def _boxes(got: Sequence[str], wanted: Sequence[str], shown: int) -> str:
    pairs = list(zip_longest(got, wanted))
    first = next((k for k, (a, b) in enumerate(pairs) if a != b), None)
    start = 0 if first is None else max(0, min(first - shown // 2, len(pairs) - shown))
    window = range(start, min(start + shown, len(pairs)))
    width = max(_LEFT + (len(window) + 1) * (_BOX + _GAP), 2 * _WORDS)
    rows: list[str] = []
    for y, name, side in ((18, "got", 0), (72, "wanted", 1)):
        rows.append(f'<text x="0" y="{y + 17}" class="dld-t">{name}</text>')
        for column, k in enumerate(window):
            x = _LEFT + column * (_BOX + _GAP)
            rows.append(_box(x, y, pairs[k][side], framed=k == first))
        length = len(wanted) if side else len(got)
        if window and window[-1] + 1 < length:
            x = _LEFT + len(window) * (_BOX + _GAP)
            rows.append(f'<text x="{x}" y="{y + 17}" class="dld-t">…</text>')
    for column, k in enumerate(window):
        middle = _LEFT + column * (_BOX + _GAP) + _BOX / 2
        cls, sign = ("m", "=") if pairs[k][0] == pairs[k][1] else ("d", "≠")
        rows.append(f'<text x="{middle:g}" y="63" class="dld-{cls}">{sign}</text>')
        rows.append(f'<text x="{middle:g}" y="12" class="dld-m">{k}</text>')
    if first is None:
        words = "no difference"
    else:
        words = f"first difference, at index {first}"
        middle = _LEFT + (first - start) * (_BOX + _GAP) + _BOX / 2
        anchor = "start" if middle + _WORDS <= width else "end"
        rows.append(f'<text x="{middle:g}" y="118" class="dld-d" style="text-anchor:{anchor}">'
                    f"▲ {words}</text>")
    at = first or 0
    have = _cut(got[at], 40) if at < len(got) else "nothing"
    need = _cut(wanted[at], 40) if at < len(wanted) else "nothing"
    text = words if first is None else f"{words}: got {have}, wanted {need}"
    return _svg(width, 126, "Got and wanted, item by item", text, rows)


def _box(x: float, y: float, item: str | None, *, framed: bool) -> str:
    frame = (f'<rect x="{x - 3}" y="{y - 3}" width="{_BOX + 6}" height="{_HEIGHT + 6}" rx="5" '
             'class="dld-f"/>') if framed else ""
    if item is None:
        return (f'{frame}<rect x="{x}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="3" '
                f'class="dld-e"/>')
    kind = item[0] if item[:1] in ("F", "B", "I", "W") and any(c.isdigit() for c in item) else "N"
    label = _cut(item, 7)
    return (f'{frame}<rect x="{x}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="3" '
            f'class="dld-{kind}"/><text x="{x + _BOX / 2:g}" y="{y + 17}" '
            f'class="dld-b dld-{kind}t">{escape(label)}</text>')


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _bars(got: float, wanted: float) -> str:
    finite = [abs(x) for x in (got, wanted) if math.isfinite(x)]
    scale = max([*finite, 1e-300])
    low = min([0.0, *(x / scale for x in (got, wanted) if math.isfinite(x))])
    unit = _BAR / (1 - low if max(got, wanted) > 0 else max(-low, 1e-9))
    zero = _LEFT - low * unit
    rows = []
    for y, name, value, cls in ((4, "got", got, "dld-B"), (36, "wanted", wanted, "dld-F")):
        rows.append(f'<text x="0" y="{y + 17}" class="dld-t">{name}</text>')
        end = zero
        if math.isfinite(value):
            length = value / scale * unit
            x, end = min(zero, zero + length), max(zero, zero + length)
            rows.append(f'<rect x="{x:.1f}" y="{y}" width="{max(abs(length), 1):.1f}" '
                        f'height="{_HEIGHT - 2}" rx="2" class="{cls}"/>')
        rows.append(f'<text x="{end + 8:.1f}" y="{y + 17}" class="dld-t">{value:.6g}</text>')
    rows.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="66" class="dld-z"/>')
    text = f"got {got:.6g}, wanted {wanted:.6g}"
    return _svg(_LEFT + _BAR + 120, 68, "Got and wanted, to scale", text, rows)


def _svg(width: float, height: float, title: str, text: str, rows: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dld" role="img" width="{width + 8:g}" '
        f'height="{height + 8:g}" viewBox="-4 -4 {width + 8:g} {height + 8:g}" '
        f'aria-label="{escape(text)}"><title>{escape(title)}: {escape(text)}</title>'
        f"<style>{STYLE}</style>{''.join(rows)}</svg>"
    )


def _variables(mode: str) -> str:
    colours = PALETTE[mode]
    pairs = {key: colours[key] for key in ("F", "B", "I", "W", "text", "muted", "grid", "bad")}
    pairs |= {f"{kind}t": ink(colours[kind]) for kind in "FBIW"}
    return ";".join(f"--dld-{name}:{colour}" for name, colour in pairs.items())


def _style() -> str:
    kinds = "".join(f".dld-{k}{{fill:var(--dld-{k})}}.dld-{k}t{{fill:var(--dld-{k}t)}}"
                    for k in "FBIW")
    dark = _variables("dark")
    return (
        f".dld{{{_variables('light')};font:12px system-ui,sans-serif}}"
        f"@media (prefers-color-scheme:dark){{svg.dld:root,.dl-auto svg.dld{{{dark}}}}}"
        f'html[data-theme="dark"] .dld,body[data-jp-theme-light="false"] .dld{{{dark}}}'
        f"{kinds}.dld-N{{fill:none;stroke:var(--dld-muted)}}.dld-t,.dld-Nt{{fill:var(--dld-text)}}"
        ".dld-b{text-anchor:middle;font-weight:600}"
        ".dld-m{fill:var(--dld-muted);text-anchor:middle}"
        ".dld-d{fill:var(--dld-bad);text-anchor:middle;font-weight:700}"
        ".dld-e{fill:none;stroke:var(--dld-muted);stroke-dasharray:3 3}"
        ".dld-f{fill:none;stroke:var(--dld-bad);stroke-width:2.5}"
        ".dld-z{stroke:var(--dld-muted)}"
    )


STYLE = _style()
