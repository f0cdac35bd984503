"""The coalescing explorer: what one request of a warp to global memory moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from distlearn.hardware.memory_system import LINE_BYTES, SECTOR_BYTES, global_access
from distlearn.plots.numbers import percent
from distlearn.widgets.lane_patterns import PATTERNS, counted, lane_elements, moved_lanes
from distlearn.widgets.panel import Panel, View, choice, one_of, slider, whole

ITEM_BYTES = (1, 2, 4, 8, 16)


class CoalescingExplorer(Panel):
    """32 lanes load from global memory: the sectors and lines that their addresses fall in.

    Parameters
    ----------
    pattern : str
        ``strided``, ``reversed``, ``shuffled`` or ``random``.
    stride : int
        Elements from a lane to the next, 0 to 33.
    offset : int
        Element of the first lane, 0 to 32.
    item_bytes : int
        Size of an element: 1, 2, 4, 8 or 16.
    moved : mapping of int to int
        Lane -> element, for lanes that do not follow the pattern.
    lane : int
        The lane that is chosen at first.

    Raises
    ------
    ValueError
        For a value outside these ranges.

    Examples
    --------
    >>> CoalescingExplorer(stride=2).status[:72]
    'One request of a warp: 32 lanes, elements of 4 bytes. It moves 8 sectors'
    """

    label = "Coalescing, lane by lane"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "player.js", "panel.js", "lane_patterns.js", "coalescing_explorer.js")
    mount = "mountCoalescingExplorer"
    picture = ("Lanes and the memory they read; left and right choose a lane, up and down move it "
               "by an element, Page Up and Page Down by a line, Delete puts it back")
    hint = ("Click a lane, then an element of memory to send it there. Keys: ← → lane, ↑ ↓ "
            "element, Page Up and Down line, Delete back to the pattern.")

    def __init__(self, pattern: str = "strided", stride: int = 1, offset: int = 0,
                 item_bytes: int = 4, moved: Mapping[int, int] | None = None,
                 lane: int = 0) -> None:
        super().__init__(
            pattern=one_of("pattern", pattern, PATTERNS), stride=whole("stride", stride, 0, 33),
            offset=whole("offset", offset, 0, 32),
            item=one_of("item_bytes", item_bytes, ITEM_BYTES), moved=moved_lanes(moved or {}),
            lane=whole("lane", lane, 0, 31))

    def controls(self) -> Sequence[str]:
        """Pattern, stride, offset, element size."""
        s = self.setting
        return (choice("pattern", s["pattern"], {k: f"{k}: {v}" for k, v in PATTERNS.items()}),
                slider("stride", s["stride"], 0, 33, note="elements"),
                slider("offset", s["offset"], 0, 32, note="elements"),
                choice("item", s["item"], {n: f"{n} byte{'s' * (n > 1)}" for n in ITEM_BYTES},
                       note="size"))

    def view(self) -> View:
        """What the request moves, by `distlearn.hardware.memory_system`."""
        item, lane = self.setting["item"], self.setting["lane"]
        elements = lane_elements(self.setting)
        access = global_access(np.array(elements) * item, item)
        sectors, lines = int(access.sectors), int(access.lines)
        moved, useful = int(access.moved_bytes), int(access.useful_bytes)
        least, start = -(-useful // SECTOR_BYTES), elements[lane] * item
        share = percent(float(access.efficiency))
        return View(
            (("sectors", str(sectors), f"of {SECTOR_BYTES} bytes; {least} would do"),
             ("lines", str(lines), f"of {LINE_BYTES} bytes"),
             ("bytes moved", str(moved), f"{useful} of them wanted, {32 * item} asked for"),
             ("efficiency", share, "wanted over moved bytes")),
            f"One request of a warp: 32 lanes, elements of {counted(item, 'byte')}. It moves "
            f"{counted(sectors, 'sector')} of {counted(lines, 'line')}; efficiency {share}. "
            f"Lane {lane} wants element {elements[lane]}: bytes {start} to {start + item - 1}, "
            f"sector {start // SECTOR_BYTES}, line {start // LINE_BYTES}.")
