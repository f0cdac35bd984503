"""Values of options: strict numbers, and options whose value may be left out."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand


def count(text: str | int) -> int:
    """A whole number >= 1, in plain digits; a default is a number already.

    Examples
    --------
    >>> count("8")
    8
    """
    if not re.fullmatch(r"[0-9]+", str(text)) or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is not a whole number >= 1")
    return int(text)


def times(text: str) -> float | tuple[float, ...]:
    """One time >= 0, or one per stage, separated by commas; 1/3 is a third.

    Examples
    --------
    >>> times("1.5"), times("1,2,2,1"), times("2/4")
    (1.5, (1.0, 2.0, 2.0, 1.0), 0.5)
    """
    numbers = []
    for part in text.split(","):
        number = _share(part)
        if not math.isfinite(number) or number < 0:
            raise typer.BadParameter(f"{text!r} is not a time: a number >= 0 or a fraction such as "
                                     "1/3, or one per stage separated by commas")
        numbers.append(number)
    return tuple(numbers) if "," in text else numbers[0]


def _share(text: str) -> float:
    """A number, or one divided by another; nan for what is neither."""
    above, slash, below = text.partition("/")
    try:
        return float(above) / float(below if slash else 1) if "_" not in text else math.nan
    except (ValueError, ZeroDivisionError):
        return math.nan


def named_times(text: str) -> dict[str, float]:
    """Times by name, ``F=1,B=2,comm=0.1``.

    Examples
    --------
    >>> named_times("F=1,B=5/2")
    {'F': 1.0, 'B': 2.5}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        number = _share(value)
        if not equals or name not in ("F", "B", "I", "W", "comm") or not 0 <= number < math.inf:
            raise typer.BadParameter(f"{part!r} is not a time by name: F, B, I, W or comm, as in "
                                     "F=1,B=2,comm=0.1")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice in {text!r}")
        found[name] = number
    return found


def setting(text: str) -> tuple[str, int | float | bool | str | None]:
    """An option of a schedule, ``NAME=VALUE``: a number, true, false, none, or text.

    Examples
    --------
    >>> setting("slices=2"), setting("overlap=true"), setting("method=heuristic")
    (('slices', 2), ('overlap', True), ('method', 'heuristic'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE, such as slices=2")
    from distlearn.pipeline.option_text import option_value

    return name, option_value(value)


def seconds(text: str | float) -> float:
    """A number of seconds > 0; a default is a number already.

    Examples
    --------
    >>> seconds("0.5")
    0.5
    """
    value = times(str(text))
    if not isinstance(value, float) or value == 0:
        raise typer.BadParameter(f"{text!r} is not a number of seconds > 0")
    return value


class OptionalValues(TyperCommand):
    """A command in which ``--json`` alone means ``--json -``: the output goes to stdout.

    What follows such an option is its FILE, unless it is another option or a word that can only
    be the command's own argument (`words`).
    """

    options: ClassVar[Collection[str]] = ("--json", "--svg")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the value ``-`` where it was left out, then parse as always."""
        words = self.words()
        complete: list[str] = []
        for index, arg in enumerate(args):
            complete.append(arg)
            after = args[index + 1] if index + 1 < len(args) else "--"
            if arg in self.options and after != "-" and (after.startswith("-") or after in words):
                complete.append("-")
        parsed: list[str] = super().parse_args(ctx, complete)
        return parsed

    def words(self) -> Collection[str]:
        """Words that are never the name of an output file."""
        return ()
