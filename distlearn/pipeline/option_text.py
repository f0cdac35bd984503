"""Options of schedules as text, for the command line and the explorer."""

from __future__ import annotations

import re


def option_value(text: str) -> int | float | bool | str | None:
    """What a text means: a number, true, false, none; else itself.

    Examples
    --------
    >>> [option_value(text) for text in ("2", "0.25", "true", "heuristic")]
    [2, 0.25, True, 'heuristic']
    """
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+", text):
        return float(text)
    return text
