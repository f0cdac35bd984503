"""Arrays of one thread (registers): one value of all threads for each element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Elements, row_major
from distlearn.kernels.simt.loops import DependentError, Plan, added_up, plan, taken
from distlearn.kernels.simt.numbers import Whole, cast, compare, integer, numeric, select, truth
from distlearn.kernels.simt.space import Mask
from distlearn.kernels.simt.vectors import Array, Sym, part

if TYPE_CHECKING:
    from distlearn.kernels.simt.machine import Machine


class Local(Elements):
    """``cuda.local.array``: elements at uniform indices are like variables, others are searched.

    Where loops run at once, all elements are one array (``whole``, bound in the threads ``who``),
    which nobody changes in place: elements first, then loops whose iterations each have their own.
    """

    def __init__(self, machine: Machine, shape: tuple[int, ...], dtype: Any) -> None:
        self.machine, self.space = machine, machine.space
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.strides = row_major(shape)
        self.size = math.prod(shape)
        self.values: list[Any] = [None] * self.size
        self.bound: list[Mask | None] = [None] * self.size
        self.whole: Array | None = None
        self.who = machine.space.full

    def _places(self, line: int, index: Any, mask: Mask) -> list[tuple[int, Mask]]:
        """The elements meant, and by which threads."""
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(self.shape):
            raise KernelError("unsupported", f"{len(indices)} indices for a local array of "
                              f"{len(self.shape)} axes", line=line)
        found = [(0, mask)]
        for i, n, stride in zip(indices, self.shape, self.strides, strict=True):
            if isinstance(i, int) and 0 <= i < n:
                found = [(flat + i * stride, who) for flat, who in found]
                continue
            split, left = [], mask
            for element in range(n):
                test = truth(mask.space, compare(mask.space, line, "Eq", i, element))
                here = None if test is False else mask if test is True else mask.both(test)
                if here is None:
                    continue
                split += [(flat + element * stride, both) for flat, who in found
                          if (both := who.both(here)) is not None]
                rest = left.without(here)
                if rest is None:
                    break
                left = rest
            else:
                raise KernelError("out_of_bounds", f"an index of a local array with {n} elements",
                                  line=line)
            found = split
        return found

    def _element(self, flat: int) -> tuple[Any, Mask | None]:
        """An element, and where it is bound."""
        if self.whole is not None:
            return self.whole[flat], self.who
        return self.values[flat], self.bound[flat]

    def load(self, line: int, index: Any, mask: Mask) -> Any:
        """Read."""
        if self.machine.trial is not None:
            return self._load_in_loops(line, index, mask)
        if type(index) is int and len(self.shape) == 1 and 0 <= index < self.size:
            value, bound = self._element(index)
            if bound is mask or bound is self.space.full:
                return value
        return self._search(line, index, mask)

    def _search(self, line: int, index: Any, mask: Mask) -> Any:
        result: Any = None
        for flat, who in self._places(line, index, mask):
            value, bound = self._element(flat)
            if not _within(who, bound):
                raise KernelError("unbound_variable", "an element of a local array is read before "
                                  "it is written", line=line)
            result = value if result is None else select(mask.space, who, value, result, line)
        return result

    def store(self, line: int, index: Any, value: Any, mask: Mask) -> None:
        """Write."""
        value = cast(mask.space, line, self.dtype.type, value, mask)
        self.machine.changes[self] += 1
        if self.machine.trial is not None:
            self._store_in_loops(line, index, value, mask)
            return
        self._apart()
        if type(index) is int and len(self.shape) == 1 and 0 <= index < self.size and (
                self.bound[index] is mask):
            self.values[index] = value
            return
        for flat, who in self._places(line, index, mask):
            self._put(line, flat, value, who)

    def _put(self, line: int, flat: int, value: Any, who: Mask) -> None:
        bound = self.bound[flat]
        if bound is None or bound.without(who) is None:
            self.values[flat], self.bound[flat] = value, who
        else:
            self.values[flat] = select(self.space, who, value, self.values[flat], line)
            self.bound[flat] = bound.either(who)

    def _apart(self) -> None:
        """Have each element as a value of its own."""
        if self.whole is not None:
            self.values, self.bound = list(self.whole), [self.who] * self.size
            self.whole = None

    def _together(self) -> Array:
        """Have all elements as one array; they must be bound in the same threads."""
        if self.whole is None:
            who = self.bound[0]
            if who is None or any(bound is not who for bound in self.bound):
                raise DependentError
            arrays = [np.asarray(value) for value in self.values]
            shape = np.broadcast_shapes((1,) * 6, *(array.shape for array in arrays))
            self.whole = np.array([np.broadcast_to(array, shape) for array in arrays], self.dtype)
            self.who = who
        return self.whole

    def _plan(self, line: int, index: Any, mask: Mask) -> Plan | None:
        """What an index means, if it depends on no more than iterations."""
        if self.dtype.kind not in "fV":
            raise DependentError
        at = index
        if len(self.shape) > 1 or not isinstance(index, int | Sym):
            at = self._flat(line, index, mask)
            if at is None:
                return None
        memo, const = (mask.space.full.memo, at) if isinstance(at, int) else (
            at.vec.memo, at.const)
        key = ("plan", const, self.size, mask.space)
        if key not in memo:
            memo[key] = plan(at, self.size, mask.space)
        found: Plan | None = memo[key]
        return found

    def _flat(self, line: int, index: Any, mask: Mask) -> Whole | None:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(self.shape):
            raise DependentError
        flat: Whole = 0
        for i, n, stride in zip(indices, self.shape, self.strides, strict=True):
            if not isinstance(i, int | Sym):
                return None
            if not (0 <= i < n if isinstance(i, int) else
                    i.vec.lo + i.const >= 0 and i.vec.hi + i.const < n):
                raise DependentError
            flat = integer(mask.space, line, "Add", flat,
                           integer(mask.space, line, "Mult", i, stride, mask), mask)
        return flat

    def _load_in_loops(self, line: int, index: Any, mask: Mask) -> Any:
        trial, found = self.machine.trial, self._plan(line, index, mask)
        assert trial is not None
        if found is None:
            trial.read(self, object())
            return self._search(line, index, mask)
        trial.read(self, found.key)
        if not found.trips and self.whole is None:
            value, bound = self._element(found.key[1])
        else:
            value, bound = taken(self._together(), found), self.who
        if not _within(mask, bound):
            raise DependentError
        return value

    def _store_in_loops(self, line: int, index: Any, value: Any, mask: Mask) -> None:
        trial, found, who = self.machine.trial, self._plan(line, index, mask), mask.always
        assert trial is not None
        if found is None or not found.alone or not found.inner:
            raise DependentError
        if found.missing and not (found.covers and who):
            raise DependentError
        trial.write(self, found.key, found.uses)
        trial.remember(self, self._keep)
        if who is not None and self._replace(found, np.asarray(numeric(value)), who):
            return
        if found.missing:
            raise DependentError
        self._apart()
        array, depth = np.asarray(numeric(value)), len(found.uses)
        for element, steps in zip(found.elements, np.ndindex(*found.trips), strict=True):
            here = mask.at(steps)
            if here is not None:
                self._put(line, element, part(array, depth, steps) if array.ndim else value, here)

    def _replace(self, at: Plan, array: Array, who: Mask) -> bool:
        """Give elements new values in the array of all; False if it has no place for them."""
        loops = len(at.uses)
        own = loops - len(at.missing)
        if array.ndim < loops + 6:
            array = array.reshape((1,) * (loops + 6 - array.ndim) + array.shape)
        if array.shape[:own] != at.trips[:own]:
            array = np.broadcast_to(array, at.trips[:own] + array.shape[own:])
        private = array.shape[own:-6]
        while private and private[0] == 1:
            private = private[1:]
        array = array.reshape(-1, *private, *array.shape[-6:])
        old = self.whole
        if at.covers:
            new = array
            if not isinstance(at.order, slice):
                new = np.empty_like(array)
                new[at.order] = array
            if old is not None and not _within(self.who, who):
                axes = max(new.ndim, old.ndim)
                new = np.where(who.array, _padded(new, axes), _padded(old, axes))
                who = self.who.either(who)
            elif old is None and not all(b is None or _within(b, who) for b in self.bound):
                return False
        elif old is None or not _within(self.who, who) or private or old.ndim > 7:
            return False
        else:
            new = np.empty((self.size, *np.broadcast_shapes(array.shape[1:], old.shape[1:])),
                           self.dtype)
            new[:] = old
            new[at.order] = array
        self.whole, self.who = new, who
        return True

    def sums(self, line: int, index: Any, mask: Mask) -> bool:
        """Whether some loop's iterations all add to the element at an index."""
        found = self._plan(line, index, mask)
        return found is not None and bool(found.missing)

    def add_up(self, line: int, kind: str, index: Any, value: Any, mask: Mask) -> None:
        """All iterations of loops add to elements."""
        trial, found, whole = self.machine.trial, self._plan(line, index, mask), self._together()
        assert trial is not None and found is not None
        if whole.ndim > 7 or not found.alone or not _within(mask, self.who):
            raise DependentError
        trial.write(self, found.key, found.totals)
        trial.remember(self, self._keep)
        self.machine.changes[self] += 1
        total = added_up(kind, taken(whole, found), value, found.missing, mask, self.dtype)
        total = total.reshape(-1, *total.shape[-6:])
        new = np.empty((self.size, *np.broadcast_shapes(total.shape[1:], whole.shape[1:])),
                       self.dtype)
        if not found.covers:
            new[:] = whole
        new[found.order] = total
        self.whole = new

    def leave(self, loops: int) -> None:
        """The innermost of loops ends that each had their own elements: the last ones stay."""
        if self.whole is not None and self.whole.ndim - 7 > loops:
            self.whole = self.whole[:, -1]

    def _keep(self) -> Callable[[], None]:
        """What puts all elements back as they are."""
        whole, who = self.whole, self.who
        lists = None if whole is not None else ([*self.values], [*self.bound])

        def back() -> None:
            self.whole, self.who = whole, who
            if lists is not None:
                self.values, self.bound = lists
        return back


def _within(mask: Mask, bound: Mask | None) -> bool:
    """Whether all threads of a mask, in every iteration, are bound."""
    if bound is None:
        return False
    return bound is bound.space.full or mask.without(mask.space.lifted(bound)) is None


def _padded(whole: Array, axes: int) -> Array:
    return whole.reshape(len(whole), *(1,) * (axes - whole.ndim), *whole.shape[1:])
