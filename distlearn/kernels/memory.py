"""Arrays of a launch as flat memory: what an index means, and where an element lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.errors import KernelError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True, eq=False)
class Memory:
    """Storage that races and sectors are counted in: a flat run of equal elements.

    Attributes
    ----------
    flat : ndarray
        One-dimensional view; writing to it writes to the caller's array.
    itemsize : int
        Bytes of an element; element 0 starts at a 256-byte boundary.
    number : int
        Its position among the memories of the launch.
    """

    flat: NDArray[Any]
    itemsize: int
    number: int


@dataclass(frozen=True, eq=False)
class Global:
    """An array argument, or a slice of one: a shape and strides (in elements) over a memory.

    ``start`` is the flat number of the first element: an int, or, in the fast executor, a value
    that differs between threads (``a[i]`` of a two-dimensional ``a``).
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: Any
    memory: Memory
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of indices."""
        return len(self.shape)


def bind(names: tuple[str, ...], arguments: tuple[Any, ...], kernel: str) -> list[Any]:
    """Arguments as executors want them: arrays as `Global`, numbers as int or numpy float.

    Arrays that are views of one memory share a `Memory`, so that races between them are seen.
    """
    if len(names) != len(arguments):
        raise KernelError("bad_launch", f"{kernel}() takes {len(names)} arguments "
                          f"({', '.join(names)}), {len(arguments)} given")
    owners: dict[tuple[int, int, int], Memory] = {}
    bound: list[Any] = []
    for name, value in zip(names, arguments, strict=True):
        if isinstance(value, np.ndarray):
            bound.append(_bind_array(name, value, owners))
        elif isinstance(value, bool | np.bool_):
            bound.append(bool(value))
        elif isinstance(value, int | np.integer):
            bound.append(int(value))
        elif isinstance(value, np.floating) and value.dtype.itemsize <= 8:
            bound.append(value if type(value) in (np.float16, np.float32) else np.float64(value))
        elif isinstance(value, ml_dtypes.bfloat16):
            bound.append(value)
        elif isinstance(value, float):
            bound.append(np.float64(value))
        else:
            raise KernelError("bad_launch", f"argument {name} of {kernel}() is a "
                              f"{type(value).__name__}; kernels take numpy arrays and numbers")
    return bound


def _bind_array(name: str, array: NDArray[Any],
                owners: dict[tuple[int, int, int], Memory]) -> Global:
    item = array.itemsize
    if array.dtype.kind not in "fiub" and array.dtype != BFLOAT16:
        raise KernelError("bad_launch", f"array {name} has dtype {array.dtype}; kernels take "
                          "arrays of floats, integers and booleans")
    if any(stride % item for stride in array.strides):
        raise KernelError("bad_launch", f"array {name} has strides {array.strides} that are no "
                          f"multiples of its item size {item}")
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not (root.flags.c_contiguous or root.flags.f_contiguous) or root.dtype != array.dtype:
        root = array
        if not array.flags.c_contiguous:
            raise KernelError("bad_launch", f"array {name} is a view of an array that is not "
                              "contiguous; pass a contiguous copy")
    address = root.__array_interface__["data"][0]
    key = (address, root.nbytes, item)
    if key not in owners:
        flat = root.reshape(-1, order="C" if root.flags.c_contiguous else "F")
        owners[key] = Memory(flat, item, len(owners))
    start = (array.__array_interface__["data"][0] - address) // item if array.size else 0
    strides = tuple(stride // item for stride in array.strides)
    return Global(name, array.shape, strides, start, owners[key], array.dtype)


def indices_of(index: Any, ndim: int, line: int) -> tuple[tuple[Any, ...], bool]:
    """The index of every axis, and whether it means a part of the array, not an element."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) > ndim:
        raise KernelError("unsupported", f"{len(indices)} indices for an array of {ndim} axes",
                          line=line)
    part = len(indices) < ndim or any(isinstance(i, slice) for i in indices)
    return indices + (slice(None),) * (ndim - len(indices)), part


def slice_axis(part: slice, n: int, line: int) -> tuple[int, int, int]:
    """First element, number of elements and step of a slice of an axis of ``n``.

    >>> slice_axis(slice(2, 100), 8, 0)
    (2, 6, 1)
    """
    bounds = (part.start, part.stop, part.step)
    if not all(b is None or isinstance(b, int) for b in bounds) or (part.step or 1) < 1:
        raise KernelError("unsupported", "the bounds of a slice must be integers that are the same "
                          "for all threads, its step positive", line=line)
    start, stop, step = part.indices(n)
    return start, len(range(start, stop, step)), step


def shape_of(shape: Any, line: int, what: str) -> tuple[int, ...]:
    """The shape given to ``shared.array`` or ``local.array``: an int or a tuple of ints."""
    dims = shape if isinstance(shape, tuple) else (shape,)
    if not dims or not all(isinstance(n, int) and n > 0 for n in dims):
        raise KernelError("unsupported", f"the shape of {what} must be positive integers known "
                          f"before the launch, not {shape!r}", line=line)
    return dims


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))
