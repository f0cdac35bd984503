"""The bank conflict explorer: how many turns a warp's request to shared memory takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from distlearn.hardware.memory_system import BANK_BYTES, BANKS, shared_access
from distlearn.widgets.lane_patterns import (
    LANES,
    PATTERNS,
    counted,
    lane_elements,
    moved_lanes,
)
from distlearn.widgets.panel import Panel, View, choice, one_of, slider, switch, whole

ITEMS = {4: "4 bytes: float", 8: "8 bytes: float2", 16: "16 bytes: float4"}
COLUMNS = 32


class BankConflictExplorer(Panel):
    """32 lanes read a tile in shared memory, 32 elements wide: words, banks and wavefronts.

    Element ``e`` is in row ``e div 32`` and column ``e mod 32`` of the tile: stride 1 reads a row,
    32 a column, 0 one element.

    Parameters
    ----------
    pattern, stride, offset, moved, lane
        As `CoalescingExplorer`.
    item_bytes : int
        4, 8 or 16; more than 4 is a vector load.
    padding : int
        Elements added to each row of the tile, 0 to 4.
    swizzle : bool
        Whether column ``c`` of row ``r`` is kept at column ``c XOR (r mod 32)``.

    Raises
    ------
    ValueError
        For a value out of range.

    Examples
    --------
    >>> [BankConflictExplorer(stride=32, padding=p).view().numbers[0][1] for p in (0, 1, 2)]
    ['32', '1', '2']
    """

    label = "Bank conflicts, lane by lane"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "player.js", "panel.js", "lane_patterns.js", "bank_conflict_explorer.js")
    mount = "mountBankConflictExplorer"
    picture = ("Lanes and the banks they read; left and right choose a lane, up and down move it "
               "by an element, Page Up and Page Down by a row of the tile, Delete puts it back")
    hint = ("Click a lane, then a bank to send it there. Keys: ← → lane, ↑ ↓ element, Page Up and "
            "Down row of the tile, Delete back to the pattern.")

    def __init__(self, pattern: str = "strided", stride: int = 32, offset: int = 0,
                 item_bytes: int = 4, padding: int = 0, swizzle: bool = False,
                 moved: Mapping[int, int] | None = None, lane: int = 0) -> None:
        super().__init__(
            pattern=one_of("pattern", pattern, PATTERNS), stride=whole("stride", stride, 0, 33),
            offset=whole("offset", offset, 0, 32), item=one_of("item_bytes", item_bytes, ITEMS),
            padding=whole("padding", padding, 0, 4), swizzle=bool(swizzle),
            moved=moved_lanes(moved or {}), lane=whole("lane", lane, 0, 31))

    def controls(self) -> Sequence[str]:
        """Pattern, stride, offset, element size, padding, swizzle."""
        s = self.setting
        return (choice("pattern", s["pattern"], {k: f"{k}: {v}" for k, v in PATTERNS.items()}),
                slider("stride", s["stride"], 0, 33, note="elements"),
                slider("offset", s["offset"], 0, 32, note="elements"),
                choice("item", s["item"], ITEMS, note="size"),
                slider("padding", s["padding"], 0, 4, note="a row"),
                switch("swizzle", s["swizzle"], "column XOR row"))

    def view(self) -> View:
        """What the request takes, by `distlearn.hardware.memory_system`."""
        item, lane = self.setting["item"], self.setting["lane"]
        elements = lane_elements(self.setting)
        placed = [place(self.setting, e) for e in elements]
        wavefronts = int(shared_access(np.array(placed) * item, item).wavefronts)
        each = item // BANK_BYTES
        words = {p * each + n for p in placed for n in range(each)}
        banks = {word % BANKS for word in words}
        sharing = LANES - len(set(placed))
        row, column = divmod(elements[lane], COLUMNS)
        first = placed[lane] * each
        bank = f"bank {first % BANKS}" if each == 1 else (
            f"banks {first % BANKS} to {first % BANKS + each - 1}")
        return View(
            (("wavefronts", str(wavefronts), f"at least {each}"),
             ("bank conflicts", str(wavefronts - each), "wavefronts beyond that"),
             ("words", str(len(words)), f"of 4 bytes, in {len(banks)} of {BANKS} banks"),
             ("broadcast", str(sharing), "lanes that share another's word")),
            f"One request of a warp to shared memory, {item} bytes a lane: "
            f"{counted(wavefronts, 'wavefront')}, {each} at least. Lane {lane} wants element "
            f"{elements[lane]}, row {row}, column {column}: word {first}, {bank}.")


def place(setting: Mapping[str, Any], element: int) -> int:
    """Where an element is kept, in elements, after padding and swizzling."""
    row, column = divmod(element, COLUMNS)
    if setting["swizzle"]:
        column ^= row % COLUMNS
    return row * (COLUMNS + int(setting["padding"])) + column
