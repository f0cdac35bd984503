"""A step of a collective as SVG: a row per rank, its chunks, who contributed to each, who sends.

The stepper's ``collective_svg.js`` draws the same string, character by character.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from distlearn.plots.collective_trace import Trace, describe_collective, ranks_in
from distlearn.plots.look import STYLE, group_attributes
from distlearn.plots.palette import PALETTE, ink

_LIGHT = PALETTE["light"]
COLLECTIVE_STYLE = (
    ".dl-new{fill:var(--dl-B0);stroke:var(--dl-text);stroke-width:1.5}.dl-newt{fill:var(--dl-B0t)}"
    ".dl-off{fill:var(--dl-bg);stroke:var(--dl-grid)}"
    ".dl-done{fill:none;stroke:var(--dl-W0);stroke-width:3}"
    ".dl-add,.dl-copy{fill:none;stroke:var(--dl-text);stroke-width:1.6}"
    ".dl-copy{stroke-dasharray:5 3}")
COLLECTIVE_ATTRIBUTES = {
    "new": f' class="dl-new" fill="{_LIGHT["B"]}" stroke="{_LIGHT["text"]}" stroke-width="1.5"',
    "newt": f' class="dl-newt" fill="{ink(_LIGHT["B"])}"',
    "off": f' class="dl-off" fill="{_LIGHT["background"]}" stroke="{_LIGHT["grid"]}"',
    "done": f' class="dl-done" fill="none" stroke="{_LIGHT["W"]}" stroke-width="3"',
    "add": f' class="dl-add" fill="none" stroke="{_LIGHT["text"]}" stroke-width="1.6"',
    "copy": (f' class="dl-copy" fill="none" stroke="{_LIGHT["text"]}" stroke-width="1.6" '
             'stroke-dasharray="5 3"'),
}
_LEGEND = (("F", "part of rank i"), ("new", "arrived in this step"), ("off", "not here"),
           ("done", "final"), ("add", "sent and added"), ("copy", "sent and stored"))


class Drawing(str):
    """SVG text that a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)


def collective_svg(one: Trace, step: int, width: int = 760) -> Drawing:
    """Draw what every rank holds after a step, and the messages that brought it there.

    Each cell is a chunk of a rank's buffer. The boxes in it stand for the ranks: a box is filled
    when the contribution of that rank is in. On the right, the bytes that each rank has sent so
    far.

    Parameters
    ----------
    one : Trace
        From `trace`.
    step : int
        0 (before the first step) to ``one.steps``.
    width : int
        Width in px; see `least_width`.

    Returns
    -------
    Drawing
        A str: a well-formed SVG document without outside references.

    Raises
    ------
    ValueError
        If ``step`` or ``width`` is out of range.

    Examples
    --------
    >>> from distlearn.plots import trace
    >>> collective_svg(trace("all_reduce", "ring", 4), step=1)[:42]
    '<svg xmlns="http://www.w3.org/2000/svg" cl'
    """
    _check(one, step, width)
    frame = Frame.of(one, width)
    legend, height = _legend(frame.height, width)
    return _document(f"{one.operation} by {one.algorithm}", describe_collective(one, step), width,
                     height, _state(one, step, frame) + legend)


