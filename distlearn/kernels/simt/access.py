"""Loads and stores of all active threads at once, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distlearn.hardware.memory_system import (
    BANK_BYTES,
    BANKS,
    LINE_BYTES,
    SECTOR_BYTES,
    shared_access,
)
from distlearn.kernels import intrinsics
from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Elements, Global, element_of, no_number, row_major, slice_axis
from distlearn.kernels.simt.numbers import VALUES, Whole, binary, fitted, integer, numeric
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym, Vec, sym

ITEMS_LCM = LINE_BYTES


class Storage:
    """Shared memory of one declaration, or all of a launch's dynamic shared memory.

    Races and writes are noted per *granule*: an element, or, where arrays of several types lie over
    one dynamic memory, the smallest of their elements.
    """

    def __init__(self, space: Space, number: int, size: int, granule: int, name: str = "",
                 shape: tuple[int, ...] = ()) -> None:
        self.name, self.shape = name or "a shared array", shape
        self.space, self.number, self.size, self.granule = space, number, size, granule
        self.bytes = np.zeros(space.blocks * size * granule, np.uint8)
        self.written = np.zeros(space.blocks * size, bool)
        self.complete = False
        self.read_safely: set[Any] = set()
        self.base = self.offset(size)

    def element(self, granule: int) -> str:
        """An element as an error names it."""
        return element_of(self.name, self.shape, granule)

    def marks(self, places: Array) -> Callable[[], None]:
        """What takes back that granules will have been written."""
        written = self.written[places]

        def back() -> None:
            self.written[places] = written
            self.complete = bool(self.written.all())
        return back

    def offset(self, size: int) -> Vec | None:
        """Where each block's part begins, if it is ``size`` units long."""
        z, y, x = self.space.shape[:3]
        return self.space.vec({0: size * y * x if z > 1 else 0, 1: size * x if y > 1 else 0,
                               2: size if x > 1 else 0})


