"""Axes, symbolic integers and masks.

Every value is uniform (a Python or numpy scalar), a `Sym`, or an array that broadcasts to the axes
(gz, gy, gx, bz, by, bx). A `Sym` is a constant plus a `Vec`: multiples of basis vectors. Equal
expressions give the same `Vec` object, so what was found out about one (its least and greatest
value, the sectors it touches) is looked up the next time, by identity.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.counters import WARP
from distlearn.kernels.errors import Place

Array = NDArray[Any]
AXES = {"gz": 0, "gy": 1, "gx": 2, "bz": 3, "by": 4, "bx": 5}


class Vec:
    """An integer vector over the axes; ``terms`` are (basis number, multiple)."""

    def __init__(self, space: Space, terms: tuple[tuple[int, int], ...], array: Array,
                 static: bool) -> None:
        self.space, self.terms, self.array, self.static = space, terms, array, static
        self.memo: dict[Any, Any] = {}

    @cached_property
    def lo(self) -> int:
        """Least element."""
        return int(self.array.min())

    @cached_property
    def hi(self) -> int:
        """Greatest element."""
        return int(self.array.max())

    @cached_property
    def unit(self) -> int:
        """All elements are multiples of it; 1 where nothing is known."""
        return math.gcd(*(multiple for _, multiple in self.terms)) if self.terms else 1

    @cached_property
    def reach(self) -> int:
        """No element is further from 0."""
        if not self.terms:
            return max(abs(self.lo), abs(self.hi))
        return sum(abs(multiple) * self.space.reaches[basis] for basis, multiple in self.terms)

    @cached_property
    def rising(self) -> Array:
        """Elements less the least one: never negative."""
        return self.array - self.lo

    @cached_property
    def lanes(self) -> Array:
        """One element for every thread, flat."""
        return np.ascontiguousarray(np.broadcast_to(self.array, self.space.shape)).ravel()

    def plus(self, other: Vec, times: int = 1) -> Vec | None:
        """``self + times * other``; None if that is zero everywhere."""
        key = (other, times)
        if key not in self.memo:
            terms = dict(self.terms)
            for basis, multiple in other.terms:
                terms[basis] = terms.get(basis, 0) + times * multiple
            made = self.space.vec(terms)
            if not (self.static and other.static):
                return made
            self.memo[key] = made
        found: Vec | None = self.memo[key]
        return found

    def times(self, factor: int) -> Vec | None:
        """``factor * self``."""
        if factor not in self.memo:
            made = self.space.vec({basis: factor * m for basis, m in self.terms})
            if not self.static:
                return made
            self.memo[factor] = made
        found: Vec | None = self.memo[factor]
        return found

    def modulo_blocks(self, items: int) -> Vec | None:
        """Without whole multiples of ``items`` that only the block's coordinates bring in."""
        key = ("blocks", items)
        if key not in self.memo:
            self.memo[key] = self.space.vec({
                b: m for b, m in self.terms if b > 2 or m % items})
        found: Vec | None = self.memo[key]
        return found


class Sym:
    """``vec + const``: an integer that differs between threads."""

    __slots__ = ("const", "vec")

    def __init__(self, vec: Vec, const: int) -> None:
        self.vec, self.const = vec, const

    @property
    def array(self) -> Array:
        """As numbers."""
        return self.vec.array + self.const


def sym(vec: Vec | None, const: int) -> Sym | int:
    """A `Sym`, or an int where the vector part is zero."""
    return const if vec is None else Sym(vec, const)


