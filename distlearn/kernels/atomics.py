"""What atomics do to one element: the rules that both executors follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from distlearn.kernels.dialect import ATOMICS
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Global, writable

BITWISE = ("and_", "or_", "xor")
COUNTING = ("inc", "dec")

# old value, operand -> new value; the order of the arguments of max and min is Python's
CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, value: old + value, "sub": lambda old, value: old - value,
    "exch": lambda old, value: value, "max": max, "min": min,
    "nanmax": lambda old, value: value if old != old or value > old else old,
    "nanmin": lambda old, value: value if old != old or value < old else old,
    "and_": lambda old, value: old & value, "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
}


def check(kind: str, array: Any, line: int) -> None:
    """Refuse an atomic that the array's elements do not have."""
    if kind not in ATOMICS:
        raise KernelError("unsupported", f"cuda.atomic.{kind} does not exist; atomics are "
                          f"{', '.join(ATOMICS)}", line=line)
    if not hasattr(array, "dtype") or getattr(array, "space", "") == "local":
        raise KernelError("unsupported", "an atomic changes an element of an array in global or "
                          "shared memory", line=line)
    writable(array, line)
    wanted = "u" if kind in COUNTING else "iu" if kind in BITWISE else "iufV"
    if array.dtype.kind not in wanted:
        name = array.name if isinstance(array, Global) else "a shared array"
        raise KernelError("unsupported", f"cuda.atomic.{kind} takes elements of an "
                          f"{'unsigned ' if wanted == 'u' else ''}integer type; those of {name} "
                          f"are {array.dtype}", line=line)


def operand(dtype: np.dtype[Any], value: Any, line: int) -> Any:
    """A value as the atomic takes it: of the type of the array's elements, as numba casts it."""
    if dtype.kind in "iu":
        return int(value)
    return dtype.type(value)


def changed(kind: str, old: Any, values: tuple[Any, ...]) -> Any:
    """What an atomic writes."""
    if kind == "cas":
        return values[1] if old == values[0] else old
    return CHANGES[kind](old, values[0])
