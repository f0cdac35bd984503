"""Which element each lane of a warp wants: patterns by name, and lanes set one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distlearn.widgets.panel import whole

LANES = 32
PATTERNS = {
    "strided": "stride · lane",
    "reversed": "stride · (31 − lane)",
    "shuffled": "stride · ((11 · lane + 5) mod 32)",
    "random": "any of 32 · stride",
}
MOST = 32 * 64
"""Elements that a lane can be sent to."""


def lane_elements(setting: Mapping[str, Any]) -> list[int]:
    """The element that each of 32 lanes wants, from pattern, stride, offset and moved lanes.

    >>> lane_elements({"pattern": "strided", "stride": 2, "offset": 1, "moved": {"3": 0}})[:5]
    [1, 3, 5, 0, 9]
    """
    stride, found, state = setting["stride"], [], 1
    for lane in range(LANES):
        state = 16807 * state % (2**31 - 1)  # Park and Miller's generator: small enough for a page
        number = {"strided": stride * lane, "reversed": stride * (LANES - 1 - lane),
                  "shuffled": stride * ((11 * lane + 5) % LANES),
                  "random": state % max(1, LANES * stride)}[setting["pattern"]]
        found.append(setting["moved"].get(str(lane), setting["offset"] + number))
    return found


def moved_lanes(moved: Mapping[int, int]) -> dict[str, int]:
    """Lanes set one by one, checked, as a page keeps them.

    Raises
    ------
    ValueError
        For a lane or an element that is out of range.
    """
    return {str(whole("a lane of moved", lane, 0, LANES - 1)):
            whole(f"moved[{lane}]", element, 0, MOST - 1) for lane, element in moved.items()}


def counted(n: int, word: str) -> str:
    """A number with its noun.

    >>> counted(1, "sector"), counted(2, "sector")
    ('1 sector', '2 sectors')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"
