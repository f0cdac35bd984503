"""Declarations of a kernel in C: scalars, pointers, structures, arrays, shared memory."""

from __future__ import annotations

import ast
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.assigning import Assigning
from distlearn.kernels.cuda_c.places import ZERO
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Record,
    Result,
    Value,
    call,
    name,
    number,
)
from distlearn.kernels.cuda_c.variables import (
    ArrayVar,
    Cell,
    Named,
    Place,
    PointerVar,
    RecordVar,
    Scalar,
)


class Declaring(Assigning):
    """The part of a function's translation that makes variables."""

    def declare(self, node: Any) -> None:
        """Translate a declaration inside of a function."""
        self.line = node.coord.line
        kind, marks = self.source.type_of(node.type), self.source.marks(node)
        if isinstance(kind, types.Void):
            self.no(f"{node.name} cannot be void", node)
        if "__shared__" in marks:
            named = self._shared(node, kind)
        elif isinstance(node.type, c_ast.FuncDecl):
            return
        elif "static" in node.storage:
            self.no(f"static {node.name}: a thread's variables do not outlive its kernel", node)
        elif "extern" in node.storage:
            self.no(f"extern {node.name} is no shared array", node)
        elif isinstance(kind, Array):
            named = self._array(node, kind)
        elif isinstance(kind, Number):
            named = self._scalar(node, kind)
        elif isinstance(kind, Pointer):
            named = self._pointer(node, kind)
        else:
            assert isinstance(kind, Struct)
            named = self._record(node, kind)
        self.scopes[-1][node.name] = named

    def _scalar(self, node: Any, kind: Number) -> Named:
        made = self._number(self.result(node.init), kind, node) if node.init else None
        self.line = node.coord.line
        if node.name in self.survey.boxed:
            cell = self._cell(node, kind)
            if made is not None:
                self.put(Place(cell.name, number(0), kind, True), made, node)
            return cell
        steady = not self.survey.assigned[node.name] and made is not None
        held = self.fresh(node.name)
        if made is not None:
            self.assign(held, made.code)
        bounds = made.bounds if steady and made is not None else (
            kind.bounds if kind.is_integer else WIDE)
        if made is not None and node.name in self.survey.shrinking and made.bounds[0] >= 0:
            bounds = 0, made.bounds[1]
        return Scalar(held, kind, bounds)

    def _pointer(self, node: Any, kind: Pointer) -> Named:
        made = self.to(self.address(node.init), kind, node) if node.init else Address(
            None, ZERO, kind)
        assert isinstance(made, Address)
        if self.survey.seated[node.name] or made.base is None or made.base in self.moving:
            return self._mover(node.name, made)
        if not self.survey.assigned[node.name] and made.at.bounds == (0, 0):
            return PointerVar(made.base, None, kind)
        at = self.fresh(node.name)
        self.assign(at, made.at.code)
        return PointerVar(made.base, at, kind)

    def _record(self, node: Any, kind: Struct) -> Named:
        made: Result | None = None
        if isinstance(node.init, c_ast.InitList):
            values = [self.result(item) for item in node.init.exprs]
            fields = {}
            for (field, inner), value in zip(kind.fields, values, strict=False):
                fields[field] = self.to(value, inner, node)
            for field, inner in kind.fields[len(values):]:
                fields[field] = self.to(Value(number(0), types.INT, (0, 0), True), inner, node)
            made = Record(kind, fields)
        elif node.init is not None:
            made = self.to(self.result(node.init), kind, node)
        boxed = node.name in self.survey.boxed and types.elements(kind) is not None
        if made is not None and not boxed and not self.survey.assigned[node.name]:
            return self.keep(made, node.name)
        named = self._cell(node, kind) if boxed else self._blank(node.name, kind)
        if made is not None:
            assert isinstance(made, Record)
            for field, value in made.fields.items():
                self.put(self.field(self.of_named(named), field, node), value, node)
        return named

    def _cell(self, node: Any, kind: CType) -> Cell:
        """A variable that pointers may point to: an array of its thread."""
        element, total = self._elements(kind, node)
        held = self.fresh(node.name)
        self.registers.add(held)
        self.assign(held, self.new("local", (total,), element))
        return Cell(held, kind)

    def _blank(self, wanted: str, kind: CType) -> Named:
        """A variable without a value."""
        if isinstance(kind, Number):
            return Scalar(self.fresh(wanted), kind, kind.bounds if kind.is_integer else WIDE)
        if isinstance(kind, Pointer):
            return self._mover(wanted, Address(None, ZERO, kind))
        if isinstance(kind, Struct):
            return RecordVar(kind, {field: self._blank(f"{wanted}_{field}", inner)
                                    for field, inner in kind.fields})
        return self.no(f"a field of type {kind} is not modelled in a register", None)

    def new(self, space: str, shape: tuple[int, ...], kind: Number) -> ast.expr:
        """``cuda.shared.array(shape, dtype)``."""
        size: ast.expr = number(shape[0]) if len(shape) == 1 else ast.Tuple(
            [number(n) for n in shape], ast.Load())
        words = {"b": "bool", "f": f"float{8 * kind.size}", "u": f"uint{8 * kind.size}",
                 "i": f"int{8 * kind.size}"}
        return call(f"cuda.{space}.array", size, name(words[kind.kind]))

    def over_dynamic(self, wanted: str, element: Number) -> str:
        """The name of a new array over the dynamic shared memory."""
        held = self.fresh(wanted)
        self.assign(held, self.new("shared", (0,), element))
        self.dynamic[held] = element
        return held

    def _elements(self, kind: CType, node: Any) -> tuple[Number, int]:
        found = types.elements(kind)
        if found is None:
            self.no(f"an array of {kind} is not modelled in kernels", node)
        assert found is not None
        return found

    def _array(self, node: Any, kind: Array, space: str = "local") -> Named:
        given = self._listed(node.init, kind) if node.init is not None else None
        if kind.length is None:
            if not isinstance(node.init, c_ast.InitList):
                self.no(f"the array {node.name} has no length", node)
            kind = Array(kind.item, len(node.init.exprs))
        element, total = self._elements(kind, node)
        shape: list[int] = []
        inner: CType = kind
        while isinstance(inner, Array):
            shape.append(inner.length or 1)
            inner = inner.item
        depths = self.survey.depths.get(node.name, set())
        whole = isinstance(inner, Number) and (len(shape) == 1 or depths <= {len(shape)})
        axes = tuple(shape) if whole else (total,)
        held = self.fresh(node.name)
        if space == "local":
            self.registers.add(held)
        self.assign(held, self.new(space, axes, element))
        named = ArrayVar(held, kind, element, axes)
        if given is not None:
            self._fill(named, given, total, node)
        return named

    def _listed(self, init: Any, kind: Array) -> list[Any]:
        """The elements of ``{...}``, row after row."""
        if not isinstance(init, c_ast.InitList):
            self.no("an array is initialised by {...}", init)
        made: list[Any] = []
        found = types.elements(kind.item)
        for number_, item in enumerate(init.exprs):
            if isinstance(item, c_ast.InitList):
                if found is None or not isinstance(kind.item, Array):
                    self.no("this {...} is not understood", item)
                assert isinstance(kind.item, Array) and found is not None
                row = self._listed(item, kind.item)
                made += [None] * (number_ * found[1] - len(made))
                made += row + [None] * (found[1] - len(row))
            else:
                made.append(item)
        return made

    def _fill(self, named: ArrayVar, given: list[Any], total: int, node: Any) -> None:
        """Emit the initial values; what is not given is zero."""
        zero = Value(number(0), types.INT, (0, 0), True)
        if len(given) > total:
            self.no(f"{len(given)} values for {total} elements", node)

        def index(flat: int) -> ast.expr:
            where: list[ast.expr] = []
            for extent in reversed(named.shape):
                where.insert(0, number(flat % extent))
                flat //= extent
            return where[0] if len(where) == 1 else ast.Tuple(where, ast.Load())

        rest = total - len(given)
        if rest > 4:
            loops = [self.fresh("_i") for _ in named.shape]
            where: ast.expr = name(loops[0]) if len(loops) == 1 else ast.Tuple(
                [name(loop) for loop in loops], ast.Load())
            body: list[ast.stmt] = [ast.Assign(
                [ast.Subscript(name(named.name), where, ast.Store())],
                self._number(zero, named.element, node).code)]
            for loop, extent in zip(reversed(loops), reversed(named.shape), strict=True):
                body = [ast.For(ast.Name(loop, ast.Store()), call("range", number(extent)),
                                body, [])]
            self.emit(body[0])
            given = [item for item in given if not (isinstance(item, c_ast.Constant)
                     and item.value.strip("0.f") == "")] if len(given) == 1 else given
        else:
            given = given + [None] * rest
        for flat, item in enumerate(given):
            value = self.result(item) if item is not None else zero
            self.put(Place(named.name, index(flat), named.element, True), value, node)

    def _shared(self, node: Any, kind: CType) -> Named:
        if node.init is not None:
            self.no("shared memory cannot be initialised where it is declared", node)
        if isinstance(kind, Array):
            if kind.length is None:
                element, _ = self._elements(kind.item, node)
                length = self.shape.shared // kind.item.size
                if length < 1:
                    self.no(f"the launch gives {self.shape.shared} bytes of dynamic shared memory "
                            f"to {node.name}: kernel<<<grid, block, bytes>>>", node)
                if self.dynamic:
                    self.no("a second extern __shared__ array would be the first one's memory: "
                            "use pointers into one", node)
                kind = Array(kind.item, length)
                total = length * self.units(kind.item, node)
                return ArrayVar(self.over_dynamic(node.name, element), kind, element, (total,))
            return self._array(node, kind, "shared")
        element, total = self._elements(kind, node)
        held = self.fresh(node.name)
        self.assign(held, self.new("shared", (total,), element))
        return Cell(held, kind)
