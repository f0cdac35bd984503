"""Assignments of a kernel in C."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.expressions import Expressions
from distlearn.kernels.cuda_c.places import ZERO
from distlearn.kernels.cuda_c.types import Number, Struct
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
    stored : set of str
        Arrays that are written to.
    dynamic : dict of str to Number
        Arrays over the shared memory whose size the launch gives, and their elements' types.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.dynamic: dict[str, Number] = {}
        self.stored: set[str] = set()

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
