"""Declarations and assignments of a kernel in C."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.expressions import Expressions
from distlearn.kernels.cuda_c.places import ZERO
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Record,
    Result,
    Value,
    call,
    inside,
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
    Stretch,
    Target,
)


class Assigning(Expressions):
    """The part of a function's translation that changes variables and memory.

    Attributes
    ----------
    moving : set of str
        Python variables that hold one array or another.
    stored : set of str
        Arrays that are written to.
    dynamic : set of str
        Shared arrays of a size given by the launch.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.moving: set[str] = set()
        self.dynamic: set[str] = set()
        self.stored: set[str] = set()

    # ---- assignments

    def store(self, node: Any, wanted: bool) -> Result | None:
        """Translate ``a = b``, ``a += b`` and their like."""
        target = self.target(node.lvalue)
        if node.op == "=":
            made = self.result(node.rvalue)
            self.line = node.coord.line
            return self.put(target, made, node, wanted)
        op = node.op[:-1]
        if isinstance(target, PointerVar):
            pointer = self.read(target, node)
            assert isinstance(pointer, Address)
            by = self.value(node.rvalue)
            if op == "-":
                by = self.arithmetic("-", ZERO, self.index(by))
            return self.put(target, self.moved(pointer, by, node), node, wanted)
        return self._change(target, op, self.value(node.rvalue), node, wanted)

    def _change(self, target: Target, op: str, by: Value, node: Any, wanted: bool
                ) -> Result | None:
        """``target op= by``."""
        if not isinstance(target, Scalar | Place):
            self.no(f"{op}= of a {target.type}", node)
        assert isinstance(target, Scalar | Place)
        if isinstance(target, Place) and not target.pure:
            held = self.fresh("_at")
            self.assign(held, target.index)
            target = replace(target, index=name(held), pure=True)
        old = self.read(target, node)
        assert isinstance(old, Value)
        new = self.binary(op, old, by, node)
        code = new.code
        strict = isinstance(target, Place) and new.type.kind == "i"  # the store itself checks
        if (not wanted and new.type == target.type and isinstance(code, ast.BinOp)
                and code.left is old.code
                and (new.type.kind == "f" or strict or inside(new.bounds, target.type))):
            operator = type(code.op)
            if isinstance(target, Place):
                self.stored.add(target.name)
            where: ast.expr = ast.Name(target.name, ast.Store()) if isinstance(
                target, Scalar) else ast.Subscript(name(target.name), target.index, ast.Store())
            # `where` is one of the two targets that the stubs name, not any expression
            self.emit(ast.AugAssign(where, operator(), code.right))  # type: ignore[arg-type]
            return None
        return self.put(target, new, node, wanted)

    def step(self, node: Any, wanted: bool) -> Result | None:
        """Translate ``++`` and ``--``, before or after."""
        target = self.target(node.expr)
        after = node.op.startswith("p")
        op = node.op[-1]
        held: Result | None = None
        if after and wanted:
            held = self.read(self.of_named(self.keep(self.read(target, node), "_old")), node)
        one = Value(number(1), types.INT, (1, 1), True)
        if isinstance(target, PointerVar):
            pointer = self.read(target, node)
            assert isinstance(pointer, Address)
            by = one if op == "+" else Value(number(-1), types.INT, (-1, -1), True)
            made = self.put(target, self.moved(pointer, by, node), node, wanted and not after)
        else:
            made = self._change(target, op, one, node, wanted and not after)
        return held if after else made

    def put(self, target: Target, made: Result, node: Any, wanted: bool = False) -> Result | None:
        """Emit ``target = made``; gives the new value if it is wanted."""
        if isinstance(target, Scalar):
            self.assign(target.name, self._number(made, target.type, node).code)
            return self.read(target, node) if wanted else None
        if isinstance(target, Place):
            return self._put_element(target, made, node, wanted)
        if isinstance(target, PointerVar):
            pointer = self.to(made, target.type, node)
            assert isinstance(pointer, Address)
            if pointer.base is not None:
                self._seat(target, pointer, node)
            return self.read(target, node) if wanted else None
        if isinstance(target, RecordVar | Stretch) and isinstance(target.type, Struct):
            record = self.to(made, target.type, node)
            assert isinstance(record, Record)
            width = self.vector_width(target, node) if isinstance(target, Stretch) else 0
            if isinstance(target, Stretch) and width:
                self._put_vector(target, record, width)
                return record if wanted else None
            if len(record.fields) > 1:  # all are read before the first is written
                kept = self.read(self.of_named(self.keep(record, "_new")), node)
                assert isinstance(kept, Record)
                record = kept
            for field, value in record.fields.items():
                self.put(self.field(target, field, node), value, node)
            return record if wanted else None
        return self.no("an array cannot be assigned as a whole", node)

    def _put_vector(self, target: Stretch, record: Record, width: int) -> None:
        """Emit the store of ``float4`` and its like by one instruction."""
        kind = next(kind for _, kind in record.type.fields)
        word = "float" if isinstance(kind, Number) and kind.kind == "f" else "int"
        parts = [value.code for value in record.fields.values() if isinstance(value, Value)]
        self.stored.add(target.name)
        self.emit(ast.Expr(call(f"store{width}", name(target.name), target.at.code,
                                call(f"cuda.{word}{8 * kind.size}x{width}", *parts))))

    def _number(self, made: Result, kind: Number, node: Any) -> Value:
        value = self.to(made, kind, node)
        assert isinstance(value, Value)
        return value

    def _put_element(self, target: Place, made: Result, node: Any, wanted: bool
                     ) -> Result | None:
        plain = isinstance(made, Value) and made.type == target.type and target.type.kind == "i"
        value = made if plain else self._number(made, target.type, node)
        assert isinstance(value, Value)
        result = None
        if wanted:
            held = self.fresh("_value")
            self.assign(held, self.settled(value).code)
            value = result = Value(name(held), target.type, target.type.bounds
                                   if target.type.is_integer else WIDE, True)
        self.stored.add(target.name)
        self.emit(ast.Assign([ast.Subscript(name(target.name), target.index, ast.Store())],
                             value.code))
        return result

    def _seat(self, target: PointerVar, pointer: Address, node: Any) -> None:
        assert pointer.base is not None
        if not target.moves and pointer.base != target.base:
            self.no("this pointer is made to point into another array", node)
        if target.at is None and pointer.at.bounds != (0, 0):
            self.no("this pointer cannot move", node)
        if target.at is not None:
            self.assign(target.at, pointer.at.code)
        if target.moves and pointer.base != target.base:
            self.assign(target.base, name(pointer.base))

    def keep(self, made: Result, wanted: str) -> Named:
        """Variables that hold a result."""
        if isinstance(made, Value):
            held = self.fresh(wanted)
            self.assign(held, made.code)
            return Scalar(held, made.type, made.bounds)
        if isinstance(made, Address):
            if made.base is None or made.base in self.moving:
                return self._mover(wanted, made)
            if made.at.bounds == (0, 0):
                return PointerVar(made.base, None, made.type)
            at = self.fresh(wanted)
            self.assign(at, made.at.code)
            return PointerVar(made.base, at, made.type)
        if isinstance(made, Record):
            return RecordVar(made.type, {field: self.keep(value, f"{wanted}_{field}")
                                         for field, value in made.fields.items()})
        return self.no("a void function gives nothing", None)

    def _mover(self, wanted: str, pointer: Address) -> PointerVar:
        base = self.fresh(wanted)
        self.moving.add(base)
        made = PointerVar(base, self.fresh(f"{wanted}_at"), pointer.type, True)
        if pointer.base is not None:
            self._seat(made, pointer, None)
        return made

    # ---- declarations

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
            held = self.fresh(node.name)
            self.registers.add(held)
            self.assign(held, self.new("local", (1,), kind))
            if made is not None:
                self.put(Place(held, number(0), kind, True), made, node)
            return Cell(held, kind)
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
        if made is not None and not self.survey.assigned[node.name]:
            return self.keep(made, node.name)
        named = self._blank(node.name, kind)
        if made is not None:
            assert isinstance(made, Record) and isinstance(named, RecordVar)
            for field, value in made.fields.items():
                self.put(self.field(named, field, node), value, node)
        return named

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
                if any(isinstance(v, ArrayVar) and v.name in self.dynamic
                       for scope in self.scopes for v in scope.values()):
                    self.no("a second extern __shared__ array would be the first one's memory: "
                            "use pointers into one", node)
                kind = Array(kind.item, length)
                made = self._array(node, kind, "shared")
                assert isinstance(made, ArrayVar)
                self.dynamic.add(made.name)
                return made
            return self._array(node, kind, "shared")
        element, total = self._elements(kind, node)
        held = self.fresh(node.name)
        self.assign(held, self.new("shared", (total,), element))
        return Cell(held, kind)
