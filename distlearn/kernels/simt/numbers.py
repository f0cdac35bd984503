"""Arithmetic on values of all threads: uniform, symbolic, or arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import no_number
from distlearn.kernels.oracle.arithmetic import OPERATIONS, narrow, wrap
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Sym, sym

INT64 = np.dtype(np.int64)
COMPARE = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
           "Eq": operator.eq, "NotEq": operator.ne}
Whole = int | Sym
REAL = (np.floating, bfloat16)
NUMBERS = (*REAL, np.integer, np.bool_, str)  # float32("inf") takes a string
VALUES = (int, np.floating, bfloat16, np.integer, Sym, Mask, np.ndarray)


def is_real(value: Any) -> bool:
    """Whether a value is of a floating type."""
    if type(value) is np.ndarray:
        return value.dtype.kind in "fV"
    return isinstance(value, REAL)


def numeric(value: Any) -> Any:
    """A value as numpy computes with it: ints are int64, so float32 and int give float64."""
    kind = type(value)
    if kind is np.ndarray:
        return value
    if kind is Sym:
        return value.array
    if isinstance(value, int):
        return np.int64(value)
    if kind is Mask:
        return value.array.astype(np.int64)
    if not isinstance(value, NUMBERS):
        no_number(value)
    return value


def binary(space: Space, line: int, kind: str, a: Any, b: Any, mask: Mask) -> Any:
    """A binary operation."""
    left, right = type(a), type(b)
    if left is bool:
        a, left = int(a), int
    if right is bool:
        b, right = int(b), int
    if (left is int or left is Sym) and (right is int or right is Sym):
        return integer(space, line, kind, a, b, mask)
    if isinstance(a, Mask) and isinstance(b, Mask) and kind in ("BitAnd", "BitOr", "BitXor"):
        array = OPERATIONS[kind](a.array, b.array)
        return space.truth(array, a.static and b.static)
    real = is_real(a) or is_real(b)
    a, b = numeric(a), numeric(b)
    if kind == "MatMult" or (real and kind in ("LShift", "RShift", "BitAnd", "BitOr", "BitXor")):
        raise KernelError("unsupported", f"operation {kind} of floats", line=line)
    if not real:
        if kind in ("Div", "FloorDiv", "Mod"):
            zero = b == 0
            if zero.any() if isinstance(zero, np.ndarray) else zero:
                nonzero(line, kind, b, mask)
                b = np.where(zero, 1, b)
            elif kind != "Div" and isinstance(b, np.int64) and b > 0 and b & (b - 1) == 0:
                return by_power_of_two(kind, a, int(b))
        if kind == "Div" or (kind == "Pow" and np.any(b < 0)):
            a = np.float64(a)
    elif kind == "Pow" and not is_real(b):  # a float keeps its type, in numba as in numpy
        b = b.astype(a.dtype)
    return OPERATIONS[kind](a, b)


def with_constant(kind: str, left: ast.expr, right: ast.expr) -> Callable[[Any], Any] | None:
    """An operation with an integer that is written there, if it is a usual one.

    It gives None for what is neither an integer nor an array of them.
    """
    constant = right if isinstance(right, ast.Constant) else left
    if not isinstance(constant, ast.Constant) or type(constant.value) is not int or (
            kind not in ("Add", "Sub", "Mult", "BitAnd", "BitOr", "BitXor", "FloorDiv", "Mod")):
        return None
    whole, function, first = constant.value, OPERATIONS[kind], constant is left
    if abs(whole) >= 1 << 32 or (kind in ("FloorDiv", "Mod") and (first or whole <= 0)):
        return None
    number = np.int64(whole)
    power = kind in ("FloorDiv", "Mod") and whole & (whole - 1) == 0

    def run(value: Any) -> Any:
        if type(value) is int and abs(value) < 1 << 30:
            return function(whole, value) if first else function(value, whole)
        if type(value) is not np.ndarray or value.dtype != INT64:
            return None
        if power:
            return by_power_of_two(kind, value, whole)
        return function(number, value) if first else function(value, number)
    return run


def by_power_of_two(kind: str, value: Any, power: int) -> Any:
    """``//`` or ``%``: numpy divides one by one, but shifts and masks many at once."""
    return value & (power - 1) if kind == "Mod" else value >> (power.bit_length() - 1)


def nonzero(line: int, kind: str, divisor: Any, mask: Mask) -> None:
    """Refuse an integer division by zero in an active thread."""
    bad = mask.space.mask((np.asarray(divisor) == 0) & mask.array, False)
    if bad is not None:
        raise KernelError("division_by_zero", f"an integer is divided by zero ({kind})", line=line,
                          **bad.first)


