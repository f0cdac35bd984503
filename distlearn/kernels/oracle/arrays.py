"""Arrays of shared and local memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.memory import Elements, Global, element_of, row_major


@dataclass(eq=False)
class Small(Elements):
    """A shared or local array of one block or thread, or a part of one.

    ``cell`` is how many units of the memory an element takes: 1, or the bytes of an element where
    arrays of several types lie over one dynamic memory.
    """

    space: str
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    flat: NDArray[Any]
    written: set[int]
    strides: tuple[int, ...]
    start: int = 0
    cell: int = 1
    name: str = ""

    @staticmethod
    def new(space: str, number: int, shape: tuple[int, ...], dtype: Any, name: str = "") -> Small:
        """An array with memory of its own."""
        return Small(space, number, shape, np.dtype(dtype), np.zeros(math.prod(shape), dtype),
                     set(), row_major(shape), name=name)

    def element(self, flat: int) -> str:
        """An element as an error names it."""
        return element_of(self.name or f"a {self.space} array", self.shape if self.name else (),
                          flat)


def memory_of(array: Small | Global) -> int:
    """What two parts of one memory have in common."""
    flat = array.memory.flat if isinstance(array, Global) else array.flat
    return int(flat.__array_interface__["data"][0])
