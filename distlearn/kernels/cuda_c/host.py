"""Host code of a CUDA C source, run statement by statement over a memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pycparser import c_ast

from distlearn.kernels.cuda_c import arithmetic, types
from distlearn.kernels.cuda_c.arithmetic import Known, UndefinedError
from distlearn.kernels.cuda_c.errors import HostError, SourceError
from distlearn.kernels.cuda_c.memory import Block, AccessError, Memory, decode
from distlearn.kernels.cuda_c.source import Function, Source
from distlearn.kernels.cuda_c.survey import STEPS, Survey
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


RETURN, BREAK, CONTINUE = "return", "break", "continue"


class Host:
    """Runs host functions.

    Attributes
    ----------
    line : int
        The line that runs.
    """

    def __init__(self, source: Source, memory: Memory,
                 library: dict[str, Callable[[Host, list[Any]], Held]],
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
        for variable in source.variables.values():
            if not variable.marks & {"__device__", "__constant__"}:
                self.line = variable.line
                at = memory.allocate(variable.type.size, "host", variable.name).address
                self.globals[variable.name] = Spot(variable.type, at)
                if variable.initial is not None:
                    self.guarded(lambda at=at, variable=variable: self.initialise(  # type: ignore[misc]
                        at, variable.type, variable.initial))

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

    def fail(self, reason: str) -> Any:
        """Raise the error for the line that runs."""
        raise HostError(reason, self.source.filename, self.line)

    def symbol(self, word: str) -> Block:
        """The memory of a ``__device__`` or ``__constant__`` variable.

        Raises
        ------
        AccessError
            There is none of this name.
        """
        if word not in self.symbols:
            variable = self.source.variables.get(word)
            if variable is None or not variable.marks & {"__device__", "__constant__"}:
                raise AccessError(f"{word} is no __device__ or __constant__ variable")
            block = self.symbols[word] = self.memory.allocate(variable.type.size, "device", word)
            if variable.initial is not None:
                spot = self.memory.allocate(variable.type.size, "host", word)
                self.initialise(spot.address, variable.type, variable.initial)
                block.data[:] = spot.data
        return self.symbols[word]

    # ---- functions and statements

    def call(self, function: Function, arguments: list[Held]) -> Held:
        """Call a function."""
        if len(arguments) != len(function.parameters):
            self.fail(f"{function.name}() takes {len(function.parameters)} arguments, "
                      f"{len(arguments)} given")
        if function.name not in self.surveys:
            self.surveys[function.name] = Survey(function.body)
        before, self.frame = self.frame, Frame(self.surveys[function.name])
        line = self.line
        try:
            for (word, kind), value in zip(function.parameters, arguments, strict=True):
                spot = self.variable(word, kind, None)
                self.put(spot, self.to(value, kind))
            ended = self.run(function.body)
            result = self.result if ended == RETURN else Held(types.VOID, None)
        finally:
            for block in self.frame.homes.values():
                block.freed = True
            self.frame = before
        self.line = line
        if function.result == types.VOID:
            return Held(types.VOID, None)
        if result.type == types.VOID:
            if function.name == "main":
                return Held(types.INT, 0)
            self.fail(f"{function.name}() ends without return")
        return self.to(result, function.result)

    def run(self, node: Any) -> str:
        """Run a statement; tells how it ended."""
        if node is None:
            return ""
        if node.coord is not None:
            self.line = node.coord.line
        method = getattr(self, "do_" + type(node).__name__.lower(), None)
        if method is not None:
            return method(node) or ""
        self.value(node)
        return ""

    def do_compound(self, node: Any) -> str:
        """Run ``{...}``."""
        self.frame.scopes.append({})
        ended = ""
        for part in node.block_items or ():
            ended = self.run(part)
            if ended:
                break
        self.frame.scopes.pop()
        return ended

    def do_decl(self, node: Any) -> None:
        """Run a declaration."""
        if isinstance(node.type, c_ast.FuncDecl):
            return
        if self.source.marks(node) & {"__shared__", "__device__", "__constant__"}:
            self.fail(f"{node.name} is device memory, declared in host code")
        kind = self.source.type_of(node.type)
        if isinstance(kind, Array) and kind.length is None:
            count = len(node.init.exprs) if isinstance(node.init, c_ast.InitList) else len(
                self._text(node.init)) + 1 if node.init is not None else 0
            kind = Array(kind.item, count)
        spot = self.variable(node.name, kind, node)
        if node.init is None:
            return
        if spot.register:
            init = node.init.exprs[0] if isinstance(node.init, c_ast.InitList) else node.init
            self.put(spot, self.to(self.value(init), kind))
        else:
            self.initialise(spot.address, kind, node.init)

    def variable(self, word: str, kind: CType, node: Any) -> Spot:
        """A new variable: in a register, unless it is large or its address is taken."""
        if isinstance(kind, types.Void):
            self.fail(f"{word} cannot be void")
        if isinstance(kind, Number | Pointer) and word not in self.frame.boxed:
            register = f"{word} {len(self.frame.scopes)}"
            spot = Spot(kind, 0, register)
            self.frame.registers.pop(register, None)
        else:
            key = id(node) if node is not None else -1 - len(self.frame.homes)
            if key not in self.frame.homes:
                self.frame.homes[key] = self.memory.allocate(kind.size, "host", word)
            spot = Spot(kind, self.frame.homes[key].address)
        self.frame.scopes[-1][word] = spot
        return spot

    def initialise(self, address: int, kind: CType, init: Any) -> None:
        """Store ``= init`` at an address."""
        if isinstance(init, c_ast.InitList):
            block, offset = self.memory.at(address, kind.size, "host")
            block.data[offset:offset + kind.size] = bytes(kind.size)
            places: list[tuple[int, CType]] = []
            if isinstance(kind, Array):
                places = [(i * kind.item.size, kind.item) for i in range(kind.length or 0)]
            elif isinstance(kind, Struct):
                places = [(kind.offsets[name], inner) for name, inner in kind.fields]
            else:
                places = [(0, kind)]
            if len(init.exprs) > len(places):
                self.fail(f"{len(init.exprs)} values for {len(places)} places")
            for (at, inner), item in zip(places, init.exprs, strict=False):
                if isinstance(item, c_ast.NamedInitializer):
                    self.fail("named initialisers are not understood: give all values in order")
                self.initialise(address + at, inner, item)
            return
        if isinstance(kind, Array):
            text = self._text(init).encode() + b"\0"
            block, offset = self.memory.at(address, len(text), "host")
            block.data[offset:offset + len(text)] = text
            return
        self.memory.write(address, kind, self.to(self.value(init), kind).value)

    def _text(self, node: Any) -> str:
        if isinstance(node, c_ast.Constant) and node.type == "string":
            return node.value[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
        return str(self.fail("an array is initialised by {...}"))

    def do_decllist(self, node: Any) -> None:
        """Run declarations."""
        for part in node.decls:
            self.do_decl(part)

    def do_typedef(self, node: Any) -> None:
        """Note a type."""
        self.source.types[node.name] = self.source.type_of(node.type, node.name)

    def do_emptystatement(self, node: Any) -> None:
        """Run ``;``."""

    def do_if(self, node: Any) -> str:
        """Run ``if``."""
        return self.run(node.iftrue if self.truth(node.cond) else node.iffalse)

    def do_for(self, node: Any) -> str:
        """Run ``for``."""
        self.frame.scopes.append({})
        self.run(node.init)
        ended = ""
        while node.cond is None or self.truth(node.cond):
            ended = self.run(node.stmt)
            if ended in (BREAK, RETURN):
                break
            if node.next is not None:
                self.value(node.next)
        self.frame.scopes.pop()
        return RETURN if ended == RETURN else ""

    def do_while(self, node: Any) -> str:
        """Run ``while``."""
        while self.truth(node.cond):
            ended = self.run(node.stmt)
            if ended in (BREAK, RETURN):
                return RETURN if ended == RETURN else ""
        return ""

    def do_dowhile(self, node: Any) -> str:
        """Run ``do``."""
        while True:
            ended = self.run(node.stmt)
            if ended in (BREAK, RETURN):
                return RETURN if ended == RETURN else ""
            if not self.truth(node.cond):
                return ""

    def do_switch(self, node: Any) -> str:
        """Run ``switch``."""
        value = self.value(node.cond).value
        parts = node.stmt.block_items or []
        for strict in (True, False):
            for place, part in enumerate(parts):
                if (isinstance(part, c_ast.Case) and strict
                        and self.value(part.expr).value == value) or (
                        isinstance(part, c_ast.Default) and not strict):
                    for after in parts[place:]:
                        ended = self.run(after)
                        if ended:
                            return "" if ended == BREAK else ended
                    return ""
        return ""

    def do_case(self, node: Any) -> str:
        """Run the statements of a case."""
        for part in node.stmts or ():
            ended = self.run(part)
            if ended:
                return ended
        return ""

    do_default = do_case

    def do_return(self, node: Any) -> str:
        """Run ``return``."""
        self.result = self.value(node.expr) if node.expr is not None else Held(types.VOID, None)
        return RETURN

    def do_break(self, node: Any) -> str:
        """Run ``break``."""
        return BREAK

    def do_continue(self, node: Any) -> str:
        """Run ``continue``."""
        return CONTINUE

    # ---- values

    def value(self, node: Any) -> Held:
        """The value of an expression."""
        if node.coord is not None:
            self.line = node.coord.line
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
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
        return self.fail(f"a {held.type} is no {kind}")  # type: ignore[no-any-return]

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
        return self.fail("this cannot be assigned")  # type: ignore[no-any-return]

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
        return self.fail(f"{op} of {a.type} and {b.type}")  # type: ignore[no-any-return]

    def of_unaryop(self, node: Any) -> Held:
        """``-a``, ``*p``, ``&a``, ``a++`` and their like."""
        op = node.op
        if op == "sizeof":
            if isinstance(node.expr, c_ast.Typename):
                return Held(types.ULONG, self.source.type_of(node.expr).size)
            if isinstance(node.expr, c_ast.ID | c_ast.StructRef | c_ast.ArrayRef) or (
                    isinstance(node.expr, c_ast.UnaryOp) and node.expr.op == "*"):
                return Held(types.ULONG, self.spot(node.expr).type.size)
            return Held(types.ULONG, self.value(node.expr).type.size)
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
        return self.value(node.iftrue if self.truth(node.cond) else node.iffalse)

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

    # ---- calls

    def of_funccall(self, node: Any) -> Held:
        """A call, or a launch."""
        nodes = list(node.args.exprs) if node.args is not None else []
        if isinstance(node.name, c_ast.FuncCall):
            name, *configuration = node.name.args.exprs
            sizes = [self.value(n) for n in configuration]
            arguments = [self.value(n) for n in nodes]
            self.line = node.coord.line
            self.launcher(name.name, sizes, arguments)
            return Held(types.VOID, None)
        word = getattr(node.name, "name", "")
        function = self.source.functions.get(word)
        if function is not None:
            if "__global__" in function.marks:
                self.fail(f"{word} is a kernel: launch it with {word}<<<grid, block>>>(...)")
            if "__device__" in function.marks and "__host__" not in function.marks:
                self.fail(f"{word}() is a __device__ function")
            arguments = [self.value(n) for n in nodes]
            self.line = node.coord.line
            return self.call(function, arguments)
        found = self.library.get(word)
        if found is None:
            self.fail(f"{word}() is not known in host code")
        assert found is not None
        symbolic = word in ("cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")
        arguments = [Held(types.VOID, n.name) if symbolic and isinstance(n, c_ast.ID)
                     and n.name in self.source.variables else self.value(n) for n in nodes]
        self.line = node.coord.line
        try:
            return found(self, arguments)
        except (IndexError, ValueError) as error:
            if isinstance(error, SourceError):
                raise
            return self.fail(f"{word}(): wrong arguments")  # type: ignore[no-any-return]


CONSTANTS = {
    "cudaSuccess": 0, "cudaMemcpyHostToHost": 0, "cudaMemcpyHostToDevice": 1,
    "cudaMemcpyDeviceToHost": 2, "cudaMemcpyDeviceToDevice": 3, "cudaMemcpyDefault": 4,
    "stdout": 1, "stderr": 2, "cudaHostAllocDefault": 0,
}