@dataclass(frozen=True, eq=False)
class Shared(Elements):
    """A shared array of every block of the space: a shape and strides over a storage."""

    memory: Storage
    flat: Array
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    base: Vec | None
    parts: int
    start: Any = 0

    @property
    def name(self) -> str:
        """The variable that it is declared as."""
        return self.memory.name

    @staticmethod
    def over(memory: Storage, dtype: Any, shape: tuple[int, ...]) -> Shared:
        """An array of this type and shape at the beginning of a storage."""
        kind = np.dtype(dtype)
        parts = kind.itemsize // memory.granule
        return Shared(memory, memory.bytes.view(kind), kind, shape, row_major(shape),
                      memory.offset(memory.size // parts), parts)


def position(space: Space, line: int, array: Global | Shared, index: Any, mask: Mask,
             width: int = 1) -> Whole:
    """The flat element of an index within its array, every index checked in active threads.

    With a ``width`` it is the first of so many elements along the last axis, aligned to them all.
    """
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != len(array.shape):
        raise KernelError("unsupported", f"{len(indices)} indices for an array of "
                          f"{len(array.shape)} axes", line=line)
    flat: Whole = array.start
    for axis, (i, n, stride) in enumerate(zip(indices, array.shape, array.strides, strict=True)):
        flat = _step(space, line, flat, checked(space, line, array, i, n, axis, mask), stride, mask)
    if width > 1:
        check_width(space, line, array, indices, flat, mask, width)
    return flat


def check_width(space: Space, line: int, array: Global | Shared, indices: tuple[Any, ...],
                flat: Whole, mask: Mask, width: int) -> None:
    """Refuse a wide access that leaves the array, is not in one piece, or is not aligned."""
    size = array.dtype.itemsize
    if array.strides[-1] != 1 or size * width > intrinsics.BYTES:
        raise KernelError("unsupported", f"{width} elements of {size} bytes, {array.strides[-1]} "
                          "apart, are no vector load: elements lie side by side, at most "
                          f"{intrinsics.BYTES} bytes of them", line=line)
    last = binary(space, line, "Add", indices[-1], width - 1, mask)
    checked(space, line, array, last, array.shape[-1], len(indices) - 1, mask)
    torn = np.broadcast_to((np.asarray(numeric(flat)) % width != 0) & mask.array, space.shape)
    if torn.any():
        first = int(np.flatnonzero(torn)[0])
        raise KernelError("misaligned_address", f"{width} elements from element "
                          f"{int(np.broadcast_to(numeric(flat), space.shape).flat[first])} do not "
                          f"begin at a multiple of their {size * width} bytes", line=line,
                          **space.place(first))


def checked(space: Space, line: int, array: Global | Shared, i: Any, n: int, axis: int,
            mask: Mask) -> Whole:
    """An index of an axis with ``n`` elements."""
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
    found: Whole = i
    return found


def _step(space: Space, line: int, flat: Whole, i: Whole, stride: int, mask: Mask) -> Whole:
    if isinstance(flat, int) and isinstance(i, int):
        return flat + i * stride
    if _dynamic(flat) or _dynamic(i):
        return Sym(space.dynamic(np.asarray(numeric(flat) + numeric(i) * stride)), 0)
    step = i if stride == 1 else integer(space, line, "Mult", i, stride, mask)
    made: Whole = step if flat == 0 else integer(space, line, "Add", flat, step, mask)
    return made


def view(space: Space, line: int, array: Global | Shared, indices: tuple[Any, ...], mask: Mask
         ) -> Global | Shared:
    """The part of an array that an index with slices means."""
    start, shape, strides = array.start, [], []
    for axis, (i, n, stride) in enumerate(zip(indices, array.shape, array.strides, strict=True)):
        if isinstance(i, slice):
            first, count_, step = slice_axis(i, n, line)
            start = _step(space, line, start, first, stride, mask)
            shape.append(count_)
            strides.append(stride * step)
        else:
            start = _step(space, line, start, checked(space, line, array, i, n, axis, mask),
                          stride, mask)
    return replace(array, start=start, shape=tuple(shape), strides=tuple(strides))


def moved(space: Space, at: Whole, by: int) -> Whole:
    """A position some elements on."""
    return at + by if isinstance(at, int) else Sym(at.vec, at.const + by)


def granules(space: Space, array: Global | Shared, at: Whole, width: int) -> list[Whole]:
    """What races and writes of an access are noted by."""
    parts = array.parts if isinstance(array, Shared) else 1
    if parts > 1:
        at = (Sym(space.dynamic(at.array * parts), 0) if _dynamic(at) and isinstance(at, Sym)
              else integer(space, 0, "Mult", at, parts, space.full))
    return [moved(space, at, n) for n in range(parts * width)] if parts * width > 1 else [at]


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
                       **space.place(first))


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
    lanes = at.vec.lanes(space) if mask is space.full else at.vec.lanes(space)[mask.index]
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


def in_block(space: Space, base: Vec | None, at: Whole) -> Whole:
    """A position in one block's array as one in the memory of all blocks."""
    if base is None:
        return at
    if isinstance(at, int):
        return Sym(base, at)
    if not at.vec.static:
        return Sym(space.dynamic(at.vec.array + base.array), at.const)
    return sym(at.vec.plus(base), at.const)


def to_store(line: int, dtype: np.dtype[Any], value: Any, mask: Mask) -> Any:
    """A value as an array of ``dtype`` takes it."""
    if not isinstance(value, VALUES):
        no_number(value, line)
    if dtype.kind in "iu":
        value = numeric(value)
        if isinstance(value, np.ndarray):
            value = value.astype(np.int64) if value.dtype.kind in "fV" else value
        else:
            value = int(value)
        return fitted(mask.space, line, dtype, value, mask)
    return value


def count(space: Space, row: list[int], kind: str, shared: bool, size: int, at: Whole,
          mask: Mask, width: int = 1) -> None:
    """Charge one dynamic instruction of every warp with active threads to a line's row."""
    vec, const = (None, at) if isinstance(at, int) else (at.vec, at.const)
    first = INDEX[("shared_" if shared else "global_") + kind + "_requests"]
    row[first] += mask.warps
    if shared:
        # The same number of words on turns the banks round.
        row[first + 1] += known_cost(space, shared_cost, vec, const, size, mask, width,
                                     max(BANK_BYTES, size * width))
        return
    if vec is not None and not vec.static:
        sectors, lines = searched_cost(space, vec, const, size, mask)
        row[first + 1] += sectors
        row[first + 2] += lines
        return
    row[first + 1] += known_cost(space, global_cost, vec, const, size, mask, SECTOR_BYTES,
                                 SECTOR_BYTES)
    row[first + 2] += known_cost(space, global_cost, vec, const, size, mask, LINE_BYTES,
                                 LINE_BYTES)


def known_cost(space: Space, cost: Callable[..., int], vec: Vec | None, const: int, size: int,
               mask: Mask, what: int, period: int) -> int:
    """A cost, which does not change when all addresses go on by ``period`` bytes.

    Nor does it by less than the unit that all multiples of the vector share.
    """
    items = max(1, period // size)
    if vec is None:
        const = 0
    else:
        step = math.gcd(vec.unit, items)
        const = const % items // step * step
    memo: dict[Any, Any] = mask.memo if vec is None else vec.memo
    key = (cost, size, const, mask, what)
    found = memo.get(key)
    if found is None:
        found = cost(space, vec, const, size, mask, what)
        if mask.static and (vec is None or vec.static):
            memo[key] = found
    return int(found)


def warp_rows(space: Space, vec: Vec | None, const: int, mask: Mask) -> tuple[Array, Array, int]:
    """Elements and activity, a row a warp, and how many iterations and blocks a row stands for."""
    if vec is not None and vec.static:
        vec = vec.modulo_blocks(ITEMS_LCM)
    array = np.zeros((1,) * 6, np.int64) if vec is None else vec.array
    array = array + const
    lead = np.broadcast_shapes(array.shape[:-3], mask.array.shape[:-3])
    times = space.blocks // math.prod(lead)
    if times == 1:
        return space.rows(array, 0), mask.rows, 1
    return space.rows(array, 0, lead), space.rows(mask.array, False, lead), times


def distinct(units: Array, active: Array) -> int:
    """Different units of the active lanes of each row, summed."""
    units = np.sort(np.where(active, units, -1 - (1 << 62)), axis=1)
    new = int(np.count_nonzero(units[:, 1:] != units[:, :-1]))
    return new + len(units) - int(np.count_nonzero(~active.all(axis=1)))


def global_cost(space: Space, vec: Vec | None, const: int, size: int, mask: Mask, unit: int) -> int:
    """Sectors or lines, by the bytes of one; an aligned vector lies in one of each."""
    elements, active, times = warp_rows(space, vec, const, mask)
    return distinct(elements * size // unit, active) * times


def searched_cost(space: Space, vec: Vec, const: int, size: int, mask: Mask) -> tuple[int, int]:
    """Sectors and lines at addresses that depend on data; a line is as many sectors for all."""
    elements, warps = vec.lanes(space), space.warps
    if mask is not space.full:
        elements, warps = elements[mask.index], warps[mask.index]
    sectors = (elements + const) * size // SECTOR_BYTES
    per_line = LINE_BYTES // SECTOR_BYTES
    span = (int(sectors.max()) // per_line + 1) * per_line
    found = np.sort(warps * span + sectors)  # by warps, then by addresses
    lines = found // per_line
    new, new_lines = (int(np.count_nonzero(of[1:] != of[:-1])) for of in (found, lines))
    return 1 + new, 1 + new_lines


def shared_cost(space: Space, vec: Vec | None, const: int, size: int, mask: Mask, width: int
                ) -> int:
    """Wavefronts."""
    elements, active, times = warp_rows(space, vec, const, mask)
    turn = BANKS * BANK_BYTES // size
    elements = elements - int(elements.min()) // turn * turn  # never negative, in the same banks
    if width > 1:
        turns = shared_access(np.where(active, elements, 0) * size, size * width, active)
        return int(turns.wavefronts.sum()) * times
    words = elements * size // BANK_BYTES
    if size > BANK_BYTES:
        words, active = np.hstack((words, words + 1)), np.hstack((active, active))
    words = np.sort(np.where(active, words, -1), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    banks = (np.arange(len(words))[:, None] * BANKS + words % BANKS)[new]
    fullest = np.bincount(banks, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    return int(fullest.sum()) * times