def collective_story(one: Trace, width: int = 760, columns: int = 2) -> Drawing:
    """All states of a collective side by side, from the start to the last step.

    Parameters
    ----------
    one : Trace
    width : int
        Width of the whole in px.
    columns : int
        Pictures in a row.

    Returns
    -------
    Drawing
        As `collective_svg`.

    Raises
    ------
    ValueError
        If a picture would be narrower than `least_width`.
    """
    each = (width - 20 * (columns - 1)) // columns
    _check(one, 0, each)
    frame = Frame.of(one, each)
    parts = []
    for step in range(one.steps + 1):
        x, y = step % columns * (each + 20), step // columns * (frame.height + 30)
        verb = {True: "add", False: "store"}[one.messages[step - 1][0].reduce]
        heading = f"step {step} of {one.steps}: send and {verb}" if step else "start"
        parts += [f'<g transform="translate({x} {y})">',
                  (f'<text{group_attributes("text")} x="{frame.left}" y="18" font-size="13" '
                  f'font-weight="600">{heading}</text>'),
                  '<g transform="translate(0 24)">', *_state(one, step, frame), "</g></g>"]
    rows = -(-(one.steps + 1) // columns)
    legend, height = _legend(rows * (frame.height + 30), width)
    words = " ".join(describe_collective(one, step) for step in range(one.steps + 1))
    return _document(f"{one.operation} by {one.algorithm}, step by step", words, width, height,
                     parts + legend)


def least_width(one: Trace) -> int:
    """The narrowest picture, in px, in which the boxes can be told apart."""
    per = _most_contributors(one)
    columns = per if per <= 4 else -(-per // 2)
    return _left(one) + _RIGHT + one.chunks * (columns * 9 + 14)


@dataclass(frozen=True)
class Frame:
    """Where things are, in px, all whole numbers."""

    width: int
    left: int
    column: int
    cell: int
    cell_height: int
    pip: int
    across: int
    pitch: int
    node_gap: int
    height: int

    @classmethod
    def of(cls, one: Trace, width: int) -> Frame:
        """Lay out a picture."""
        left, per = _left(one), _most_contributors(one)
        column = (width - left - _RIGHT) // one.chunks
        room = column - 2 * max(5, min(44, column // 7)) - 4
        across = per if per <= 2 or room // per >= 12 else -(-per // 2)
        pip = min(22, room // across)
        down = -(-per // across)
        pitch, node_gap = down * pip + 4 + 20, 12 if one.nodes[-1] else 0
        return cls(width, left, column, across * pip + 4, down * pip + 4, pip, across, pitch,
                   node_gap, _TOP + one.p * pitch + one.nodes[-1] * node_gap)

    def x(self, chunk: int) -> int:
        """Left side of a chunk's cells."""
        return self.left + chunk * self.column + (self.column - self.cell) // 2

    def y(self, one: Trace, rank: int) -> int:
        """Top of a rank's cells."""
        return _TOP + rank * self.pitch + one.nodes[rank] * self.node_gap


_RIGHT, _TOP = 74, 26


def _left(one: Trace) -> int:
    return 68 if one.nodes[-1] else 50


def _most_contributors(one: Trace) -> int:
    return max(len(ranks_in(one.wanted(c))) for c in range(one.chunks))


def _check(one: Trace, step: int, width: int) -> None:
    if not 0 <= step <= one.steps:
        raise ValueError(f"step must be from 0 to {one.steps}; got step={step}")
    if width < least_width(one):
        raise ValueError(f"width must be at least {least_width(one)} px; got width={width}")


def _document(name: str, words: str, width: int, height: int, parts: list[str]) -> Drawing:
    return Drawing("\n".join([
        (f'<svg xmlns="http://www.w3.org/2000/svg" class="dl-svg" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">'),
        f"<title>{escape(name)}</title>",
        f"<desc>{escape(words)}</desc>",
        f"<style>{STYLE}</style>",
        f"<style>{COLLECTIVE_STYLE}</style>",
        f'<rect{group_attributes("bg")} width="{width}" height="{height}"/>',
        *parts, "</svg>"]))


def _state(one: Trace, step: int, frame: Frame) -> list[str]:
    return [*_labels(one, step, frame), *_cells(one, step, frame), *_arrows(one, step, frame)]


def _labels(one: Trace, step: int, frame: Frame) -> list[str]:
    middle = frame.cell_height // 2
    sent = [one.sent_by(r, step) for r in range(one.p)]
    most = max(one.sent)
    parts = [f'<g{group_attributes("text")}>']
    parts += [f'<text x="{frame.left - 8}" y="{frame.y(one, r) + middle + 4}" '
              f'text-anchor="end">rank {r}</text>' for r in range(one.p)]
    parts += [f'<text x="{frame.width - 6}" y="{frame.y(one, r) + middle - 1}" '
              f'text-anchor="end">{sent[r]} B</text>' for r in range(one.p)]
    parts += ["</g>", f'<g{group_attributes("muted")} font-size="11">',
              f'<text x="{frame.width - 6}" y="16" text-anchor="end">sent</text>']
    for c in range(one.chunks):
        name = ("whole buffer" if one.chunks == 1
                else f"chunk {c}" if frame.column >= 56 else str(c))
        parts.append(f'<text x="{frame.x(c) + frame.cell // 2}" y="16" '
                     f'text-anchor="middle">{name}</text>')
    for node in range(one.nodes[-1] + 1 if one.nodes[-1] else 0):
        members = [r for r in range(one.p) if one.nodes[r] == node]
        top, below = frame.y(one, members[0]), frame.y(one, members[-1]) + frame.cell_height
        parts += [f'<rect x="2" y="{top}" width="3" height="{below - top}"/>',
                  (f'<text transform="translate(16 {(top + below) // 2}) rotate(-90)" '
                  f'text-anchor="middle">node {node}</text>')]
    bars = [f'<rect x="{frame.width - 62}" y="{frame.y(one, r) + middle + 5}" '
            f'width="{56 * sent[r] // most}" height="4"/>' for r in range(one.p) if sent[r]]
    return [*parts, "</g>", f'<g{group_attributes("F")}>', *bars, "</g>"]


def _cells(one: Trace, step: int, frame: Frame) -> list[str]:
    copied = {(m.dest, c) for m in (one.messages[step - 1] if step else ()) if not m.reduce
              for c in m.chunks}
    boxes: dict[str, list[str]] = {"off": [], "F": [], "new": []}
    digits: dict[str, list[str]] = {"off": [], "F": [], "new": []}
    outlines, grounds = [], []
    complete = set(one.complete(step))
    for r in range(one.p):
        for c in range(one.chunks):
            x, y = frame.x(c), frame.y(one, r)
            bits = one.held[step][r][c]
            before = 0 if (r, c) in copied or not step else one.held[step - 1][r][c]
            grounds.append(f'<rect x="{x}" y="{y}" width="{frame.cell}" '
                           f'height="{frame.cell_height}" rx="3"/>')
            for k, rank in enumerate(ranks_in(one.wanted(c))):
                kind = ("off" if not bits >> rank & 1
                        else "F" if not step or before >> rank & 1 else "new")
                px = x + 2 + k % frame.across * frame.pip
                py = y + 2 + k // frame.across * frame.pip
                boxes[kind].append(f'<rect x="{px + 1}" y="{py + 1}" width="{frame.pip - 2}" '
                                   f'height="{frame.pip - 2}" rx="2"/>')
                digits[kind].append(f'<text x="{px + frame.pip // 2}" '
                                    f'y="{py + frame.pip // 2 + 4}">{rank}</text>')
            if (r, c) in complete:
                outlines.append(f'<rect x="{x - 2}" y="{y - 2}" width="{frame.cell + 4}" '
                                f'height="{frame.cell_height + 4}" rx="4"/>')
    parts = [f'<g{group_attributes("idle")}>', *grounds, "</g>"]
    for kind, drawn in boxes.items():
        look = group_attributes("F") if kind == "F" else COLLECTIVE_ATTRIBUTES[kind]
        parts += [f"<g{look}>", *drawn, "</g>"]
    if frame.pip >= 11:
        looks = {"off": group_attributes("muted"), "F": group_attributes("F", text=True),
                 "new": COLLECTIVE_ATTRIBUTES["newt"]}
        for kind, drawn in digits.items():
            parts += [(f'<g{looks[kind]} font-size="{11 if frame.pip >= 15 else 9}" '
                      'text-anchor="middle">'), *drawn, "</g>"]
    return [*parts, f'<g{COLLECTIVE_ATTRIBUTES["done"]}>', *outlines, "</g>"]


def _arrows(one: Trace, step: int, frame: Frame) -> list[str]:
    lines: dict[str, list[str]] = {"add": [], "copy": []}
    heads = []
    for m in one.messages[step - 1] if step else ():
        for c in m.chunks:
            line, head = _arrow(one, m.source, m.dest, c, frame)
            lines["add" if m.reduce else "copy"].append(f'<path d="{line}"/>')
            heads.append(f'<path d="{head}"/>')
    parts = []
    for kind, drawn in lines.items():
        parts += [f"<g{COLLECTIVE_ATTRIBUTES[kind]}>", *drawn, "</g>"]
    return [*parts, f'<g{group_attributes("text")}>', *heads, "</g>"]


def _arrow(one: Trace, source: int, dest: int, chunk: int, frame: Frame) -> tuple[str, str]:
    """Path of an arrow and of its head: straight to a neighbour, around the cells between else."""
    x, start, end = frame.x(chunk), frame.y(one, source), frame.y(one, dest)
    down = 1 if dest > source else -1
    if abs(dest - source) == 1:
        at = x + (frame.cell * 2 // 3 if down > 0 else frame.cell // 3)
        start += frame.cell_height + 3 if down > 0 else -3
        end += -3 if down > 0 else frame.cell_height + 3
        return (f"M{at} {start}V{end - 6 * down}",
                f"M{at} {end}l-4 {-7 * down}h8z")
    bulge = down * max(9, min((frame.column - frame.cell) * 2 // 3, 8 + 5 * abs(dest - source)))
    side = x + (frame.cell + 2 if down > 0 else -2)  # down on the right, up on the left
    start += frame.cell_height // 2 + 3 * down
    end += frame.cell_height // 2 - 3 * down
    return (f"M{side} {start}C{side + bulge} {start} {side + bulge} {end} {side + 5 * down} {end}",
            f"M{side} {end}l{7 * down} -4v8z")


def _legend(top: int, width: int) -> tuple[list[str], int]:
    """What boxes and arrows mean, in as many lines as it takes; and where it ends."""
    x, y, parts = 8, top + 8, []
    for kind, text in _LEGEND:
        wide = 30 + 7 * len(text)
        if x > 8 and x + wide > width:
            x, y = 8, y + 20
        look = group_attributes("F") if kind == "F" else COLLECTIVE_ATTRIBUTES[kind]
        shape = (f'<path d="M{x} {y + 6}h16"/>' if kind in ("add", "copy")
                 else f'<rect x="{x + 2}" y="{y}" width="12" height="12" rx="2"/>')
        parts += [f"<g{look}>{shape}</g>",
                  f'<text{group_attributes("text")} x="{x + 22}" y="{y + 10}">{text}</text>']
        x += wide
    return parts, y + 24
