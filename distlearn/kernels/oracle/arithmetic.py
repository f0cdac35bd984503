"""Numbers of one thread, with numba's types: ints are int64, float literals float64.

Integers of any width become Python ints, wrapped to 64 bits; floats are numpy scalars.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from distlearn.kernels.errors import KernelError, Place
from distlearn.kernels.memory import NoNumber, no_number

REAL = (np.floating, bfloat16)


def power(a: Any, b: Any) -> Any:
    """``a ** b``: of arrays and of numbers by the same algorithm, squares as products."""
    if isinstance(a, int) and isinstance(b, int):
        return a ** b
    made = np.power(a, b)
    two = np.asarray(b == 2)
    return np.where(two, a * a, made)[()] if two.any() else made


OPERATIONS = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": power,
    "LShift": operator.lshift, "RShift": operator.rshift, "BitAnd": operator.and_,
    "BitOr": operator.or_, "BitXor": operator.xor,
}


def plain(value: Any, line: int = 0) -> Any:
    """A loaded element: int, bool, or numpy float."""
    if type(value) is np.float32 or isinstance(value, REAL):
        return value
    if isinstance(value, np.uint64) and value >> 63:
        raise wide(line, int(value))
    return bool(value) if isinstance(value, np.bool_) else int(value)


def wide(line: int, value: int) -> KernelError:
    """The error of an unsigned integer that the executors' 64 bits with a sign cannot hold."""
    return KernelError("unsupported", f"a kernel reads {value} from an array of uint64; integers "
                       "are modelled up to 2**63 - 1", line=line)


def fused(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` in the widest of the types, rounded once if that is float32 or less."""
    kind = np.result_type(a, b, c)
    exact = np.float64(a) * np.float64(b) + np.float64(c)
    return exact.astype(kind)


def rounded(value: Any, digits: Any, line: int) -> Any:
    """``round(value)`` and ``round(value, digits)``, halves to even."""
    if digits is None:
        if not isinstance(value, REAL):
            return int(value)
        if not np.isfinite(value):
            raise KernelError("unsupported", f"round({value}) is no integer", line=line)
        return int(np.rint(value))
    if isinstance(digits, REAL):
        raise KernelError("unsupported", "round takes an integer number of digits", line=line)
    scale = np.float64(10) ** int(digits)
    return type(value)(np.rint(value * scale) / scale) if isinstance(value, REAL) else int(value)


def wrap(value: int) -> int:
    """The int64 with the low 64 bits of ``value``."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def binary(line: int, kind: str, a: Any, b: Any) -> tuple[Any, int]:
    """The result and how many floating-point operations it took."""
    if type(a) is np.float32 and type(b) is np.float32 and kind in ("Add", "Sub", "Mult"):
        return OPERATIONS[kind](a, b), 1  # the most frequent case
    real = isinstance(a, REAL) or isinstance(b, REAL)
    if not real and kind in ("Div", "FloorDiv", "Mod") and b == 0:
        raise KernelError("division_by_zero", f"an integer is divided by zero ({kind})", line=line)
    if kind == "MatMult" or (real and kind in ("LShift", "RShift", "BitAnd", "BitOr", "BitXor")):
        for value in (a, b):
            if isinstance(value, NoNumber):
                no_number(value, line)
        raise KernelError("unsupported", f"operation {kind} of {a!r} and {b!r}", line=line)
    if not real and kind == "Div":
        return np.float64(a) / np.float64(b), 1
    if not real and not (kind == "Pow" and b < 0):
        return wrap(int(OPERATIONS[kind](int(a), int(b)))), 0
    if not isinstance(a, REAL):
        a = np.int64(a) if real else np.float64(a)
    if not isinstance(b, REAL):
        # A float to the power of an integer keeps its type, in numba as in numpy.
        b = type(a)(b) if kind == "Pow" else np.int64(b)
    return OPERATIONS[kind](a, b), 1


def cast(line: int, kind: Any, value: Any) -> Any:
    """``float32(value)`` and its like; a signed integer that does not fit is an error."""
    if kind is np.bool_:
        return bool(value)
    if issubclass(kind, REAL):
        return kind(value)
    whole = narrow(line, np.dtype(kind), int(value))
    return wrap(whole) if kind is np.uint64 else whole


def narrow(line: int, dtype: np.dtype[Any], value: int,
           place: Place | None = None) -> int:
    """``value``, if an integer of type ``dtype`` can hold it; ``place`` is told by the error.

    Unsigned integers and 64 bits wrap around.
    """
    if dtype.itemsize == 8 or dtype.kind == "u":
        return wrap(value) if dtype.kind == "i" else value % (1 << 8 * dtype.itemsize)
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise KernelError("int32_overflow", f"{value} does not fit {dtype}", line=line,
                          **(place or Place()))
    return value
