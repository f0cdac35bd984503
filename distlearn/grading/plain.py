"""Plain data: what an answer is turned into before anyone compares it.

A value made by a learner's code may lie: its ``__eq__`` may always say yes, its class may pretend
to be ``float``. So only exact built-in types pass, everything else becomes an `Other` that names
the type and equals nothing. The coded form is JSON, to cross from one process to another. Standard
library only: the worker process imports this file.
"""

from __future__ import annotations

import sys
from typing import Any

MAX_ITEMS = 50_000
MAX_TEXT = 200_000
MAX_DEPTH = 20
MAX_BITS = 4096


def legible(text: str) -> str:
    """The text with a mark in place of what a terminal or a page would obey instead of show."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
                   for c in text)


class Other:
    """A value that is not plain data; equal to nothing but itself.

    Attributes
    ----------
    what : str
        The name of its type, or why it could not be read.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


class _Budget:
    """How much of a value may still be read."""

    def __init__(self) -> None:
        self.items, self.text = MAX_ITEMS, MAX_TEXT


def encode(value: Any) -> Any:
    """Code a value for JSON: lists as ``["l", ...]``, tuples ``["t", ...]``, dicts ``["d", ...]``.

    numpy scalars and arrays, ``Fraction`` and ``Decimal`` become built-in numbers and lists. What
    is not plain, or too large (50,000 items, 200,000 characters, 20 levels), is coded
    ``["?", its type]``.
    """
    try:
        return _encode(value, _Budget(), 0)
    except _TooLargeError as error:
        return ["?", str(error)]


class _TooLargeError(Exception):
    pass


def _encode(value: Any, budget: _Budget, depth: int) -> Any:
    kind = type(value)
    budget.items -= 1
    if budget.items < 0:
        raise _TooLargeError(f"more than {MAX_ITEMS:,} items")
    if depth > MAX_DEPTH:
        raise _TooLargeError(f"more than {MAX_DEPTH} levels of nested lists")
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        return value if value.bit_length() <= MAX_BITS else ["?", "int of more than 1,000 digits"]
    if kind is str:
        budget.text -= len(value)
        if budget.text < 0:
            raise _TooLargeError(f"more than {MAX_TEXT:,} characters")
        return value.encode("utf-8", "replace").decode()
    if kind is list or kind is tuple:
        return ["l" if kind is list else "t", *(_encode(x, budget, depth + 1) for x in value)]
    if kind is dict:
        return ["d", *([_encode(key, budget, depth + 1), _encode(x, budget, depth + 1)]
                       for key, x in value.items())]
    return _encode_foreign(value, budget, depth)


def _encode_foreign(value: Any, budget: _Budget, depth: int) -> Any:
    """Numpy values and exact fractions, by exact type; anything else by the name of its type."""
    kind = type(value)
    if kind is Other:
        return ["?", value.what]
    numpy = sys.modules.get("numpy")
    fractions, decimal = sys.modules.get("fractions"), sys.modules.get("decimal")
    try:
        if numpy is not None:
            if kind is numpy.ndarray:
                if value.size > budget.items:
                    raise _TooLargeError(f"an array of {value.size:,} numbers")
                return _encode(value.tolist(), budget, depth + 1)
            if issubclass(kind, numpy.generic) and kind.__module__ == "numpy":
                item = value.item()
                return ["?", kind.__name__] if type(item) is kind else _encode(item, budget, depth)
        if fractions is not None and kind is fractions.Fraction:
            return value.numerator / value.denominator
        if decimal is not None and kind is decimal.Decimal:
            return float(value)
    except _TooLargeError:
        raise
    except Exception:  # a numpy that is not numpy, a fraction beyond float: name the type
        pass
    name = type.__getattribute__(kind, "__name__")
    base = next((b.__name__ for b in (bool, int, float, str, list, tuple, dict)
                 if b in type.__getattribute__(kind, "__mro__")[1:]), None)
    suffix = f", a kind of {base}" if base else ""
    return ["?", f"{str(name)[:60]}{suffix}"]


def decode(node: Any) -> Any:
    """The value that `encode` coded; for what is not plain, an `Other`.

    Raises
    ------
    ValueError
        If ``node`` was not made by `encode`.
    """
    kind = type(node)
    if node is None or kind in (bool, int, float, str):
        return node
    if kind is list and node and type(node[0]) is str:
        tag, *rest = node
        if tag == "l":
            return [decode(x) for x in rest]
        if tag == "t":
            return tuple(decode(x) for x in rest)
        if tag == "d":
            pairs = [(decode(key), decode(x)) for key, x in rest]
            try:
                return dict(pairs)
            except TypeError:
                return Other("dict")
        if tag == "?" and len(rest) == 1 and type(rest[0]) is str:
            return Other(rest[0][:120])
    raise ValueError(f"not the code of plain data: {str(node)[:60]}")
