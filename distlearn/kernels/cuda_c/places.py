"""Names and places of a kernel in C: what can be read, and what can be assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pycparser import c_ast

from distlearn.kernels.cuda_c import arithmetic, types
from distlearn.kernels.cuda_c.arithmetic import Known, UndefinedError
from distlearn.kernels.cuda_c.errors import refuse
from distlearn.kernels.cuda_c.source import Function, Source
from distlearn.kernels.cuda_c.survey import Survey
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Conversions,
    Record,
    Result,
    Value,
    call,
    codes,
    compare,
    name,
    number,
    of_known,
    stamp,
)
from distlearn.kernels.cuda_c.variables import (
    ArrayVar,
    Cell,
    Named,
    Place,
    PointerVar,
    RecordVar,
    Scalar,
    Stretch,
    Target,
)

Dim3 = tuple[int, int, int]
PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
ZERO = Value(ast.Constant(0), types.LONG, (0, 0), True)


@dataclass(frozen=True)
class Shape:
    """What is known of a launch when its kernel is translated."""

    grid: Dim3
    block: Dim3
    shared: int = 0


class Places(Conversions):
    """The part of a function's translation that knows names and memory.

    Attributes
    ----------
    out : list of ast.stmt
        Where statements go that an expression brings along.
    line : int
        The line of the C source that is being translated.
    registers : set of str
        Arrays of one thread alone.
    moving : set of str
        Variables that hold one array or another.
    """

    def __init__(self, source: Source, function: Function, shape: Shape) -> None:
        self.source, self.function, self.shape = source, function, shape
        self.survey = Survey(function.body)
        self.scopes: list[dict[str, Named]] = [{}]
        self.taken: set[str] = set()
        self.registers: set[str] = set()
        self.moving: set[str] = set()
        self.out: list[ast.stmt] = []
        self.line = function.line

    # ---- names and statements

    def fresh(self, wanted: str) -> str:
        """A Python name that is not taken."""
        stem = f"{wanted}_" if wanted in RESERVED else wanted
        made, count = stem, 1
        while made in self.taken:
            count += 1
            made = f"{stem}_{count}"
        self.taken.add(made)
        return made

    def emit(self, statement: ast.stmt) -> None:
        """Append a statement."""
        stamp(statement, self.line)
        self.out.append(statement)

    def assign(self, target: str, code: ast.expr) -> None:
        """Emit ``target = code``."""
        self.emit(ast.Assign([ast.Name(target, ast.Store())], code))

    @contextmanager
    def collected(self) -> Iterator[list[ast.stmt]]:
        """Statements emitted inside go to the list that this gives."""
        before, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = before

    def no(self, reason: str, node: Any) -> NoReturn:
        """Refuse what is not understood."""
        coord = getattr(node, "coord", None)
        if coord is None:
            from distlearn.kernels.cuda_c.errors import SourceError

            raise SourceError(reason, self.source.filename, self.line)
        refuse(reason, coord, self.source.filename)

    def find(self, node: Any) -> Named | None:
        """The variable of a name."""
        for scope in reversed(self.scopes):
            if node.name in scope:
                return scope[node.name]
        return self.outside(node.name)

    def outside(self, wanted: str) -> Named | None:
        """A variable of the device, declared outside of functions."""
        raise NotImplementedError

    def called(self, node: Any, wanted: bool) -> Result:
        """The result of a call."""
        raise NotImplementedError

    # ---- values

    def result(self, node: Any) -> Result:
        """The result of an expression, its syntax marked with its line."""
        if getattr(node, "coord", None) is not None:
            self.line = node.coord.line
        line = self.line
        method: Any = getattr(self, "of_" + type(node).__name__.lower(), None)
        if method is None:
            self.no(f"{type(node).__name__} is not understood in a kernel", node)
        made: Result = method(node)
        self.line = line
        for code in codes(made):
            stamp(code, line)
        return made

    def value(self, node: Any) -> Value:
        """The result of an expression that must be a number."""
        made = self.result(node)
        if not isinstance(made, Value):
            self.no(f"a number is needed here, not a {made.type}", node)
        assert isinstance(made, Value)
        return made

    def address(self, node: Any) -> Address:
        """The result of an expression that must be a pointer."""
        made = self.result(node)
        if isinstance(made, Value) and made.bounds == (0, 0):
            return Address(None, ZERO, Pointer(types.VOID))
        if not isinstance(made, Address):
            self.no(f"a pointer is needed here, not a {made.type}", node)
        assert isinstance(made, Address)
        return made

    def truth(self, node: Any) -> ast.expr:
        """An expression as a test."""
        made = self.result(node)
        if isinstance(made, Address):
            return ast.UnaryOp(ast.Not(), self.is_null(made))
        if not isinstance(made, Value):
            self.no("a test must be a number", node)
        assert isinstance(made, Value)
        return self.settled(made).code

    def is_null(self, pointer: Address) -> ast.expr:
        """Whether a pointer is NULL, which a launch passes as an array without elements."""
        if pointer.base is None or pointer.base in self.moving:
            return ast.Constant(pointer.base is None)
        return compare(call("len", name(pointer.base)), "==", number(0))

    def of_constant(self, node: Any) -> Result:
        """Translate a literal."""
        if node.type == "string":
            self.no("strings have no place in a kernel", node)
        try:
            return of_known(arithmetic.constant(node.type, node.value))
        except UndefinedError as error:
            return self.no(str(error), node)

    def of_id(self, node: Any) -> Result:
        """Translate a name."""
        if self.find(node) is None:
            if node.name in self.source.constants:
                return of_known(self.source.constants[node.name])
            if node.name in PLACES:
                uint3 = types.VECTORS["uint3"] if node.name.endswith("Idx") else types.DIM3
                return Record(uint3, {axis: self._coordinate(node.name, axis, node)
                                      for axis in "xyz"})
            if node.name == "warpSize":
                return of_known(Known(types.INT, 32))
            self.no(f"{node.name!r} is not declared", node)
        return self.read(self.target(node), node)

    def of_arrayref(self, node: Any) -> Result:
        """Translate ``a[i]``."""
        return self.read(self.target(node), node)

    def of_structref(self, node: Any) -> Result:
        """Translate ``a.b`` and ``p->b``."""
        if node.type == "." and isinstance(node.name, c_ast.ID) and node.name.name in PLACES \
                and self.find(node.name) is None:
            return self._coordinate(node.name.name, node.field.name, node)
        return self.read(self.target(node), node)

    def _coordinate(self, what: str, axis: str, node: Any) -> Value:
        if axis not in ("x", "y", "z"):
            self.no(f"{what} has x, y and z, no {axis}", node)
        sizes = self.shape.block if what in ("threadIdx", "blockDim") else self.shape.grid
        size = sizes["xyz".index(axis)]
        code = ast.Attribute(ast.Attribute(name("cuda"), what, ast.Load()), axis, ast.Load())
        bounds = (size, size) if what.endswith("Dim") else (0, size - 1)
        return Value(code, types.UINT, bounds, True)

    def read(self, target: Target, node: Any) -> Result:
        """What a place holds."""
        if isinstance(target, Scalar):
            return Value(name(target.name), target.type, target.bounds, True)
        if isinstance(target, PointerVar):
            at = ZERO if target.at is None else Value(name(target.at), types.LONG, WIDE, True)
            return Address(target.base, at, target.type)
        if isinstance(target, ArrayVar):
            return Address(target.name, ZERO, Pointer(target.type.item))
        if isinstance(target, Place):
            code = ast.Subscript(name(target.name), target.index, ast.Load())
            return Value(code, target.type, target.type.bounds if target.type.is_integer else WIDE)
        if isinstance(target, RecordVar):
            return Record(target.type, {field: self.read(self.of_named(inner), node)
                                        for field, inner in target.fields.items()})
        if isinstance(target.type, Array):
            return Address(target.name, target.at, Pointer(target.type.item))
        assert isinstance(target.type, Struct)
        width = self.vector_width(target, node)
        if width:
            held = self.fresh("_vector")
            self.assign(held, call(f"load{width}", name(target.name), target.at.code))
            return Record(target.type, {
                field: Value(ast.Attribute(name(held), field, ast.Load()), kind,
                             kind.bounds if kind.is_integer else WIDE, True)
                for field, kind in target.type.fields if isinstance(kind, Number)})
        return Record(target.type, {
            field: self.read(self.field(target, field, node), node)
            for field, _ in target.type.fields})

    def vector_width(self, target: Stretch, node: Any) -> int:
        """2 or 4 for ``float4`` and its like, which one instruction moves; else 0."""
        kind = target.type
        if target.name in self.registers or types.VECTORS.get(str(kind)) != kind:
            return 0
        assert isinstance(kind, Struct)
        if len(kind.fields) == 3 or kind.size > 16:  # moved element by element
            return 0
        if kind.name.startswith("uint"):
            self.no(f"memory that holds {kind} is not modelled in kernels: use int", node)
        return len(kind.fields)

    def of_named(self, named: Named) -> Target:
        """The place of a variable."""
        if not isinstance(named, Cell):
            return named
        return self.part(named.name, ZERO, named.type, None)

    # ---- places

    def target(self, node: Any) -> Target:
        """The place that an expression names."""
        if isinstance(node, c_ast.ID):
            named = self.find(node)
            if named is None:
                self.no(f"{node.name!r} is not declared", node)
            assert named is not None
            return self.of_named(named)
        if isinstance(node, c_ast.ArrayRef):
            return self._element(node)
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            return self.at(self.address(node.expr), ZERO, node)
        if isinstance(node, c_ast.StructRef):
            inner = self.at(self.address(node.name), ZERO, node) if node.type == "->" else (
                self.target(node.name) if isinstance(
                    node.name, c_ast.ID | c_ast.ArrayRef | c_ast.StructRef | c_ast.UnaryOp)
                else self._held(node.name))
            return self.field(inner, node.field.name, node)
        return self.no("this cannot be assigned", node)

    def _held(self, node: Any) -> Target:
        """A structure that a call gives, kept in variables."""
        made = self.result(node)
        if not isinstance(made, Record):
            self.no("this has no fields", node)
        # a Record is kept in a RecordVar, which is a Target
        return self.keep(made, "held")  # type: ignore[return-value]

    def _element(self, node: Any) -> Target:
        indices: list[Any] = []
        base = node
        while isinstance(base, c_ast.ArrayRef):
            indices.insert(0, base.subscript)
            base = base.name
        if isinstance(base, c_ast.ID):
            named = self.find(base)
            if isinstance(named, ArrayVar) and len(named.shape) == len(indices) > 1:
                values = [self.index(self.value(i)) for i in indices]
                return Place(named.name, ast.Tuple([v.code for v in values], ast.Load()),
                             named.element, all(v.pure for v in values))
        return self.at(self.address(node.name), self.value(node.subscript), node)

    def index(self, value: Value) -> Value:
        """An integer as a number of elements."""
        if not value.type.is_integer:
            self.no("an index must be an integer", None)
        if value.type.kind == "u":
            value = self.settled(value)
        return replace(value, type=types.LONG)

    def moved(self, address: Address, by: Value, node: Any) -> Address:
        """``address + by``, in units of what it points to."""
        step = self.units(address.type.target, node)
        offset = self.arithmetic("*", self.index(by), Value(
            number(step), types.LONG, (step, step), True))
        return replace(address, at=self.arithmetic("+", address.at, offset))

    def units(self, kind: CType, node: Any) -> int:
        """How many elements of memory a type takes."""
        found = types.elements(kind)
        if found is None:
            self.no(f"memory of type {kind} is not modelled in kernels: arrays hold numbers, or "
                    "structures whose fields are all of one type", node)
        assert found is not None
        return found[1]

    def at(self, address: Address, by: Value, node: Any) -> Target:
        """The place ``address[by]``."""
        moved = self.moved(address, by, node)
        if moved.base is None:
            self.no("this pointer is NULL", node)
        assert moved.base is not None
        return self.part(moved.base, moved.at, address.type.target, node)

    def part(self, base: str, at: Value, kind: CType, node: Any) -> Target:
        """Memory of a type from an element on."""
        if isinstance(kind, Number):
            return Place(base, at.code, kind, at.pure)
        if isinstance(kind, Array | Struct):
            self.units(kind, node)
            return Stretch(base, at, kind)
        return self.no(f"memory that holds a {kind} is not modelled in kernels",
                       node)

    def field(self, inner: Target, wanted: str, node: Any) -> Target:
        """The place of a structure's field."""
        kind = inner.type
        if not isinstance(kind, Struct) or kind.field_type(wanted) is None:
            self.no(f"{kind} has no field {wanted!r}", node)
        assert isinstance(kind, Struct)
        if isinstance(inner, RecordVar):
            return self.of_named(inner.fields[wanted])
        assert isinstance(inner, Stretch)
        found, field_type = types.elements(kind), kind.field_type(wanted)
        assert found is not None and field_type is not None
        offset = kind.offsets[wanted] // found[0].size
        at = self.arithmetic("+", inner.at, Value(
            number(offset), types.LONG, (offset, offset), True))
        return self.part(inner.name, at, field_type, node)

    def keep(self, made: Result, wanted: str) -> Named:
        """Variables that hold a result."""
        raise NotImplementedError


RESERVED = frozenset(
    [
    "cuda", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "math", "range", "min", "max", "abs", "len", "np", "and", "as",
    "assert", "async", "await", "class", "def", "del", "elif", "except", "False", "finally",
    "from", "global", "import", "in", "is", "lambda", "None", "nonlocal", "not", "or", "pass",
    "raise", "True", "try", "with", "yield", "print", "bool", "int", "float",
])
