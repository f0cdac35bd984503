"""A pipeline timeline as one stand-alone SVG: the picture of the book, the CLI and the explorer.

The text is a pure function of the timeline, so it can be compared, committed and inlined; colours
are CSS custom properties and follow the reader's light or dark setting. The explorer's
``timeline_svg.js`` draws the same string, character by character.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from distlearn.pipeline import Event, Timeline
from distlearn.plots.look import RECOMPUTATION_STYLE, STYLE, group_attributes
from distlearn.plots.numbers import fixed, number, ticks
from distlearn.plots.timeline_parts import (
    COMPUTED,
    LEAVING,
    TRANSFERS,
    Piece,
    describe,
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

LEFT, RIGHT = 58, 68  # px beside the time axis: rank names, and idle time or peak
_CHAR = 0.6  # width of a digit, as a share of the font size
_LANE = 6  # px for the transfers in one direction, below a row


def timeline_svg(timeline: Timeline, *, memory: bool = True, title: str | None = None,
                 unit: str = "", width: int = 760, tooltips: bool = True,
                 limit: float = 0.0) -> str:
    """Draw a timeline: a row per rank, boxes to scale, and below what each rank keeps.

    Parameters
    ----------
    timeline : Timeline
    memory : bool
        Whether to draw, below the rows, the activations that each rank keeps over time, in whole
        microbatches (v pieces of a rank's v stages make one).
    title : str, optional
        A heading. Without one the picture still has a name for screen readers.
    unit : str
        Unit of the costs, for example ``"ms"``.
    width : int
        Width of the drawing in px, at least 240. Text keeps its size, so a wider drawing shows
        more numbers.
    tooltips : bool
        Whether each box says action, start and end when pointed at. Without, all boxes of one
        colour are one path, which a browser draws several times faster.
    limit : float
        Activations, in whole microbatches, that a rank has room for: a dashed line, where it is
        not above twice the largest peak. 0 for none.

    Returns
    -------
    str
        A well-formed SVG document without outside references.

    Raises
    ------
    ValueError
        If ``width`` is below 240, or ``limit`` below 0.

    Examples
    --------
    >>> from distlearn.pipeline import build, simulate
    >>> timeline_svg(simulate(build("1f1b", p=2, m=3)))[:42]
    '<svg xmlns="http://www.w3.org/2000/svg" cl'
    """
    if width < 240:
        raise ValueError(f"width must be at least 240 px; got width={width}")
    if not 0 <= limit < math.inf:
        raise ValueError(f"limit must be a number >= 0; got limit={limit}")
    frame = Frame.of(timeline, memory=memory, title=title, width=width)
    name = title or f"Timeline of {timeline.schedule.name}"
    parts = [
        (f'<svg xmlns="http://www.w3.org/2000/svg" class="dl-svg" role="img" width="{width}" '
         f'height="{frame.height}" viewBox="0 0 {width} {frame.height}" '
         'font-family="system-ui, sans-serif" font-size="12">'),
        f"<title>{escape(name)}</title>",
        f"<desc>{escape(describe(timeline, unit))}</desc>",
        f"<style>{STYLE}{RECOMPUTATION_STYLE if 'R' in kinds_of(timeline) else ''}</style>",
        f'<rect{group_attributes("bg")} width="{width}" height="{frame.height}"/>',
    ]
    if title:
        parts.append(f'<text{group_attributes("text")} x="{LEFT}" y="20" font-size="14" '
                     f'font-weight="600">{escape(title)}</text>')
    parts += _legend(timeline, frame)
    parts += _rows(timeline, frame)
    parts += _boxes(timeline, frame, unit, tooltips)
    parts += _transfers(timeline, frame, unit, tooltips)
    if memory:
        parts += _memory(timeline, frame, limit)
    parts += _axis(frame, unit)
    parts.append("</svg>")
    return "\n".join(parts)


@dataclass(frozen=True)
class Frame:
    """Where things are, in px. ``x(time)`` is the one scale of the picture."""

    width: int
    scale: float
    span: float
    legend: tuple[tuple[str, int, int, int], ...]
    row: int
    gap: int
    top: int
    strip: int
    strips: int
    axis: int
    height: int

    @classmethod
    def of(cls, timeline: Timeline, *, memory: bool, title: str | None, width: int) -> Frame:
        """Lay out the picture of a timeline."""
        p = timeline.schedule.p
        span = timeline.makespan if timeline.makespan > 0 else 1.0
        row, gap, strip = (24, 3, 20) if p <= 8 else (18, 2, 14)
        if tall(timeline):
            row += 6
        if transfers(timeline):
            gap = 2 * _LANE + 2
        y = 34 if title else 10
        legend, y = _place_legend(timeline, width, y)
        top = y + 8
        strips = top + p * (row + gap) + 24
        axis = strips + p * strip + 4 if memory else top + p * (row + gap) + 2
        return cls(width, (width - LEFT - RIGHT) / span, span, legend, row, gap, top, strip,
                   strips, axis, axis + 38)

    def x(self, time: float) -> float:
        """Horizontal place of a time."""
        return LEFT + time * self.scale

    def y(self, rank: int) -> int:
        """Top of a rank's row."""
        return self.top + rank * (self.row + self.gap)


def _legend_entries(timeline: Timeline) -> list[tuple[str, str]]:
    entries = [(kind, kind_text(timeline, kind)) for kind in kinds_of(timeline)]
    entries.append(("idle", "bubble (idle)"))
    notes = [shade_text(timeline), *further_notes(timeline)]
    return entries + [("note", note) for note in notes if note]


def _place_legend(timeline: Timeline, width: int,
                  y: int) -> tuple[tuple[tuple[str, int, int, int], ...], int]:
    """Put the entries in lines that fit: (class, x, y, swatches) of each, and the y below."""
    x, placed = LEFT, []
    for name, text in _legend_entries(timeline):
        swatches = 0 if name == "note" else shades_of(timeline) if name in COMPUTED else 1
        size = swatches * 17 + 7 * len(text) + 16
        if x > LEFT and x + size > width:
            x, y = LEFT, y + 20
        placed.append((name, x, y, swatches))
        x += size
    return tuple(placed), y + 16


def _legend(timeline: Timeline, frame: Frame) -> list[str]:
    parts = []
    for (name, text), (_, x, y, swatches) in zip(
            _legend_entries(timeline), frame.legend, strict=True):
        for chunk in range(swatches):
            place = f'x="{x + 17 * chunk}" y="{y}" width="15" height="14"'
            if name == "idle":
                parts.append(f"<rect{group_attributes('idle')} {place}/>")
                continue
            if name in TRANSFERS:
                parts.append(f'<path{group_attributes("muted")} d="{_mark(name, x + 7, y + 5)}"/>')
                continue
            if "&" in name:
                parts += [f'<g{group_attributes(kind)}><rect x="{x}" y="{y + 7 * half}" width="15" '
                          'height="7"/></g>' for half, kind in enumerate(name.split("&"))]
                continue
            parts.append(f"<g{group_attributes(name, chunk)}><rect {place}/>")
            if swatches > 1:
                parts.append(f'<text{group_attributes(name, chunk, text=True)} font-size="10" '
                             f'text-anchor="middle" x="{x + 17 * chunk + 7.5}" '
                             f'y="{y + 11}">{chunk}</text>')
            parts.append("</g>")
        start = x + swatches * 17 + (4 if swatches else 0)
        parts.append(f'<text{group_attributes("text")} x="{start}" y="{y + 11}">{text}</text>')
    return parts


def _rows(timeline: Timeline, frame: Frame) -> list[str]:
    """Each rank's name, its row in the colour of idleness, and how long it idles."""
    right, end = frame.width - RIGHT, timeline.makespan
    parts = []
    for rank in range(timeline.schedule.p):
        y = frame.y(rank)
        middle = y + frame.row / 2 + 4
        parts.append(f'<rect{group_attributes("idle")} x="{LEFT}" y="{y}" '
                     f'width="{right - LEFT}" height="{frame.row}"/>')
        parts.append(f'<text{group_attributes("text")} x="{LEFT - 8}" y="{fixed(middle, 1)}" '
                     f'text-anchor="end">rank {rank}</text>')
        idle = number(max(end - timeline.busy[rank], 0.0))
        parts.append(f'<text{group_attributes("muted")} x="{right + 8}" '
                     f'y="{fixed(middle, 1)}">idle {idle}</text>')
    return parts


def _boxes(timeline: Timeline, frame: Frame, unit: str, tooltips: bool) -> list[str]:
    groups: dict[tuple[str, int, bool], list[Piece]] = {}
    for piece in pieces(timeline):
        key = (piece.part.kind, piece.shade, piece.half is not None)
        groups.setdefault(key, []).append(piece)
    sizes = {half: _label_size([piece for key, group in groups.items() if key[2] == half
                                for piece in group], timeline, frame, half)
             for half in (False, True)}
    shortest = min((e.end - e.start for e in timeline.events if e.end > e.start), default=1.0)
    edge = "0.8" if shortest * frame.scale > 4 else "0.3"  # an edge must not hide a thin box
    after = f" {unit}" if unit else ""
    parts = []
    for (kind, chunk, halved), group in sorted(groups.items(), key=lambda item: item[0]):
        boxes, labels = [], []
        size, least = sizes[halved]
        high = frame.row // 2 if halved else frame.row
        for piece in group:
            event = piece.event
            y = frame.y(event.rank) + (piece.half or 0) * high
            left = fixed(frame.x(event.start), 2)
            wide = fixed((event.end - event.start) * frame.scale, 2)
            if tooltips:
                boxes.append(f'<rect x="{left}" y="{y}" width="{wide}" height="{high}">'
                             f"{_tooltip(event, after)}</rect>")
            else:
                boxes.append(f"M{left} {y}h{wide}v{high}h-{wide}z")
            if piece.seconds >= least:
                middle = fixed(frame.x((event.start + event.end) / 2), 2)
                labels.append(_label(piece.lines, middle, y, high, size))
        shape = "".join(boxes) if tooltips else f'<path d="{"".join(boxes)}"/>'
        parts.append(f'<g{group_attributes(kind, chunk)} stroke-width="{edge}">{shape}</g>')
        if labels:
            parts.append(f'<g{group_attributes(kind, chunk, text=True)} font-size="{size}" '
                         'text-anchor="middle" pointer-events="none">' + "".join(labels) + "</g>")
    return parts


def _tooltip(event: Event, after: str) -> str:
    return (f"<title>{escape(str(event.action))} on rank {event.rank}: {number(event.start)} to "
            f"{number(event.end)}{escape(after)}</title>")


def _label(lines: tuple[str, ...], middle: str, y: int, high: int, size: int) -> str:
    """A number in the middle of a box, or two of them, one below the other."""
    first = y + high / 2 + 0.35 * size - (len(lines) - 1) * 0.5 * size
    below = "".join(f'<tspan x="{middle}" dy="{size}">{line}</tspan>' for line in lines[1:])
    return f'<text x="{middle}" y="{fixed(first, 1)}">{lines[0]}{below}</text>'


def _label_size(shown: list[Piece], timeline: Timeline, frame: Frame,
                half: bool) -> tuple[int, float]:
    """One font size for the numbers, and the duration from which on boxes have room for it."""
    chars = widest(timeline, half)
    high = frame.row // 2 - 3 if half or timeline.schedule.slices > 1 else frame.row
    size = min(12 if frame.row > 20 else 11, high)
    least = math.inf
    for seconds in {piece.seconds for piece in shown}:
        fits = int((seconds * frame.scale - 1.5 + 1e-7) / (_CHAR * chars))
        if fits >= 7:
            least = min(least, seconds)
            size = min(size, fits)
    return size, least


def _transfers(timeline: Timeline, frame: Frame, unit: str, tooltips: bool) -> list[str]:
    """Below each row: what leaves the rank, from a mark on; below that, what comes back."""
    after = f" {unit}" if unit else ""
    shapes: dict[str, list[str]] = {}
    for event in transfers(timeline):
        kind, leaving = event.action.kind, event.action.kind in LEAVING
        y = frame.y(event.rank) + frame.row + (1 if leaving else 1 + _LANE)
        left = fixed(frame.x(event.start), 2)
        wide = fixed((event.end - event.start) * frame.scale, 2)
        bar = f"M{left} {y + 2}h{wide}v1h-{wide}z"
        path = bar + _mark(kind, frame.x(event.start if leaving else event.end), y)
        shapes.setdefault(kind, []).append(
            f'<path d="{path}">{_tooltip(event, after)}</path>' if tooltips else path)
    return [f"<g{group_attributes('muted')}>"
            + ("".join(paths) if tooltips else f'<path d="{"".join(paths)}"/>') + "</g>"
            for paths in shapes.values()]


def _mark(kind: str, x: float, y: int) -> str:
    """A triangle: down for what leaves the rank, up for what comes back."""
    left = fixed(x - 3, 2)
    return f"M{left} {y}h6l-3 5z" if kind in LEAVING else f"M{left} {y + 5}h6l-3 -5z"


def _memory(timeline: Timeline, frame: Frame, limit: float) -> list[str]:
    """A strip per rank: the activations it keeps, all strips to one scale."""
    v, right = pieces_per_microbatch(timeline), frame.width - RIGHT
    most: float = max(max(timeline.peak_activations), 1)
    limit = limit * v if limit * v <= 2 * most else 0.0  # further up the curves would be flat
    most = max(most, limit)
    start = LEFT if frame.width >= 480 else 8
    pieces = "" if v == 1 else f" of {v} pieces"
    pieces += f"; dashed: limit of {number(limit / v)}" if limit and start == LEFT else ""
    parts = [(f'<text{group_attributes("text")} x="{start}" y="{frame.strips - 6}">'
              f"activations kept, in whole microbatches{pieces}</text>")]
    for rank in range(timeline.schedule.p):
        base = frame.strips + (rank + 1) * frame.strip
        step = (frame.strip - 3) / most
        path = f"M{LEFT} {base}"
        for time, kept in timeline.memory_curve(rank):
            path += f"H{fixed(frame.x(time), 2)}V{fixed(base - kept * step, 2)}"
        path += f"H{fixed(frame.x(timeline.makespan), 2)}V{base}Z"
        peak = number(timeline.peak_activations[rank] / v)
        parts.append(f'<path{group_attributes("memory")} d="{path}"/>')
        parts.append(f'<path{group_attributes("grid")} d="M{LEFT} {base}H{right}"/>')
        if limit:
            parts.append(f'<path{group_attributes("limit")} '
                         f'd="M{LEFT} {fixed(base - limit * step, 2)}H{right}"/>')
        parts.append(f'<text{group_attributes("text")} x="{LEFT - 8}" y="{base - 3}" '
                     f'text-anchor="end">rank {rank}</text>')
        parts.append(f'<text{group_attributes("muted")} x="{right + 8}" y="{base - 3}">'
                     f"peak {peak}</text>")
    return parts


def _axis(frame: Frame, unit: str) -> list[str]:
    right, y = frame.width - RIGHT, frame.axis
    marks, labels = f"M{LEFT} {y}H{right}", []
    for time in ticks(frame.span, (right - LEFT) / 60):
        x = fixed(frame.x(time), 2)
        marks += f"M{x} {y}V{y + 4}"
        labels.append(f'<text x="{x}" y="{y + 16}">{number(time)}</text>')
    name = f"time in {escape(unit)}" if unit else "time, in the unit of the costs"
    return [
        f'<path{group_attributes("grid")} d="{marks}"/>',
        f'<g{group_attributes("muted")} text-anchor="middle">' + "".join(labels)
        + f'<text x="{fixed((LEFT + right) / 2, 1)}" y="{y + 32}">{name}</text></g>',
    ]