class Mask:
    """Which threads take part: some, never none (that is None) and rarely all (`Space.full`)."""

    def __init__(self, space: Space, array: Array, static: bool) -> None:
        self.space, self.array, self.static = space, array, static
        self.memo: dict[Any, Any] = {}

    @property
    def first(self) -> Place:
        """Block and thread of the first active lane."""
        return self.space.place(int(self.index[0]))

    @cached_property
    def count(self) -> int:
        """Active threads."""
        return int(np.count_nonzero(self.array)) * (self.space.size // self.array.size)

    @cached_property
    def warps(self) -> int:
        """Warps with active threads."""
        return int(np.count_nonzero(self.lane_bits))

    @cached_property
    def lane_bits(self) -> Array:
        """One number a warp: a bit for each active lane."""
        return np.packbits(self.rows, axis=None, bitorder="little").view(np.uint32)

    @cached_property
    def rows(self) -> Array:
        """One row a warp, 32 wide, False where a warp has no thread."""
        return self.space.rows(self.array, False)

    @cached_property
    def flat(self) -> Array:
        """True or False for every thread."""
        array, shape = self.array, self.space.shape
        return (array if array.shape == shape else np.broadcast_to(array, shape)).ravel()

    @cached_property
    def index(self) -> Array:
        """Numbers of the active threads."""
        return np.flatnonzero(self.flat)

    def _known(self, key: Any, array: Any, static: bool) -> Mask | None:
        if not static:
            return self.space.mask(array(), False)
        if key not in self.memo:
            self.memo[key] = self.space.mask(array(), True)
        found: Mask | None = self.memo[key]
        return found

    def both(self, other: Mask) -> Mask | None:
        """Threads of both."""
        full = self.space.full
        if other is self or other is full:
            return self
        if self is full:
            return other
        return self._known(("and", other), lambda: self.array & other.array,
                           self.static and other.static)

    def without(self, other: Mask | None) -> Mask | None:
        """Threads of this one that are not of the other."""
        if other is None or other is self:
            return self if other is None else None
        return self._known(("not", other), lambda: self.array & ~other.array,
                           self.static and other.static)

    def either(self, other: Mask | None) -> Mask:
        """Threads of either."""
        if other is None or other is self or self is self.space.full:
            return self
        if other is self.space.full:
            return other
        made = self._known(("or", other), lambda: self.array | other.array,
                           self.static and other.static)
        return made or self


class Space:
    """The threads of a rectangle of blocks; interns vectors and masks.

    ``numbers`` are the numbers in the grid of the blocks that run now: a space serves one chunk of
    a launch after another.
    """

    def __init__(self, blocks: tuple[int, int, int], threads: tuple[int, int, int]) -> None:
        self.shape: tuple[int, int, int, int, int, int] = (*blocks, *threads)  # z, y, x each
        self.size, self.blocks = math.prod(self.shape), math.prod(blocks)
        self.threads = math.prod(threads)
        self.warps_per_block = -(-self.threads // WARP)
        self._bases: list[Array] = []
        self.reaches: list[int] = []
        self._vecs: dict[tuple[tuple[int, int], ...], Vec] = {}
        self._masks: dict[tuple[Any, ...], Mask] = {}
        for axis in range(6):
            shape = [1] * 6
            shape[axis] = self.shape[axis]
            self._new_basis(np.arange(self.shape[axis], dtype=np.int64).reshape(shape))
        self.full = Mask(self, np.ones((1,) * 6, bool), True)
        self.numbers: Array = np.arange(self.blocks)

    @cached_property
    def single(self) -> Space:
        """One block alone, for what is the same in all."""
        return Space((1, 1, 1), self.shape[3:])

    def place(self, lane: int) -> Place:
        """Block of the grid and thread of the block that a lane is, for errors."""
        return {"block": int(self.numbers[lane // self.threads]), "thread": lane % self.threads}

    def axis(self, name: str) -> Sym | int:
        """A thread's coordinate along an axis; 0 along an axis of one."""
        number = AXES[name]
        return sym(self.vec({number: 1}) if self.shape[number] > 1 else None, 0)

    def vec(self, terms: dict[int, int]) -> Vec | None:
        """The vector of these multiples; None for none."""
        key = tuple(sorted((b, m) for b, m in terms.items() if m))
        if not key:
            return None
        found = self._vecs.get(key)
        if found is None:
            array: Array = np.zeros((1,) * 6, np.int64)
            for basis, multiple in key:
                array = array + self._bases[basis] * multiple
            found = self._vecs[key] = Vec(self, key, array, True)
        return found

    def opaque(self, array: Array) -> Sym | int:
        """A new basis vector of a non-affine expression of static ones."""
        if array.size == 1 or (array == array.flat[0]).all():
            return int(array.flat[0])
        return sym(self.vec({self._new_basis(array.astype(np.int64, copy=False)): 1}), 0)

    def _new_basis(self, array: Array) -> int:
        self._bases.append(array)
        self.reaches.append(max(abs(int(array.min())), abs(int(array.max()))))
        return len(self._bases) - 1

    def dynamic(self, array: Array) -> Vec:
        """A vector that depends on data: nothing about it is remembered."""
        return Vec(self, (), array, False)

    def mask(self, array: Array, static: bool) -> Mask | None:
        """A mask of a boolean array: None if all False, `full` if all True, equal ones the same."""
        count = int(np.count_nonzero(array))
        if not count:
            return None
        if count == array.size:
            return self.full
        if not static:
            return Mask(self, array, False)
        key = (array.shape, array.tobytes())
        if key not in self._masks:
            self._masks[key] = Mask(self, array, True)
        return self._masks[key]

    def truth(self, array: Array, static: bool) -> Mask | bool:
        """A boolean array as a value: True, False, or a mask."""
        made = self.mask(array, static)
        return False if made is None else True if made is self.full else made

    def either(self, a: Mask | bool, b: Mask | bool) -> Mask | bool:
        """Where one of two truths holds."""
        if a is True or b is True or not isinstance(a, Mask):
            return True if a is True else b
        made = a.either(b) if isinstance(b, Mask) else a
        return True if made is self.full else made

    def opposite(self, test: Mask | bool) -> Mask | bool:
        """Where a truth does not hold."""
        return self.truth(~test.array, test.static) if isinstance(test, Mask) else not test

    def rows(self, array: Array, fill: Any) -> Array:
        """An array over the axes as one row a warp; absent threads have ``fill``."""
        if array.shape != self.shape:
            array = np.broadcast_to(array, self.shape)
        flat = array.reshape(self.blocks, self.threads)
        missing = self.warps_per_block * WARP - self.threads
        if missing:
            flat = np.pad(flat, ((0, 0), (0, missing)), constant_values=fill)
        return flat.reshape(-1, WARP)
