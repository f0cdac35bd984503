"""Expressions of host code, computed over a memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from pycparser import c_ast

from distlearn.kernels.cuda_c import arithmetic, types
from distlearn.kernels.cuda_c.arithmetic import Known, UndefinedError
from distlearn.kernels.cuda_c.errors import HostError
from distlearn.kernels.cuda_c.memory import AccessError, Block, Memory, decode
from distlearn.kernels.cuda_c.rules import STEPS
from distlearn.kernels.cuda_c.source import Function, Source
from distlearn.kernels.cuda_c.survey import Survey
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct


class Held(NamedTuple):
    """A value: a number, an address, or the bytes of a structure."""

    type: CType
    value: Any


class Spot(NamedTuple):
    """What can be assigned: an address, or a variable in a register."""

    type: CType
    address: int
    register: str = ""


class Exit(Exception):  # noqa: N818 - an end, no error
    """The program ends with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Frame:
    """Variables of a function that runs."""

    def __init__(self, survey: Survey) -> None:
        self.boxed = survey.boxed
        self.scopes: list[dict[str, Spot]] = [{}]
        self.registers: dict[str, Any] = {}
        self.homes: dict[int, Block] = {}  # declarations' memory, by node


class Evaluation:
    """The part of a host that computes values.

    Attributes
    ----------
    line : int
        The line that runs.
    """

    def __init__(self, source: Source, memory: Memory,
                 library: dict[str, Callable[[Any, list[Held]], Held]],
                 launch: Callable[[str, list[Held], list[Held]], None]) -> None:
        self.source, self.memory, self.library, self.launcher = source, memory, library, launch
        self.line = 0
        self.globals: dict[str, Spot] = {}
        self.symbols: dict[str, Block] = {}
        self.strings: dict[str, int] = {}
        self.surveys: dict[str, Survey] = {}
        self.frame = Frame(Survey(c_ast.Compound([])))
        self.result: Held = Held(types.VOID, None)
        self.output: list[str] = []
        self.seed: Any = 1

    def guarded(self, work: Callable[[], Any]) -> Any:
        """Run a piece of work; what goes wrong is an error of the line that runs.

        Raises
        ------
        HostError
        """
        try:
            return work()
        except (AccessError, UndefinedError) as error:
            raise HostError(str(error), self.source.filename, self.line) from None
        except RecursionError:
            raise HostError("calls are nested too deep", self.source.filename,
                            self.line) from None

    def fail(self, reason: str) -> NoReturn:
        """Raise the error for the line that runs."""
        raise HostError(reason, self.source.filename, self.line)

    # ---- defined by the part that runs statements

    def call(self, function: Function, arguments: list[Held]) -> Held:
        """Call a function."""
        raise NotImplementedError

    def initialise(self, address: int, kind: CType, init: Any) -> None:
        """Store ``= init`` at an address."""
        raise NotImplementedError

    # ---- values

    def value(self, node: Any) -> Held:
        """The value of an expression."""
        if node.coord is not None:
            self.line = node.coord.line
        method: Any = getattr(self, "of_" + type(node).__name__.lower(), None)
        if method is None:
            self.fail(f"{type(node).__name__} is not understood in host code")
        made: Held = method(node)
        return made

    def truth(self, node: Any) -> bool:
        """An expression as a test."""
        return bool(self.value(node).value)

    def to(self, held: Held, kind: CType) -> Held:
        """A value converted to a type."""
        if isinstance(kind, Number) and isinstance(held.type, Number):
            return Held(*arithmetic.convert(Known(held.type, held.value), kind))
        if isinstance(kind, Pointer) and isinstance(held.type, Pointer | Number):
            return Held(kind, int(held.value))
        if isinstance(kind, Number) and isinstance(held.type, Pointer) and (
                kind.size == 8 or kind == types.BOOL):
            return Held(kind, held.value if kind.size == 8 else int(bool(held.value)))
        if held.type == kind:
            return held
        if kind == types.VOID:
            return Held(kind, None)
        if kind == types.DIM3 and isinstance(held.type, Number):
            return Held(kind, np.array([held.value, 1, 1], "<u4").tobytes())
        return self.fail(f"a {held.type} is no {kind}")

    def get(self, spot: Spot) -> Held:
        """What a spot holds."""
        if spot.register:
            if spot.register not in self.frame.registers:
                self.fail(f"{spot.register.split()[0]} is read before it has a value")
            return Held(spot.type, self.frame.registers[spot.register])
        if isinstance(spot.type, Array):
            return Held(Pointer(spot.type.item), spot.address)
        return Held(spot.type, self.memory.read(spot.address, spot.type))

    def put(self, spot: Spot, held: Held) -> Held:
        """Assign."""
        if spot.register:
            self.frame.registers[spot.register] = held.value
        else:
            self.memory.write(spot.address, spot.type, held.value)
        return held

    def spot(self, node: Any) -> Spot:
        """The place that an expression names."""
        if isinstance(node, c_ast.ID):
            for scope in reversed(self.frame.scopes):
                if node.name in scope:
                    return scope[node.name]
            if node.name in self.globals:
                return self.globals[node.name]
            if node.name == "__elided":
                self.fail("'...' stands for what the listing leaves out: write it out to run this "
                          "function")
            self.fail(f"{node.name!r} is not declared")
        if isinstance(node, c_ast.ArrayRef):
            base, index = self.value(node.name), self.value(node.subscript)
            if isinstance(base.type, Number):
                base, index = index, base
            return self._pointee(self._moved(base, index, 1))
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            return self._pointee(self.value(node.expr))
        if isinstance(node, c_ast.StructRef):
            inner = self._pointee(self.value(node.name)) if node.type == "->" else self.spot(
                node.name)
            field = node.field.name
            kind = inner.type.field_type(field) if isinstance(inner.type, Struct) else None
            if kind is None or not isinstance(inner.type, Struct):
                self.fail(f"{inner.type} has no field {field!r}")
            assert isinstance(inner.type, Struct) and kind is not None
            return Spot(kind, inner.address + inner.type.offsets[field])
        return self.fail("this cannot be assigned")

    def _pointee(self, held: Held) -> Spot:
        if not isinstance(held.type, Pointer):
            self.fail(f"a {held.type} is no pointer")
        assert isinstance(held.type, Pointer)
        if held.type.target == types.VOID:
            self.fail("a void * points to nothing of a type: cast it first")
        return Spot(held.type.target, held.value)

    def _moved(self, base: Held, by: Held, sign: int) -> Held:
        if not isinstance(base.type, Pointer) or not isinstance(by.type, Number):
            self.fail(f"a {base.type} moved by a {by.type}")
        assert isinstance(base.type, Pointer)
        return Held(base.type, base.value + sign * int(by.value) * base.type.target.size)

    def of_constant(self, node: Any) -> Held:
        """A literal."""
        if node.type == "string":
            return Held(Pointer(types.CHAR), self.string(self._text(node)))
        return Held(*arithmetic.constant(node.type, node.value))

    def string(self, text: str) -> int:
        """The address of a string of the program."""
        if text not in self.strings:
            data = text.encode() + b"\0"
            block = self.memory.allocate(len(data), "host", "a string")
            block.data[:] = data
            self.strings[text] = block.address
        return self.strings[text]

    def of_id(self, node: Any) -> Held:
        """A name."""
        for scope in reversed(self.frame.scopes):
            if node.name in scope:
                return self.get(scope[node.name])
        if node.name in self.source.constants and node.name not in self.globals:
            return Held(*self.source.constants[node.name])
        if node.name in CONSTANTS and node.name not in self.globals:
            return Held(types.INT, CONSTANTS[node.name])
        return self.get(self.spot(node))

    def of_arrayref(self, node: Any) -> Held:
        """``a[i]``."""
        return self.get(self.spot(node))

    def of_structref(self, node: Any) -> Held:
        """``a.b``, ``p->b``; also of what a call gives."""
        if node.type == "." and isinstance(node.name, c_ast.FuncCall):
            held, field = self.value(node.name), node.field.name
            kind = held.type.field_type(field) if isinstance(held.type, Struct) else None
            if kind is None or not isinstance(held.type, Struct):
                self.fail(f"{held.type} has no field {field!r}")
            assert isinstance(held.type, Struct) and kind is not None
            return Held(kind, decode(kind, held.value, held.type.offsets[field]))
        return self.get(self.spot(node))

    def of_binaryop(self, node: Any) -> Held:
        """``a op b``."""
        if node.op in ("&&", "||"):
            left = self.truth(node.left)
            decided = left if node.op == "||" else not left
            return Held(types.INT, int(left if decided else self.truth(node.right)))
        return self.binary(node.op, self.value(node.left), self.value(node.right))

    def binary(self, op: str, a: Held, b: Held) -> Held:
        """``a op b`` of values."""
        if isinstance(a.type, Number) and isinstance(b.type, Number):
            return Held(*arithmetic.binary(op, Known(a.type, a.value), Known(b.type, b.value)))
        if op in arithmetic.COMPARE and isinstance(a.type, Number | Pointer) and isinstance(
                b.type, Number | Pointer):
            return Held(types.INT, int(arithmetic.COMPARE[op](a.value, b.value)))
        if op == "+" and isinstance(b.type, Pointer):
            return self._moved(b, a, 1)
        if op == "-" and isinstance(a.type, Pointer) and isinstance(b.type, Pointer):
            return Held(types.LONG, (a.value - b.value) // a.type.target.size)
        if op in ("+", "-"):
            return self._moved(a, b, 1 if op == "+" else -1)
        return self.fail(f"{op} of {a.type} and {b.type}")

    def of_unaryop(self, node: Any) -> Held:
        """``-a``, ``*p``, ``&a``, ``a++`` and their like."""
        op = node.op
        if op == "sizeof":
            if isinstance(node.expr, c_ast.Typename):
                return Held(types.ULONG, self.source.type_of(node.expr).size)
            if isinstance(node.expr, c_ast.ID | c_ast.StructRef | c_ast.ArrayRef) or (
                    isinstance(node.expr, c_ast.UnaryOp) and node.expr.op == "*"):
                return Held(types.ULONG, self.spot(node.expr).type.size)
            kind = self.kind_of(node.expr)
            return Held(types.ULONG, (kind or self.value(node.expr).type).size)
        if op == "&":
            spot = self.spot(node.expr)
            return Held(Pointer(spot.type), spot.address)
        if op == "*":
            return self.get(self.spot(node))
        if op in STEPS:
            spot = self.spot(node.expr)
            old = self.get(spot)
            new = self.to(self.binary(op[-1], old, Held(types.INT, 1)), spot.type)
            self.put(spot, new)
            return old if op.startswith("p") else new
        held = self.value(node.expr)
        if isinstance(held.type, Pointer) and op == "!":
            return Held(types.INT, int(not held.value))
        if not isinstance(held.type, Number):
            self.fail(f"{op} of a {held.type}")
        assert isinstance(held.type, Number)
        return Held(*arithmetic.unary(op, Known(held.type, held.value)))

    def of_assignment(self, node: Any) -> Held:
        """``a = b``, ``a += b``."""
        value = self.value(node.rvalue)
        spot = self.spot(node.lvalue)
        if node.op != "=":
            value = self.binary(node.op[:-1], self.get(spot), value)
        return self.put(spot, self.to(value, spot.type))

    def of_cast(self, node: Any) -> Held:
        """``(type)a``."""
        kind, held = self.source.type_of(node.to_type), self.value(node.expr)
        if isinstance(kind, Number) and kind.is_integer and isinstance(held.type, Pointer):
            return Held(kind, arithmetic.wrapped(kind, held.value))
        return self.to(held, kind)

    def of_ternaryop(self, node: Any) -> Held:
        """``a ? b : c``."""
        kind = self.kind_of(node)
        held = self.value(node.iftrue if self.truth(node.cond) else node.iffalse)
        return self.to(held, kind) if isinstance(kind, Number) else held

    def of_exprlist(self, node: Any) -> Held:
        """``a, b``."""
        for part in node.exprs[:-1]:
            self.value(part)
        return self.value(node.exprs[-1])

    def of_compoundliteral(self, node: Any) -> Held:
        """``(type){...}``."""
        kind = self.source.type_of(node.type)
        at = self.memory.allocate(kind.size, "host", "a literal").address
        self.initialise(at, kind, node.init)
        return self.get(Spot(kind, at))

    # ---- types of what is not run

    def kind_of(self, node: Any) -> CType | None:
        """The type that an expression has; None if only running it can tell."""
        if isinstance(node, c_ast.Constant):
            return Pointer(types.CHAR) if node.type == "string" else arithmetic.constant(
                node.type, node.value).type
        if isinstance(node, c_ast.ID):
            known = self.source.constants.get(node.name)
            if node.name in CONSTANTS or known is not None:
                return known.type if known is not None else types.INT
            return types.decayed(self.spot(node).type)
        if isinstance(node, c_ast.BinaryOp):
            if node.op in ("&&", "||", *arithmetic.COMPARE):
                return types.INT
            return types.met(self.kind_of(node.left), None if node.op in ("<<", ">>")
                       else self.kind_of(node.right), node.op)
        if isinstance(node, c_ast.TernaryOp):
            return types.met(self.kind_of(node.iftrue), self.kind_of(node.iffalse), "?:")
        if isinstance(node, c_ast.Cast):
            return self.source.type_of(node.to_type)
        if isinstance(node, c_ast.Assignment):
            return self.kind_of(node.lvalue)
        if isinstance(node, c_ast.FuncCall):
            function = self.source.functions.get(getattr(node.name, "name", ""))
            return function.result if function is not None else None
        if isinstance(node, c_ast.ArrayRef):
            base = self.kind_of(node.name)
            return types.decayed(base.target) if isinstance(base, Pointer) else None
        if isinstance(node, c_ast.StructRef):
            inner = self.kind_of(node.name)
            inner = inner.target if isinstance(inner, Pointer) else inner
            found = inner.field_type(node.field.name) if isinstance(inner, Struct) else None
            return types.decayed(found) if found is not None else None
        return self._kind_of_unary(node) if isinstance(node, c_ast.UnaryOp) else None

    def _kind_of_unary(self, node: Any) -> CType | None:
        if node.op == "sizeof":
            return types.ULONG
        if node.op == "!":
            return types.INT
        inner = self.kind_of(node.expr)
        if node.op == "*":
            return types.decayed(inner.target) if isinstance(inner, Pointer) else None
        if node.op == "&":
            return Pointer(inner) if inner is not None else None
        if node.op not in STEPS and isinstance(inner, Number):
            return types.promoted(inner)
        return inner

    def _text(self, node: Any) -> str:
        if isinstance(node, c_ast.Constant) and node.type == "string":
            return unescaped(node.value)
        return str(self.fail("an array is initialised by {...}"))


def unescaped(literal: str) -> str:
    """The text of a string literal."""
    return literal[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")


CONSTANTS = {
    "cudaSuccess": 0, "cudaMemcpyHostToHost": 0, "cudaMemcpyHostToDevice": 1,
    "cudaMemcpyDeviceToHost": 2, "cudaMemcpyDeviceToDevice": 3, "cudaMemcpyDefault": 4,
    "stdout": 1, "stderr": 2, "cudaHostAllocDefault": 0,
}
