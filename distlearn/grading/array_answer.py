"""An answer that is an array: numbers in a list, a list of lists, or one number alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distlearn.grading.answer import Answer, View, misfit, short, too_large

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Array(Answer):
    """Finite numbers in the wanted shape, each right within a tolerance.

    Attributes
    ----------
    tolerance : float
        Relative to the largest wanted number of all, as rounding errors of sums are.
    """

    tolerance: float = 1e-9
    noun: str = "an array of numbers"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) in (int, float):
            return too_large(got)
        if type(got) not in (list, tuple):
            return misfit(got, self.noun)
        for index, item in _items(got):
            if type(item) not in (int, float):
                return (f"It returned {_short(item)} at index {index}; every item has to be a "
                        "number.")
            if too_large(item):
                return too_large(item)
        if shape(got) is None:
            return "It returned lists of different lengths in a list: that is no array."
        return ""

    def same(self, got: Any, wanted: Any) -> bool:
        """See `Answer`."""
        slack = self._slack(wanted)
        return shape(got) == shape(wanted) and all(
            _close(a, b, slack)
            for (_, a), (_, b) in zip(_items(got), _items(wanted), strict=True))

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if shape(got) != shape(wanted):
            if len(shape(got) or ()) < 2 and len(shape(wanted) or ()) == 1:
                return (f"It has {_size(got)}; {len(wanted)} {'are' if len(wanted) > 1 else 'is'} "
                        "asked for.")
            return f"Its shape is {shape(got)}; {shape(wanted)} is asked for."
        a, b = [x for _, x in _items(got)], [x for _, x in _items(wanted)]
        if any(math.isnan(x) for x in a):
            return "nan is no number: somewhere 0/0 or inf - inf is computed."
        if any(math.isinf(x) and x not in b for x in a):
            return "The result is infinite: look for a division by zero or an overflow."
        slack = self._slack(wanted)
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if abs(y) > slack]
        ratio = pairs[0][0] / pairs[0][1] if pairs else 0.0
        if ratio and all(_close(x, ratio * y, slack) for x, y in zip(a, b, strict=True)):
            if ratio == -1:
                return "The sign is the other way round."
            return f"Every number is {ratio:.4g} times what is wanted."
        if any(_close(x, y, slack) for x, y in pairs):
            right = sum(_close(x, y, slack) for x, y in zip(a, b, strict=True))
            return f"{right} of {len(b)} numbers are right."
        return ""

    def view(self, got: Any, wanted: Any) -> View:
        """The first row that differs, its right numbers as they are wanted, the others short."""
        if shape(got) != shape(wanted):
            return View(got, wanted)
        place = ""
        while type(wanted) in (list, tuple) and len(shape(wanted) or ()) > 1:
            slack = self._slack(wanted)
            row = next((k for k, (a, b) in enumerate(zip(got, wanted, strict=True))
                        if not all(_close(x, y, slack) for (_, x), (_, y)
                                   in zip(_items(a), _items(b), strict=True))), 0)
            got, wanted, place = got[row], wanted[row], f"{place}[{row}]"
        part = f"row {place}" if place else ""
        slack = self._slack(wanted)
        if type(wanted) not in (list, tuple):
            return View(_rounded(got, wanted, slack), _rounded(wanted, wanted, slack), part)
        return View([_rounded(x, y, slack) for x, y in zip(got, wanted, strict=True)],
                    [_rounded(y, y, slack) for y in wanted], part)

    def _slack(self, wanted: Any) -> float:
        largest = max((abs(x) for _, x in _items(wanted) if math.isfinite(x)), default=0.0)
        return self.tolerance * largest + 1e-12


def shape(value: Any) -> Shape | None:
    """Shape of nested lists; None if they form no array."""
    if type(value) not in (list, tuple):
        return ()
    inner = {shape(item) for item in value}
    if not inner:
        return (0,)
    only = inner.pop()
    return None if inner or only is None else (len(value), *only)


def _size(value: Any) -> str:
    """``3 numbers``, of a list or of one number alone."""
    count = len(value) if type(value) in (list, tuple) else 1
    return f"{count} number{'s' * (count != 1)}"


def _items(value: Any, index: str = "") -> Iterator[tuple[str, Any]]:
    if type(value) in (list, tuple):
        for k, item in enumerate(value):
            yield from _items(item, f"{index}[{k}]")
    else:
        yield index, value


def _close(got: float, wanted: float, slack: float) -> bool:
    return got == wanted or abs(got - wanted) <= slack


def _rounded(value: float, wanted: float, slack: float) -> float:
    """To six digits, but never so that a wrong number looks right."""
    if type(value) is int:
        return value
    short_form = float(f"{value:.6g}")
    if _close(value, wanted, slack):
        return float(f"{wanted:.6g}")
    return value if short_form == float(f"{wanted:.6g}") else short_form


def _short(item: Any) -> str:
    return short(item) if type(item) is not str else f"text, {short(item)},"
