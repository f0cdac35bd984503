"""Symbolic integers: a constant and multiples of vectors over the axes of a `Space`."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from distlearn.kernels.simt.space import Space

Array = NDArray[Any]


class Vec:
    """An integer vector over the axes; ``terms`` are (basis number, multiple)."""

    def __init__(self, space: Space, terms: tuple[tuple[int, int], ...],
                 array: Array | None = None) -> None:
        self.space, self.terms, self.static = space, terms, array is None
        self.memo: dict[Any, Any] = {}
        if array is not None:
            self.array = array

    @cached_property
    def array(self) -> Array:
        """As numbers."""
        made: Array = np.zeros((1,) * 6, np.int64)
        for basis, multiple in self.terms:
            made = made + self.space.bases[basis] * multiple
        return made

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

    def lanes(self, space: Space) -> Array:
        """One element for every thread of a space, flat."""
        key = ("lanes", space)
        if key not in self.memo:
            self.memo[key] = np.ascontiguousarray(np.broadcast_to(self.array, space.shape)).ravel()
        found: Array = self.memo[key]
        return found

    def at(self, depth: int, steps: tuple[int, ...]) -> Sym | int:
        """Its part at these steps along the first of a space's ``depth`` loop axes."""
        if not self.static:
            return Sym(self.space.dynamic(part(self.array, depth, steps)), 0)
        key = ("at", depth, steps)
        if key not in self.memo:
            terms, const, bases = dict[int, int](), 0, self.space.bases
            for basis, multiple in self.terms:
                if bases[basis].ndim <= 6 + depth - len(steps):
                    terms[basis] = terms.get(basis, 0) + multiple
                    continue
                piece = self.space.basis_at(basis, depth, steps)
                if isinstance(piece, int):
                    const += multiple * piece
                else:
                    for number, times in piece.vec.terms:
                        terms[number] = terms.get(number, 0) + multiple * times
            self.memo[key] = sym(self.space.vec(terms), const)
        found: Sym | int = self.memo[key]
        return found

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


def part(array: Array, depth: int, steps: tuple[int, ...]) -> Array:
    """An array's part at these steps along the first of ``depth`` loop axes."""
    drop = array.ndim - 6 - depth + len(steps)
    if drop <= 0:
        return array
    last = zip(steps[len(steps) - drop:], array.shape, strict=False)
    found: Array = array[tuple(step if n > 1 else 0 for step, n in last)]
    return found


def sym(vec: Vec | None, const: int) -> Sym | int:
    """A `Sym`, or an int where the vector part is zero."""
    return const if vec is None else Sym(vec, const)
