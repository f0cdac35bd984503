"""C types: their sizes in memory, and what arithmetic makes of two of them (C11 6.3.1.8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Void:
    """``void``."""

    size: int = 1
    align: int = 1

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Number:
    """An arithmetic type; ``kind`` is "i" (signed), "u" (unsigned), "b" (bool) or "f"."""

    name: str
    kind: str
    size: int
    rank: int

    def __str__(self) -> str:
        return self.name

    @property
    def align(self) -> int:
        """Bytes that an address is a multiple of."""
        return self.size

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers."""
        return self.kind != "f"

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest integer."""
        if self.kind == "b":
            return 0, 1
        bits = 8 * self.size
        return (0, (1 << bits) - 1) if self.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Its elements in a numpy array."""
        return np.dtype("?" if self.kind == "b" else f"{self.kind}{self.size}")


@dataclass(frozen=True)
class Pointer:
    """``target *``."""

    target: CType
    size: int = 8
    align: int = 8

    def __str__(self) -> str:
        return f"{self.target} *"


@dataclass(frozen=True)
class Array:
    """``item[length]``; ``length`` is None for ``[]``."""

    item: CType
    length: int | None

    def __str__(self) -> str:
        return f"{self.item}[{'' if self.length is None else self.length}]"

    @property
    def size(self) -> int:
        """Bytes of all elements."""
        return self.item.size * (self.length or 0)

    @property
    def align(self) -> int:
        """As its elements'."""
        return self.item.align


@dataclass(frozen=True)
class Struct:
    """A structure; two are the same type if their names are."""

    name: str
    fields: tuple[tuple[str, CType], ...] = field(compare=False)

    def __str__(self) -> str:
        return self.name

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Byte offset of every field, as C lays them out."""
        made, at = {}, 0
        for name, kind in self.fields:
            at = -(-at // kind.align) * kind.align
            made[name] = at
            at += kind.size
        return made

    @cached_property
    def align(self) -> int:
        """The strictest of its fields'."""
        return max((kind.align for _, kind in self.fields), default=1)

    @cached_property
    def size(self) -> int:
        """Bytes, with the padding at the end."""
        if not self.fields:
            return 1
        name, kind = self.fields[-1]
        return -(-(self.offsets[name] + kind.size) // self.align) * self.align

    def field_type(self, name: str) -> CType | None:
        """The type of a field; None if there is none of this name."""
        return dict(self.fields).get(name)


CType = Void | Number | Pointer | Array | Struct

VOID = Void()
BOOL = Number("bool", "b", 1, 0)
CHAR = Number("char", "i", 1, 1)
SCHAR = Number("signed char", "i", 1, 1)
UCHAR = Number("unsigned char", "u", 1, 1)
SHORT = Number("short", "i", 2, 2)
USHORT = Number("unsigned short", "u", 2, 2)
INT = Number("int", "i", 4, 3)
UINT = Number("unsigned int", "u", 4, 3)
LONG = Number("long", "i", 8, 4)
ULONG = Number("unsigned long", "u", 8, 4)
LONGLONG = Number("long long", "i", 8, 5)
ULONGLONG = Number("unsigned long long", "u", 8, 5)
HALF = Number("half", "f", 2, 10)
FLOAT = Number("float", "f", 4, 11)
DOUBLE = Number("double", "f", 8, 12)

# Spellings of the arithmetic types, their words sorted.
WORDS: dict[str, CType] = {
    "void": VOID, "_Bool": BOOL, "bool": BOOL, "char": CHAR, "char signed": SCHAR,
    "char unsigned": UCHAR, "short": SHORT, "int short": SHORT, "short signed": SHORT,
    "int short signed": SHORT, "short unsigned": USHORT, "int short unsigned": USHORT,
    "int": INT, "signed": INT, "int signed": INT, "unsigned": UINT, "int unsigned": UINT,
    "long": LONG, "int long": LONG, "long signed": LONG, "int long signed": LONG,
    "long unsigned": ULONG, "int long unsigned": ULONG, "long long": LONGLONG,
    "int long long": LONGLONG, "long long signed": LONGLONG, "int long long signed": LONGLONG,
    "long long unsigned": ULONGLONG, "int long long unsigned": ULONGLONG,
    "float": FLOAT, "double": DOUBLE,
}
DIM3 = Struct("dim3", (("x", UINT), ("y", UINT), ("z", UINT)))
VECTORS = {f"{word}{n}": Struct(f"{word}{n}", tuple((axis, kind) for axis in "xyzw"[:n]))
           for word, kind in (("float", FLOAT), ("int", INT), ("uint", UINT), ("double", DOUBLE))
           for n in (2, 3, 4)}
NAMED: dict[str, CType] = {
    "size_t": ULONG, "ptrdiff_t": LONG, "int8_t": SCHAR, "uint8_t": UCHAR, "int16_t": SHORT,
    "uint16_t": USHORT, "int32_t": INT, "uint32_t": UINT, "int64_t": LONG, "uint64_t": ULONG,
    "uint": UINT, "uchar": UCHAR, "half": HALF, "__half": HALF, "bool": BOOL, "dim3": DIM3,
    "cudaError_t": INT, "cudaStream_t": LONG, "cudaEvent_t": LONG, "cudaMemcpyKind": INT,
    "FILE": INT, "clock_t": LONG, "time_t": LONG, **VECTORS,
}
MATRIX = Struct("Matrix", (("width", INT), ("height", INT), ("elements", Pointer(FLOAT))))


def promoted(kind: Number) -> Number:
    """Integers narrower than ``int`` become ``int``."""
    return INT if kind.is_integer and kind.rank < INT.rank else kind


def common(a: Number, b: Number) -> Number:
    """The type in which two operands meet: the usual arithmetic conversions."""
    if not (a.is_integer and b.is_integer):
        return max((k for k in (a, b) if not k.is_integer), key=lambda k: k.rank)
    a, b = promoted(a), promoted(b)
    if a.kind == b.kind:
        return a if a.rank >= b.rank else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned.rank >= signed.rank:
        return unsigned
    if signed.size > unsigned.size:
        return signed
    return {LONGLONG: ULONGLONG, LONG: ULONG}.get(signed, UINT)


def elements(kind: CType) -> tuple[Number, int] | None:
    """The one arithmetic type that a type is a row of, and how many; None if mixed."""
    if isinstance(kind, Number):
        return kind, 1
    if isinstance(kind, Array):
        inner = elements(kind.item)
        return inner and (inner[0], inner[1] * (kind.length or 0))
    if isinstance(kind, Struct) and kind.fields:
        parts = [elements(item) for _, item in kind.fields]
        first = parts[0]
        if first is not None and all(part is not None and part[0] == first[0] for part in parts):
            return first[0], sum(part[1] for part in parts if part is not None)
    return None


def decayed(kind: CType) -> CType:
    """An array as a pointer to its first element."""
    return Pointer(kind.item) if isinstance(kind, Array) else kind


def met(a: CType | None, b: CType | None, op: str) -> CType | None:
    """The type of ``a op b``; of a shift ``b`` is None."""
    if op in ("<<", ">>"):
        return promoted(a) if isinstance(a, Number) else None
    if isinstance(a, Number) and isinstance(b, Number):
        return common(a, b)
    if op == "-" and isinstance(a, Pointer) and isinstance(b, Pointer):
        return LONG
    return a if isinstance(a, Pointer) else b if isinstance(b, Pointer) else None
