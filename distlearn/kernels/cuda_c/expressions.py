"""Expressions of a kernel in C as Python's; what they change on the way becomes statements."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c import arithmetic, types
from distlearn.kernels.cuda_c.arithmetic import Known
from distlearn.kernels.cuda_c.places import ZERO, Places
from distlearn.kernels.cuda_c.types import CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Nothing,
    Record,
    Result,
    Value,
    name,
    number,
    of_known,
    stamp,
)
from distlearn.kernels.cuda_c.variables import (
    ArrayVar,
    Place,
    Stretch,
)

Dim3 = tuple[int, int, int]
class Expressions(Places):
    """The part of a function's translation that computes values."""

    def of_binaryop(self, node: Any) -> Result:
        """Translate ``a op b``."""
        if node.op in ("&&", "||"):
            return self._logic(node)
        a, b = self.result(node.left), self.result(node.right)
        if isinstance(a, Address) or isinstance(b, Address):
            return self._pointers(node, a, b)
        if not isinstance(a, Value) or not isinstance(b, Value):
            self.no(f"{node.op} of {a.type} and {b.type}", node)
        assert isinstance(a, Value) and isinstance(b, Value)
        return self.binary(node.op, a, b, node)

    def binary(self, op: str, a: Value, b: Value, node: Any) -> Value:
        """``a op b`` of numbers."""
        whole = a.type.is_integer and b.type.is_integer
        if op in arithmetic.COMPARE:
            return self.compare(op, a, b)
        if not whole and op not in ("+", "-", "*", "/"):
            self.no(f"{op} of {a.type} and {b.type}", node)
        return self.arithmetic(op, a, b)

    def _pointers(self, node: Any, a: Result, b: Result) -> Result:
        if node.op == "+" and isinstance(a, Address) and isinstance(b, Value):
            return self.moved(a, b, node)
        if node.op == "+" and isinstance(b, Address) and isinstance(a, Value):
            return self.moved(b, a, node)
        if node.op == "-" and isinstance(a, Address) and isinstance(b, Value):
            return self.moved(a, self.arithmetic("-", ZERO, self.index(b)), node)
        if node.op in ("==", "!=") and (self._null(a) or self._null(b)):
            pointer = b if self._null(a) else a
            null = self.is_null(pointer) if isinstance(pointer, Address) else ast.Constant(True)
            return Value(null if node.op == "==" else ast.UnaryOp(ast.Not(), null), types.INT,
                         (0, 1), True)
        if isinstance(a, Address) and isinstance(b, Address) and a.base == b.base:
            if node.op in arithmetic.COMPARE:
                return self.compare(node.op, a.at, b.at)
            if node.op == "-":
                step = self.units(a.type.target, node)
                rest = self.arithmetic("-", a.at, b.at)
                return self.arithmetic("/", rest, Value(
                    number(step), types.LONG, (step, step), True))
        return self.no(f"{node.op} of {a.type} and {b.type}", node)

    @staticmethod
    def _null(value: Result) -> bool:
        return (isinstance(value, Address) and value.base is None) or (
            isinstance(value, Value) and value.bounds == (0, 0))

    def _logic(self, node: Any) -> Value:
        left = as_bool(self.truth(node.left))
        with self.collected() as extra:
            right = as_bool(self.truth(node.right))
        if not extra:
            join: ast.boolop = ast.And() if node.op == "&&" else ast.Or()
            return Value(ast.BoolOp(join, [left, right]), types.INT, (0, 1))
        held = self.fresh("_test")
        self.assign(held, left)
        with self.collected() as inner:
            self.out += extra
            self.assign(held, right)
        test: ast.expr = name(held)
        if node.op == "||":
            test = ast.UnaryOp(ast.Not(), test)
        self.emit(ast.If(test, inner, []))
        return Value(name(held), types.INT, (0, 1), True)

    def of_unaryop(self, node: Any) -> Result:
        """Translate ``-a``, ``!a``, ``*p``, ``&a``, ``a++`` and their like."""
        op = node.op
        if op == "sizeof":
            return of_known(Known(types.ULONG, self._size(node.expr)))
        if op == "*":
            return self.read(self.target(node), node)
        if op == "&":
            return self.pointer_to(node.expr)
        if op in ("++", "--", "p++", "p--"):
            # None only where no value is wanted
            return self.step(node, True)  # type: ignore[return-value]
        if op == "!":
            return Value(ast.UnaryOp(ast.Not(), self.truth(node.expr)), types.INT, (0, 1))
        value = self.value(node.expr)
        if value.type.kind == "f":
            if op == "~":
                self.no(f"~ of a {value.type}", node)
            if op == "+":
                return value
            return replace(value, code=ast.UnaryOp(ast.USub(), value.code))
        kind = types.promoted(value.type)
        zero = Value(number(0), kind, (0, 0), True)
        if op == "~":
            value = self.meet(value, kind)
            ones = Value(number(-1), kind, (-1, -1), True)
            return self.arithmetic("-", ones, value)
        return self.arithmetic(op, zero, value) if op == "-" else self.meet(value, kind)

    def _size(self, node: Any) -> int:
        if isinstance(node, c_ast.Typename):
            return self.source.type_of(node).size
        with self.collected():
            target = self.target(node) if not isinstance(node, c_ast.Constant) else None
            return target.type.size if target is not None else self.value(node).type.size

    def pointer_to(self, node: Any) -> Address:
        """``&node``."""
        target = self.target(node)
        if isinstance(target, Place) and not isinstance(target.index, ast.Tuple):
            at = Value(target.index, types.LONG, WIDE, target.pure)
            return Address(target.name, at, Pointer(target.type))
        if isinstance(target, Place):  # an atomic's: a whole array, all subscripts given
            return Address(target.name, Value(target.index, types.LONG, WIDE, target.pure),
                           Pointer(target.type))
        if isinstance(target, Stretch):
            return Address(target.name, target.at, Pointer(target.type))
        if isinstance(target, ArrayVar):
            return Address(target.name, ZERO, Pointer(target.type))
        return self.no("the address of this is not modelled: a pointer points into memory",
                       node)

    def of_cast(self, node: Any) -> Result:
        """Translate ``(type)a``."""
        kind = self.source.type_of(node.to_type)
        made = self.result(node.expr)
        if kind == types.VOID:
            return made
        return self.to(made, kind, node, explicit=True)

    def to(self, made: Result, kind: CType, node: Any, explicit: bool = False) -> Result:
        """A result converted to a type."""
        if isinstance(kind, Number) and isinstance(made, Value):
            return self.convert(made, kind)
        if isinstance(kind, Pointer) and isinstance(made, Address | Value):
            if isinstance(made, Value):
                if made.bounds != (0, 0):
                    self.no(f"a number is no {kind}", node)
                return Address(None, ZERO, kind)
            if made.base is None or kind.target == made.type.target:
                return replace(made, type=kind)
            a, b = types.elements(kind.target), types.elements(made.type.target)
            if a is not None and b is not None and a[0].size == b[0].size and (
                    a[0].kind == b[0].kind) and (explicit or a[0] == b[0]):
                return replace(made, type=kind)
            if a is not None and explicit and made.base in self.dynamic:
                return self._as_other(made, kind, a[0], node)
            self.no(f"a {made.type} used as a {kind}: memory read as another type is not "
                    "modelled in kernels", node)
        if isinstance(kind, Struct) and isinstance(made, Record) and made.type == kind:
            return made
        return self.no(f"a {made.type} is no {kind}", node)

    def _as_other(self, made: Address, kind: Pointer, element: Number, node: Any) -> Address:
        """A pointer into dynamic shared memory as one to another type."""
        assert made.base is not None
        have, want = self.dynamic[made.base].size, element.size
        at = made.at
        if have >= want:
            at = self.arithmetic("*", at, _long(have // want))
        elif not _multiple(at, want // have):
            self.no(f"an address must be a multiple of the {want} bytes of a {element}, which "
                    f"cannot be seen of this one: step by n * sizeof({element})", node)
        else:
            at = self.arithmetic("/", at, _long(want // have))
        return Address(self.over_dynamic("_view", element), at, kind)

    def of_ternaryop(self, node: Any) -> Result:
        """Translate ``a ? b : c``."""
        test = self.truth(node.cond)
        with self.collected() as first:
            yes = self.result(node.iftrue)
        with self.collected() as second:
            no = self.result(node.iffalse)
        if isinstance(yes, Address) and isinstance(no, Address) and yes.base == no.base:
            at = self._either(test, first, second, yes.at, no.at, types.LONG)
            return replace(yes, at=at)
        if not isinstance(yes, Value) or not isinstance(no, Value):
            self.no("?: between these is not modelled in kernels: use if", node)
        assert isinstance(yes, Value) and isinstance(no, Value)
        return self._either(test, first, second, yes, no, types.common(yes.type, no.type))

    def _either(self, test: ast.expr, first: list[ast.stmt], second: list[ast.stmt], yes: Value,
                no: Value, kind: Number) -> Value:
        yes, no = self.convert(yes, kind), self.convert(no, kind)
        bounds = min(yes.bounds[0], no.bounds[0]), max(yes.bounds[1], no.bounds[1])
        if not first and not second:
            return Value(ast.IfExp(test, yes.code, no.code), kind, bounds)
        held = self.fresh("_either")
        for statements, value in ((first, yes), (second, no)):
            made = ast.Assign([ast.Name(held, ast.Store())], value.code)
            stamp(made, self.line)
            statements.append(made)
        self.emit(ast.If(test, first, second))
        return Value(name(held), kind, bounds, True)

    def of_exprlist(self, node: Any) -> Result:
        """Translate ``a, b``: the last one's value."""
        for part in node.exprs[:-1]:
            self.effect(part)
        return self.result(node.exprs[-1])

    def effect(self, node: Any) -> None:
        """Translate an expression for what it does alone."""
        if isinstance(node, c_ast.Assignment):
            self.line = node.coord.line
            self.store(node, False)
        elif isinstance(node, c_ast.UnaryOp) and node.op in ("++", "--", "p++", "p--"):
            self.line = node.coord.line
            self.step(node, False)
        elif isinstance(node, c_ast.ExprList):
            for part in node.exprs:
                self.effect(part)
        else:
            made = self.called(node, False) if isinstance(node, c_ast.FuncCall) \
                else self.result(node)
            if isinstance(made, Nothing) or (isinstance(made, Value) and not made.pure):
                self.emit(ast.Expr(made.code))

    def of_assignment(self, node: Any) -> Result:
        """Translate an assignment whose value is used."""
        # None only where no value is wanted
        return self.store(node, True)  # type: ignore[return-value]

    def of_funccall(self, node: Any) -> Result:
        """Translate a call whose value is used."""
        return self.called(node, True)

    # defined by the part that assigns
    dynamic: dict[str, Number]

    def over_dynamic(self, wanted: str, element: Number) -> str:
        """The name of a new array over the dynamic shared memory."""
        raise NotImplementedError

    def store(self, node: Any, wanted: bool) -> Result | None:
        """Translate an assignment."""
        raise NotImplementedError

    def step(self, node: Any, wanted: bool) -> Result | None:
        """Translate ``++`` and ``--``."""
        raise NotImplementedError


def _long(value: int) -> Value:
    return Value(number(value), types.LONG, (value, value), True)


def _multiple(value: Value, of: int) -> bool:
    """Whether an integer can be seen to be a multiple of another."""
    def seen(code: ast.expr) -> bool:
        if isinstance(code, ast.Constant):
            return isinstance(code.value, int) and code.value % of == 0
        if not isinstance(code, ast.BinOp):
            return False
        both = seen(code.left), seen(code.right)
        return any(both) if isinstance(code.op, ast.Mult) else (
            isinstance(code.op, ast.Add | ast.Sub) and all(both))

    low, high = value.bounds
    return low % of == 0 if low == high else seen(value.code)


def as_bool(code: ast.expr) -> ast.expr:
    """A test as a truth value, 0 or 1 as a number."""
    if isinstance(code, ast.Compare | ast.BoolOp) or (
            isinstance(code, ast.UnaryOp) and isinstance(code.op, ast.Not)):
        return code
    return ast.Compare(code, [ast.NotEq()], [number(0)])
