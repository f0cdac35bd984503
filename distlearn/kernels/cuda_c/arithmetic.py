"""C's arithmetic on known values: what hosts compute with, and what constants fold by.

Integers are Python ints within their type's range; ``float`` is `numpy.float32`.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.types import BOOL, INT, Number, common, promoted

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
           "==": operator.eq, "!=": operator.ne}
SIMPLE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
          "|": operator.or_, "^": operator.xor}


class Known(NamedTuple):
    """A value of an arithmetic type."""

    type: Number
    value: Any


class UndefinedError(ArithmeticError):
    """An operation that C leaves undefined; the message says which."""


def wrapped(kind: Number, value: int) -> int:
    """The integer of the type that is ``value`` modulo 2 to the number of its bits."""
    low, high = kind.bounds
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def convert(known: Known, kind: Number) -> Known:
    """A value converted to another type (C11 6.3.1).

    Raises
    ------
    UndefinedError
        A float that the integer type cannot hold.
    """
    value = known.value
    if kind.kind == "f":
        return Known(kind, kind.dtype.type(value))
    if kind == BOOL:
        return Known(kind, int(bool(value)))
    if known.type.is_integer:
        return Known(kind, wrapped(kind, int(value)))
    if not np.isfinite(value) or not kind.bounds[0] <= int(value) <= kind.bounds[1]:
        raise UndefinedError(f"{value} does not fit {kind}")
    return Known(kind, int(value))


def fitting(kind: Number, value: int, what: str) -> Known:
    """A result of the type: unsigned ones wrap, signed ones must fit."""
    if kind.kind == "i" and not kind.bounds[0] <= value <= kind.bounds[1]:
        raise UndefinedError(f"{what} is {value}, which {kind} cannot hold")
    return Known(kind, wrapped(kind, value))


def binary(op: str, a: Known, b: Known) -> Known:
    """``a op b``, without ``&&`` and ``||``.

    Raises
    ------
    UndefinedError
        Signed overflow, division by zero, a shift by too many bits.
    """
    if op in ("<<", ">>"):
        kind = promoted(a.type)
        if not 0 <= b.value < 8 * kind.size:
            raise UndefinedError(f"a shift of {kind} by {b.value} bits")
        if op == ">>":
            return Known(kind, a.value >> b.value)
        return Known(kind, wrapped(kind, a.value << b.value))
    kind = common(a.type, b.type)
    left, right = convert(a, kind).value, convert(b, kind).value
    if op in COMPARE:
        return Known(INT, int(COMPARE[op](left, right)))
    if kind.kind == "f":
        if op not in ("+", "-", "*", "/"):
            raise UndefinedError(f"{op} of {a.type} and {b.type}")
        with np.errstate(all="ignore"):
            return Known(kind, (np.divide if op == "/" else SIMPLE[op])(left, right))
    if op in ("/", "%"):
        if right == 0:
            raise UndefinedError("an integer is divided by zero")
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        fitting(kind, quotient, f"{left} / {right}")
        return Known(kind, quotient if op == "/" else left - quotient * right)
    return fitting(kind, SIMPLE[op](left, right), f"{left} {op} {right}")


def unary(op: str, a: Known) -> Known:
    """``+a``, ``-a``, ``~a``, ``!a``."""
    if op == "!":
        return Known(INT, int(not a.value))
    kind = promoted(a.type)
    value = convert(a, kind).value
    if op == "+":
        return Known(kind, value)
    if op == "-":
        return Known(kind, -value) if kind.kind == "f" else fitting(kind, -value, f"-({value})")
    if op == "~" and kind.is_integer:
        return Known(kind, wrapped(kind, ~value))
    raise UndefinedError(f"{op} of {a.type}")


def constant(kind: str, text: str) -> Known:
    """A literal as pycparser gives it: "int" and its like, "float", "double", "char".

    Raises
    ------
    UndefinedError
        A literal of no form known here.
    """
    if kind == "char" or text.startswith("'"):
        body = text[1:-1].encode("latin-1", "replace").decode("unicode_escape")
        if len(body) != 1:
            raise UndefinedError(f"the character literal {text}")
        return Known(types.INT, ord(body))
    digits = text.lower()
    if kind in ("float", "double", "long double"):
        if digits.startswith("0x"):
            return Known(types.DOUBLE, np.float64(float.fromhex(digits.rstrip("fl"))))
        is_float = digits.endswith("f")
        number = types.FLOAT if is_float else types.DOUBLE
        return Known(number, number.dtype.type(digits.rstrip("fl")))
    suffix = digits[len(digits.rstrip("ul")):]
    digits = digits.rstrip("ul")
    decimal = digits[:1] != "0" or digits == "0"
    try:
        value = int(digits, 10 if decimal else 16 if digits[:2] == "0x" else
                    2 if digits[:2] == "0b" else 8)
    except ValueError:
        raise UndefinedError(f"the number {text}") from None
    wanted = [k for k in (types.INT, types.UINT, types.LONG, types.ULONG)
              if ("u" not in suffix or k.kind == "u")
              and (suffix.count("l") == 0 or k.rank >= types.LONG.rank)
              and (k.kind == "i" or "u" in suffix or not decimal)]
    for number in wanted:
        if value <= number.bounds[1]:
            return Known(number, value)
    raise UndefinedError(f"the number {text} is too large")
