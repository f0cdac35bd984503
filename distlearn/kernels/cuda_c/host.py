"""Host code of a CUDA C source, run statement by statement over a memory of its own."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.errors import SourceError
from distlearn.kernels.cuda_c.evaluation import Evaluation, Frame, Held, Spot
from distlearn.kernels.cuda_c.memory import AccessError, Block
from distlearn.kernels.cuda_c.source import Function
from distlearn.kernels.cuda_c.survey import Survey
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct

RETURN, BREAK, CONTINUE = "return", "break", "continue"


class Host(Evaluation):
    """Runs host functions."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        for variable in self.source.variables.values():
            if not variable.marks & {"__device__", "__constant__"}:
                self.line = variable.line
                at = self.memory.allocate(variable.type.size, "host", variable.name).address
                self.globals[variable.name] = Spot(variable.type, at)
                if variable.initial is not None:
                    self.guarded(lambda at=at, variable=variable: self.initialise(  # type: ignore[misc]
                        at, variable.type, variable.initial))

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
            return self.fail(f"{word}(): wrong arguments")

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
        if "static" in node.storage:
            self._static(node, kind)
            return
        spot = self.variable(node.name, kind, node)
        if node.init is None:
            if kind == types.DIM3:
                self.put(spot, self.to(Held(types.INT, 1), kind))
            return
        if spot.register:
            init = node.init.exprs[0] if isinstance(node.init, c_ast.InitList) else node.init
            self.put(spot, self.to(self.value(init), kind))
        else:
            self.initialise(spot.address, kind, node.init)

    def _static(self, node: Any, kind: CType) -> None:
        """A variable of one function that keeps its value from call to call."""
        key = f"{node.name} of line {node.coord.line}:{node.coord.column}"
        if key not in self.globals:
            at = self.memory.allocate(kind.size, "host", node.name).address
            self.globals[key] = Spot(kind, at)
            if node.init is not None:
                self.initialise(at, kind, node.init)
        self.frame.scopes[-1][node.name] = self.globals[key]

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
            flat = types.elements(kind)
            bare = not any(isinstance(item, c_ast.InitList) or getattr(item, "type", "") == "string"
                           for item in init.exprs)
            if bare and flat is not None and isinstance(kind, Array) and isinstance(
                    kind.item, Array):  # rows without braces of their own
                places = [(i * flat[0].size, flat[0]) for i in range(flat[1])]
            elif isinstance(kind, Array):
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
