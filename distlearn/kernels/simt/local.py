"""Arrays of one thread (registers): one value of all threads for each element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Elements, row_major
from distlearn.kernels.simt.numbers import cast, compare, select, truth
from distlearn.kernels.simt.space import Mask

if TYPE_CHECKING:
    from distlearn.kernels.simt.machine import Machine


class Local(Elements):
    """``cuda.local.array``: elements at uniform indices are like variables, others are searched."""

    def __init__(self, machine: Machine, shape: tuple[int, ...], dtype: Any) -> None:
        self.machine, self.space = machine, machine.space
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.strides = row_major(shape)
        self.values: list[Any] = [None] * math.prod(shape)
        self.bound: list[Mask | None] = [None] * math.prod(shape)

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
                test = truth(self.space, compare(self.space, line, "Eq", i, element))
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

    def load(self, line: int, index: Any, mask: Mask) -> Any:
        """Read."""
        if type(index) is int and len(self.shape) == 1 and 0 <= index < self.shape[0]:
            bound = self.bound[index]
            if bound is mask or bound is self.space.full:
                return self.values[index]
        result: Any = None
        for flat, who in self._places(line, index, mask):
            bound = self.bound[flat]
            if bound is None or who.without(bound) is not None:
                raise KernelError("unbound_variable", "an element of a local array is read before "
                                  "it is written", line=line)
            value = self.values[flat]
            result = value if result is None else select(self.space, who, value, result, line)
        return result

    def store(self, line: int, index: Any, value: Any, mask: Mask) -> None:
        """Write."""
        value = cast(self.space, line, self.dtype.type, value, mask)
        self.machine.changes[self] += 1
        if type(index) is int and len(self.shape) == 1 and 0 <= index < self.shape[0] and (
                self.bound[index] is mask):
            self.values[index] = value
            return
        for flat, who in self._places(line, index, mask):
            bound = self.bound[flat]
            if bound is None or bound.without(who) is None:
                self.values[flat], self.bound[flat] = value, who
            else:
                self.values[flat] = select(self.space, who, value, self.values[flat], line)
                self.bound[flat] = bound.either(who)

