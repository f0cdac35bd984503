"""Loads and stores of all active threads at once, and what they cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from distlearn.hardware.memory_system import BANK_BYTES, BANKS, LINE_BYTES, SECTOR_BYTES
from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Global, row_major
from distlearn.kernels.simt.numbers import Whole, fits, integer, numeric
from distlearn.kernels.simt.space import Array, Mask, Space, Sym, Vec, sym

ITEMS_LCM = LINE_BYTES


class Shared:
    """A shared array of every block of the space, one after another in one flat memory."""

    def __init__(self, space: Space, number: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.number, self.shape, self.strides = number, shape, row_major(shape)
        self.dtype, self.size = np.dtype(dtype), math.prod(shape)
        self.flat = np.zeros(space.blocks * self.size, self.dtype)
        self.written = np.zeros(space.blocks * self.size, bool)
        self.complete = False
        self.read_safely: set[Any] = set()
        _, y, x = space.shape[:3]
        self.base = space.vec({0: self.size * y * x if space.shape[0] > 1 else 0,
                               1: self.size * x if y > 1 else 0,
                               2: self.size if x > 1 else 0})


def position(space: Space, line: int, array: Global | Shared, index: Any, mask: Mask) -> Whole:
    """The flat element of an index within its array, every index checked in active threads."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != len(array.shape):
        raise KernelError("unsupported", f"{len(indices)} indices for an array of "
                          f"{len(array.shape)} axes", line=line)
    flat: Whole = array.start if isinstance(array, Global) else 0
    for axis, (i, n, stride) in enumerate(zip(indices, array.shape, array.strides, strict=True)):
        if isinstance(i, bool | Mask):
            i = numeric(i)
        if isinstance(i, np.ndarray) and i.dtype.kind in "iu":
            i = Sym(space.dynamic(i), 0)
        elif isinstance(i, np.integer):
            i = int(i)
        if isinstance(i, int):
            inside = 0 <= i < n
        elif isinstance(i, Sym):
            inside = (i.vec.lo + i.const >= 0 and i.vec.hi + i.const < n) or _inside(i, n, mask)
        else:
            raise KernelError("unsupported", "an index is no integer", line=line)
        if not inside:
            raise _outside(space, line, array, i, n, axis, mask)
        if isinstance(flat, int) and isinstance(i, int):
            flat += i * stride
        elif _dynamic(flat) or _dynamic(i):
            flat = Sym(space.dynamic(np.asarray(numeric(flat) + numeric(i) * stride)), 0)
        else:
            flat = integer(space, line, "Add", flat,
                           integer(space, line, "Mult", i, stride, mask), mask)
    return flat


def _dynamic(value: Whole) -> bool:
    return isinstance(value, Sym) and not value.vec.static


def _inside(i: Sym, n: int, mask: Mask) -> bool:
    key = ("inside", i.const, n, mask)
    if key in i.vec.memo:
        return bool(i.vec.memo[key])
    array = i.array
    found = not (((array < 0) | (array >= n)) & mask.array).any()
    if i.vec.static and mask.static:
        i.vec.memo[key] = found
    return found