def integer(space: Space, line: int, kind: str, a: Whole, b: Whole, mask: Mask) -> Any:
    """Integers: affine where possible, else a vector that equal expressions share."""
    if type(a) is int and type(b) is int:
        if kind in ("Add", "Sub", "Mult"):
            whole: int = OPERATIONS[kind](a, b)
            return whole if -(1 << 63) <= whole < 1 << 63 else wrap(whole)
        if kind in ("Div", "FloorDiv", "Mod") and b == 0:
            nonzero(line, kind, 0, mask)
        if kind == "Div":
            return np.float64(a) / np.float64(b)
        if kind == "Pow" and b < 0:
            return np.float64(a) ** np.int64(b)
        return wrap(OPERATIONS[kind](a, b))
    if kind in ("Add", "Sub", "Mult") and _may_wrap(kind, a, b):
        return remembered(space, kind, a, b, lambda: OPERATIONS[kind](numeric(a), numeric(b)))
    if kind in ("Add", "Sub"):
        sign = 1 if kind == "Add" else -1
        if isinstance(b, int):
            assert isinstance(a, Sym)
            return Sym(a.vec, a.const + sign * b)
        if isinstance(a, int):
            return sym(b.vec.times(sign), a + sign * b.const)
        return sym(a.vec.plus(b.vec, sign), a.const + sign * b.const)
    if kind == "Mult" and (isinstance(a, int) or isinstance(b, int)):
        factor, thing = (a, b) if isinstance(a, int) else (b, a)
        assert isinstance(factor, int) and isinstance(thing, Sym)
        return sym(thing.vec.times(factor), thing.const * factor)
    if kind in ("Div", "FloorDiv", "Mod"):
        divisor = numeric(b)
        if b == 0 if isinstance(b, int) else (divisor == 0).any():
            nonzero(line, kind, divisor, mask)
            divisor = np.where(divisor == 0, 1, divisor)
        if kind == "Div":
            return numeric(a) / divisor
        return remembered(space, kind, a, b, lambda: OPERATIONS[kind](numeric(a), divisor))
    return remembered(space, kind, a, b, lambda: OPERATIONS[kind](numeric(a), numeric(b)))


def _may_wrap(kind: str, a: Whole, b: Whole) -> bool:
    """Whether a result may need more than 64 bits: then it is no affine expression any more."""
    left = abs(a) if isinstance(a, int) else a.vec.reach + abs(a.const)
    right = abs(b) if isinstance(b, int) else b.vec.reach + abs(b.const)
    return (left * right if kind == "Mult" else left + right) >= 1 << 62


def remembered(space: Space, kind: str, a: Whole, b: Whole, compute: Any) -> Any:
    """The vector of a non-affine expression, the same object for the same expression."""
    first = a if isinstance(a, Sym) else b
    assert isinstance(first, Sym)
    key = (kind, *(((v.vec, v.const) if isinstance(v, Sym) else v) for v in (a, b)))
    if key not in first.vec.memo:
        first.vec.memo[key] = space.opaque(compute())
    return first.vec.memo[key]


def compare(space: Space, line: int, kind: str, a: Any, b: Any) -> Any:
    """A comparison: True, False, or the threads where it holds."""
    if type(a) is np.ndarray and (type(b) is np.ndarray or type(b) is int) and kind in COMPARE:
        return space.truth(COMPARE[kind](a, b), False)
    if isinstance(a, Mask | bool):
        a = numeric(a)
    if isinstance(b, Mask | bool):
        b = numeric(b)
    if kind in ("In", "NotIn"):
        found: bool | Mask = False
        for item in b:
            found = space.either(found, compare(space, line, "Eq", a, item))
        return space.opposite(found) if kind == "NotIn" else found
    if kind not in COMPARE:
        raise KernelError("unsupported", f"comparison {kind}", line=line)
    if isinstance(a, Sym | int) and isinstance(b, Sym | int):
        if _may_wrap("Sub", a, b):
            return (bool(COMPARE[kind](a, b)) if isinstance(a, int) and isinstance(b, int) else
                    space.truth(COMPARE[kind](numeric(a), numeric(b)), True))
        rest = integer(space, line, "Sub", a, b, space.full)
        if isinstance(rest, int):
            return bool(COMPARE[kind](rest, 0))
        key = (kind, rest.const, space)
        if key not in rest.vec.memo:
            rest.vec.memo[key] = space.truth(COMPARE[kind](rest.array, 0), True)
        return rest.vec.memo[key]
    a = a.array if isinstance(a, Sym) else a
    b = b.array if isinstance(b, Sym) else b
    result = COMPARE[kind](a, b)
    return space.truth(result, False) if isinstance(result, np.ndarray) else bool(result)


def truth(space: Space, value: Any) -> bool | Mask:
    """A value as the test of a branch."""
    if type(value) is Mask or type(value) is bool:
        return value
    if isinstance(value, Sym | np.ndarray):
        made: bool | Mask = compare(space, 0, "NotEq", value, 0)
        return made
    return bool(value)


