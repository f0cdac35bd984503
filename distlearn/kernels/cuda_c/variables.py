"""What a name in a kernel's C source stands for, and places that can be assigned."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import Value


@dataclass(frozen=True)
class Scalar:
    """A number in a register: the Python variable ``name``."""

    name: str
    type: Number
    bounds: tuple[int, int]


@dataclass(frozen=True)
class PointerVar:
    """A pointer: ``at`` (a Python variable, or None for 0) into the array ``base``.

    ``moves``: ``base`` is a variable too, which holds one array or another.
    """

    base: str
    at: str | None
    type: Pointer
    moves: bool = False


@dataclass(frozen=True)
class ArrayVar:
    """An array of shared, local or global memory, declared with ``type``.

    ``shape`` has an axis for each of C's if all of its uses have all subscripts, else one.
    """

    name: str
    type: Array
    element: Number
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RecordVar:
    """A structure by its fields, each a variable."""

    type: Struct
    fields: dict[str, Named]


@dataclass(frozen=True)
class Cell:
    """A variable that lives in memory: element 0 of the array ``name``."""

    name: str
    type: CType


Named = Scalar | PointerVar | ArrayVar | RecordVar | Cell


@dataclass(frozen=True)
class Place:
    """An element of memory: ``name[index]``."""

    name: str
    index: ast.expr
    type: Number
    pure: bool


@dataclass(frozen=True)
class Stretch:
    """Elements of memory from ``at`` on, of a type made of several: an array or structure."""

    name: str
    at: Value
    type: CType


Target = Scalar | PointerVar | ArrayVar | RecordVar | Place | Stretch