def _outside(space: Space, line: int, array: Global | Shared, i: Whole, n: int, axis: int,
             mask: Mask) -> KernelError:
    name = array.name if isinstance(array, Global) else "the shared array"
    lanes = np.broadcast_to(numeric(i), space.shape).ravel()
    first = int(np.flatnonzero(((lanes < 0) | (lanes >= n)) & mask.flat)[0])
    return KernelError("out_of_bounds", f"index {int(lanes[first])} on axis {axis} of {name}, "
                       f"which has {n} elements there", line=line,
                       block=first // space.threads, thread=first % space.threads)


def gather(flat: Array, at: Whole) -> Any:
    """Elements at a position; threads that are outside (and inactive) get any element."""
    if isinstance(at, int):
        return flat[at]
    vec = at.vec
    low = vec.lo + at.const
    if low >= 0 and vec.hi + at.const < flat.size:
        return flat[low:vec.hi + at.const + 1].take(vec.rising)
    return flat.take(np.clip(vec.array + at.const, 0, flat.size - 1))


def placed(space: Space, at: Whole, mask: Mask) -> Array:
    """The flat element of every active thread."""
    if isinstance(at, int):
        return np.full(mask.count, at)
    lanes = at.vec.lanes if mask is space.full else at.vec.lanes[mask.index]
    return lanes + at.const if at.const else lanes


def scatter(space: Space, flat: Array, where: Array, value: Any, mask: Mask) -> None:
    """Write the active threads' values."""
    value = numeric(value)
    if isinstance(value, np.ndarray) and value.size > 1:
        lanes = np.broadcast_to(value, space.shape).reshape(-1)
        value = lanes if mask is space.full else lanes[mask.index]
    elif isinstance(value, np.ndarray):
        value = value.reshape(())
    flat[where] = value


def in_block(space: Space, array: Shared, at: Whole) -> Whole:
    """A position in one block's array as one in the memory of all blocks."""
    if array.base is None:
        return at
    if isinstance(at, int):
        return Sym(array.base, at)
    if not at.vec.static:
        return Sym(space.dynamic(at.vec.array + array.base.array), at.const)
    return sym(at.vec.plus(array.base), at.const)


def to_store(line: int, dtype: np.dtype[Any], value: Any, mask: Mask) -> Any:
    """A value as an array of ``dtype`` takes it."""
    if dtype.kind in "iu":
        value = numeric(value)
        if isinstance(value, np.ndarray):
            value = value.astype(np.int64) if value.dtype.kind == "f" else value
        else:
            value = int(value)
        fits(line, dtype, value, mask)
    return value


def count(space: Space, row: list[int], kind: str, shared: bool, size: int, at: Whole,
          mask: Mask) -> None:
    """Charge one dynamic instruction of every warp with active threads to a line's row."""
    vec, const = (None, at) if isinstance(at, int) else (at.vec, at.const)
    const %= ITEMS_LCM
    memo: dict[Any, Any] = mask.memo if vec is None else vec.memo
    key = ("count", shared, size, const, mask)
    costs = memo.get(key)
    if costs is None:
        cost = shared_cost if shared else global_cost
        costs = cost(space, vec, const, size, mask)
        if mask.static and (vec is None or vec.static):
            memo[key] = costs
    first = INDEX[("shared_" if shared else "global_") + kind + "_requests"]
    for offset, cost_ in enumerate(costs):
        row[first + offset] += cost_


def warp_rows(space: Space, vec: Vec | None, const: int, mask: Mask) -> tuple[Array, Array, int]:
    """Elements and activity, a row a warp, and how many blocks each row stands for."""
    if vec is not None and vec.static:
        vec = vec.modulo_blocks(ITEMS_LCM)
    array = np.zeros((1,) * 6, np.int64) if vec is None else vec.array
    array = array + const
    if array.shape[:3] == mask.array.shape[:3] == (1, 1, 1):
        one = space.single
        return one.rows(array, 0), one.rows(mask.array, False), space.blocks
    return space.rows(array, 0), mask.rows, 1


def distinct(units: Array, active: Array) -> int:
    """Different units of the active lanes of each row, summed."""
    units = np.sort(np.where(active, units, -1 - (1 << 62)), axis=1)
    new = int(np.count_nonzero(units[:, 1:] != units[:, :-1]))
    return new + len(units) - int(np.count_nonzero(~active.all(axis=1)))


def global_cost(space: Space, vec: Vec | None, const: int, size: int, mask: Mask
                ) -> tuple[int, int, int]:
    """Requests, sectors and lines."""
    elements, active, times = warp_rows(space, vec, const, mask)
    requests = int(np.count_nonzero(active.any(axis=1)))
    return (requests * times, distinct(elements * size // SECTOR_BYTES, active) * times,
            distinct(elements * size // LINE_BYTES, active) * times)


def shared_cost(space: Space, vec: Vec | None, const: int, size: int, mask: Mask
                ) -> tuple[int, int]:
    """Requests and wavefronts."""
    elements, active, times = warp_rows(space, vec, const, mask)
    requests = int(np.count_nonzero(active.any(axis=1)))
    words = elements * size // BANK_BYTES
    if size > BANK_BYTES:
        words, active = np.hstack((words, words + 1)), np.hstack((active, active))
    words = np.sort(np.where(active, words, -1), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    banks = (np.arange(len(words))[:, None] * BANKS + words % BANKS)[new]
    fullest = np.bincount(banks, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    return requests * times, int(fullest.sum()) * times