def select(space: Space, mask: Mask, new: Any, old: Any, line: int) -> Any:
    """``new`` in the threads of the mask, ``old`` in the others."""
    if new is old or mask is space.full:
        return new
    if type(new) is np.ndarray and type(old) is np.ndarray and not mask.static:
        return blend(mask.array, new, old)
    if not (isinstance(new, VALUES) and isinstance(old, VALUES)):
        if isinstance(new, tuple) and type(new) is type(old) and len(new) == len(old):
            return type(new)(select(space, mask, n, o, line)
                             for n, o in zip(new, old, strict=True))
        if hasattr(new, "selected") and type(new) is type(old):
            return new.selected(mask, old)
        if same_but_start(new, old):
            start = select(space, mask, new.start, old.start, line)
            return replace(new, start=Sym(space.dynamic(start), 0) if isinstance(
                start, np.ndarray) else start)
        raise KernelError("unsupported", "threads give one name different arrays", line=line)
    if isinstance(new, int | Sym) and isinstance(old, int | Sym) and mask.static and not (
            isinstance(new, bool) or isinstance(old, bool)):
        key = ("select", *(((v.vec, v.const) if isinstance(v, Sym) else v) for v in (new, old)))
        memo: dict[Any, Any] = mask.memo
        if key not in memo:
            memo[key] = space.opaque(np.where(mask.array, numeric(new), numeric(old)))
        return memo[key]
    if isinstance(new, bool | Mask) and isinstance(old, bool | Mask):
        pair = [v.array if isinstance(v, Mask) else v for v in (new, old)]
        return space.truth(np.where(mask.array, *pair), False)
    new, old = numeric(new), numeric(old)
    return np.where(mask.array, new, old)


def blend(mask: Any, new: Any, old: Any) -> Any:
    """``np.where``, with no branch at each element: masks that depend on data mispredict them.

    Whole numbers wrap around, so that ``(new - old) * mask + old`` has every bit right.
    """
    kind = new.dtype
    if kind != old.dtype or not mask.shape == new.shape == old.shape or kind.kind not in "if":
        return np.where(mask, new, old)
    if kind.kind == "f":
        bits = np.dtype(f"i{kind.itemsize}")
        made = blend(mask, new.view(bits), old.view(bits))
        return made.view(kind)
    made = np.subtract(new, old)
    np.multiply(made, mask, out=made)
    return np.add(made, old, out=made)


def same(a: Any, b: Any, mask: Mask) -> bool:
    """Whether two values are known to be equal in all threads of a mask."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Mask | Sym):
        a, b = a.array, b.array
    if isinstance(a, np.ndarray):
        return not ((a != b) & mask.array).any()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(*pair, mask) for pair in zip(a, b, strict=True))
    return isinstance(a, int | np.floating | bfloat16) and bool(a == b)


def same_but_start(a: Any, b: Any) -> bool:
    """Whether two views of arrays differ only in their first element."""
    return is_dataclass(a) and type(a) is type(b) and all(
        getattr(a, f.name) is getattr(b, f.name) or getattr(a, f.name) == getattr(b, f.name)
        for f in fields(a) if f.name in ("memory", "dtype", "shape", "strides"))


def cast(space: Space, line: int, kind: Any, value: Any, mask: Mask) -> Any:
    """``float32(value)`` and its like; an active integer that does not fit is an error."""
    if kind is np.bool_:
        return truth(space, value)
    if issubclass(kind, np.floating | bfloat16):
        value = numeric(value)
        return value.astype(kind, copy=False) if isinstance(value, np.ndarray) else kind(value)
    if isinstance(value, Mask | bool):
        value = numeric(value)
    if isinstance(value, int | np.floating | bfloat16 | np.integer):
        value = int(value)
    elif not isinstance(value, Sym | np.ndarray):
        no_number(value, line)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fV":
        value = value.astype(np.int64)
    return fitted(space, line, np.dtype(kind), value, mask)


def fitted(space: Space, line: int, dtype: np.dtype[Any], value: Any, mask: Mask) -> Any:
    """An integer as ``dtype`` holds it: unsigned ones wrap around, others must fit."""
    if dtype.kind != "u" or dtype.itemsize == 8:
        fits(line, dtype, value, mask)
        return value
    most = np.iinfo(dtype).max
    if isinstance(value, Sym) and 0 <= value.vec.lo + value.const and (
            value.vec.hi + value.const <= most):
        return value
    return binary(space, line, "BitAnd", value, int(most), mask)


def fits(line: int, dtype: np.dtype[Any], value: Any, mask: Mask) -> None:
    """Refuse active integers that ``dtype`` cannot hold."""
    if dtype.itemsize >= 8:
        return
    limits = np.iinfo(dtype)
    if isinstance(value, int):
        if not limits.min <= value <= limits.max:
            narrow(line, dtype, value, mask.first)
        return
    array = value.array if isinstance(value, Sym) else value
    wrong = ((array < limits.min) | (array > limits.max)) & mask.array
    bad = mask.space.mask(np.asarray(wrong), False)
    if bad is not None:
        first = int(bad.index[0])
        narrow(line, dtype, int(np.broadcast_to(array, mask.space.shape).flat[first]),
               mask.space.place(first))
