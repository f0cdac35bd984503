"""A kernel in C as a `Kernel`, for one shape of launch."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import Any

import numpy as np
from pycparser import c_ast

from distlearn.kernels import dialect, intrinsics
from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.places import RESERVED, ZERO, Shape
from distlearn.kernels.cuda_c.source import Function, Source, walk
from distlearn.kernels.cuda_c.statements import Statements, names_of, parts_of
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Nothing,
    Record,
    Result,
    Value,
    call,
    name,
    stamp,
)
from distlearn.kernels.cuda_c.variables import (
    ArrayVar,
    Cell,
    Named,
    PointerVar,
    RecordVar,
    Scalar,
)
from distlearn.kernels.kernel import Kernel

SPACE: dict[str, Any] = {
    **{word: getattr(dialect, word) for word in ("cuda", "float16", "float32", "float64", "int32",
                                                 "int64")},
    **{word: getattr(np, word) for word in ("int8", "int16", "uint8", "uint16", "uint32")},
    "uint64": np.int64, "math": math,
    **{word: getattr(intrinsics, word) for word in ("load2", "load4", "store2", "store4")},
}


class Translated(Kernel):
    """A function in C as executors read it; its lines are those of the C source."""

    def __init__(self, tree: ast.FunctionDef, space: dict[str, Any], source: Source,
                 function: Function) -> None:
        for column, node in enumerate(ast.walk(tree)):  # executors tell calls apart by place
            if isinstance(node, ast.expr):
                node.col_offset = node.end_col_offset = column
        self.tree, self.name = tree, function.name
        self.filename, self.first_line = source.filename, function.line
        self.source = "\n".join(source.lines[function.line - 1:function.last_line]) + "\n"
        module = ast.fix_missing_locations(ast.Module([tree], []))
        exec(compile(module, source.filename, "exec"), space)
        self.function = space[tree.name]

    @property
    def python(self) -> str:
        """The translation as Python, to read."""
        return ast.unparse(self.tree)


class Unit:
    """Translations of a kernel and of the device functions that it calls.

    Attributes
    ----------
    implicit : list of str
        Variables of the device that the kernel uses: arrays passed after its arguments.
    """

    def __init__(self, source: Source, shape: Shape) -> None:
        self.source, self.shape = source, shape
        self.space = dict(SPACE)
        self.made: dict[str, Translated] = {}
        self.busy: list[str] = []
        self.implicit: list[str] = []

    def device(self, function: Function) -> Translated:
        """The translation of a device function."""
        if function.name not in self.made:
            self.busy.append(function.name)
            self.made[function.name] = Translator(self, function).function_kernel()
            self.busy.pop()
        return self.made[function.name]


class Translator(Statements):
    """Translates one function."""

    def __init__(self, unit: Unit, function: Function) -> None:
        super().__init__(unit.source, function, unit.shape)
        self.unit = unit
        self.passed: list[str] = []
        self.arrays: list[str] = []

    # ---- whole functions

    def kernel(self, known: dict[str, int], shifted: frozenset[str]) -> Translated:
        """The kernel for integer arguments of these values; ``shifted`` pointers have an offset."""
        parameters: list[str] = []
        for word, kind in self.function.parameters:
            self.scopes[0][word] = self._parameter(word, kind, parameters, known, shifted)
        return self._finish(parameters)

    def function_kernel(self) -> Translated:
        """The device function; its pointers are passed as an array and an offset."""
        parameters: list[str] = []
        if self.function.result != types.VOID and not any(
                isinstance(node, c_ast.Return) for node in walk(self.function.body)):
            self.no(f"{self.function.name}() returns no {self.function.result}", None)
        for word, kind in self.function.parameters:
            words, make = names_of(kind, partial(self.fresh, word))
            parameters += words
            self.scopes[0][word] = self._settled_parameter(word, make())
        return self._finish(parameters)

    def _settled_parameter(self, word: str, made: Result) -> Named:
        if isinstance(made, Address) and self.survey.seated[word]:
            return self._mover(word, made)
        if isinstance(made, Address):
            assert isinstance(made.at.code, ast.Name) and made.base is not None
            return PointerVar(made.base, made.at.code.id, made.type)
        if word in self.survey.boxed and not isinstance(made, Address):
            return self._box(word, made)
        return self._named(made)

    def _named(self, made: Result) -> Named:
        if isinstance(made, Address):
            assert isinstance(made.at.code, ast.Name) and made.base is not None
            return PointerVar(made.base, made.at.code.id, made.type)
        if isinstance(made, Record):
            return RecordVar(made.type, {
                field: self._named(inner) for field, inner in made.fields.items()})
        assert isinstance(made, Value) and isinstance(made.code, ast.Name)
        return Scalar(made.code.id, made.type, made.type.bounds
                      if made.type.is_integer else WIDE)

    def _box(self, word: str, made: Result) -> Named:
        if not isinstance(made.type, Number):
            self.no(f"the address of {word} is not modelled", None)
        assert isinstance(made.type, Number)
        held = self.fresh(word)
        self.assign(held, self.new("local", (1,), made.type))
        cell = Cell(held, made.type)
        self.put(self.of_named(cell), made, None)
        return cell

    def _parameter(self, word: str, kind: CType, parameters: list[str], known: dict[str, int],
                   shifted: frozenset[str]) -> Named:
        if isinstance(kind, Struct):
            return RecordVar(kind, {field: self._parameter(
                f"{word}_{field}", inner, parameters, known, shifted)
                for field, inner in kind.fields})
        held = self.fresh(word)
        parameters.append(held)
        if isinstance(kind, Number):
            bounds = kind.bounds if kind.is_integer else WIDE
            if len(parameters) and word in known and not self.survey.assigned[word]:
                bounds = (known[word],) * 2
            made = Scalar(held, kind, bounds)
            return self._box(word, self.read(made, None)) if word in self.survey.boxed else made
        if not isinstance(kind, Pointer) or types.elements(kind.target) is None:
            self.no(f"the parameter {word} is a {kind}; kernels take numbers, structures, and "
                    "pointers to numbers or to structures of one type", None)
        assert isinstance(kind, Pointer)
        self.arrays.append(held)
        at: str | None = None
        if word in shifted:
            at = self.fresh(f"{word}_at")
            parameters.append(at)
        if self.survey.seated[word] or (at is None and self.survey.assigned[word]):
            start = ZERO if at is None else self.read(PointerVar(held, at, kind), None).at  # type: ignore[union-attr]
            if self.survey.seated[word]:
                return self._mover(word, Address(held, start, kind))
            at = self.fresh(f"{word}_at")
            self.assign(at, start.code)
        return PointerVar(held, at, kind)

    def _finish(self, parameters: list[str]) -> Translated:
        self.passed = parameters
        body = [*self.out, *self.body(self.function.body)]
        self.line = self.function.line
        with self.collected() as hint:
            if self.moving & self.stored:  # executors find the arrays that are stored to by name
                for word in self.arrays:
                    self.emit(ast.For(ast.Name("_never", ast.Store()), call(
                        "range", ast.Constant(0)), [ast.Assign([ast.Subscript(
                            name(word), ast.Constant(0), ast.Store())], ast.Constant(0))], []))
        arguments = ast.arguments(posonlyargs=[], args=[ast.arg(word) for word in self.passed],
                                  kwonlyargs=[], kw_defaults=[], defaults=[])
        word = self.function.name  # a kernel called "range" must not hide Python's
        tree = ast.FunctionDef(f"{word}_" if word in RESERVED else word, arguments, hint + body, [])
        stamp(tree, self.function.line)
        space = dict(self.unit.space)
        return Translated(tree, space, self.source, self.function)

    # ---- what lies outside

    def outside(self, wanted: str) -> Named | None:
        """A ``__device__`` or ``__constant__`` variable: an array passed by the launch."""
        variable = self.source.variables.get(wanted)
        if variable is None:
            return None
        if not variable.marks & {"__device__", "__constant__"}:
            self.no(f"{wanted} is a variable of the host; a kernel sees its arguments, constants "
                    "and __device__ variables", None)
        if len(self.unit.busy) > 0:
            self.no(f"{wanted} is used in a __device__ function: pass it as an argument", None)
        element = types.elements(variable.type)
        if element is None:
            self.no(f"a {variable.type} is not modelled in device memory", None)
        assert element is not None
        if wanted not in self.unit.implicit:
            self.unit.implicit.append(wanted)
            self.passed.append(wanted)
            self.taken.add(wanted)
        if isinstance(variable.type, Array):
            return ArrayVar(wanted, variable.type, element[0], (element[1],))
        return Cell(wanted, variable.type)

    def helper(self, what: str) -> str:
        """A device function of one expression, on the line where it is used."""
        made = f"_c{len(self.unit.space)}"
        names = sorted({n.id for n in ast.walk(ast.parse(what)) if isinstance(n, ast.Name)}
                       & {"a", "b"})
        tree = ast.parse(f"def {made}({', '.join(names)}):\n    return {what}").body[0]
        assert isinstance(tree, ast.FunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.expr):
                node.lineno = node.end_lineno = self.line
        function = Function(made, frozenset(), types.VOID, (), None, self.line, self.line)
        self.unit.space[made] = Translated(tree, dict(self.unit.space), self.source, function)
        return made

    def called(self, node: Any, wanted: bool) -> Result:
        """The result of a call."""
        line = self.line = node.coord.line
        word = getattr(node.name, "name", "")
        arguments = list(node.args.exprs) if node.args is not None else []
        if not isinstance(word, str) or not word:
            self.no("kernels are launched by the host", node)
        function = self.source.functions.get(word)
        if function is None:
            made = self.intrinsic(word, arguments, node)
            if made is None:
                self.no(f"{word}() is not known in a kernel", node)
            assert made is not None
            return made
        if "__device__" not in function.marks:
            self.no(f"{word}() is no __device__ function", node)
        if word in self.unit.busy or word == self.function.name:
            self.no(f"{word}() calls itself: recursion is not modelled", node)
        if len(arguments) != len(function.parameters):
            self.no(f"{word}() takes {len(function.parameters)} arguments, {len(arguments)} given",
                    node)
        values = [self.to(self.result(argument), kind, argument) for argument, (_, kind) in zip(
            arguments, function.parameters, strict=True)]
        kernel = self.unit.device(function)
        self.unit.space[f"_d_{word}"] = kernel
        self.line = line
        code = call(f"_d_{word}", *(part for value in values for part in parts_of(value)))
        if function.result == types.VOID:
            return Nothing(code)
        words, make = names_of(function.result, lambda: self.fresh(f"_{word}"))
        made = make()
        if len(words) == 1:
            held = make()
            return type(held)(code, held.type, held.bounds)  # type: ignore[union-attr, call-arg, arg-type]
        self.emit(ast.Assign([ast.Tuple([ast.Name(w, ast.Store()) for w in words], ast.Store())],
                             code))
        self.moving |= set(words)
        return made


def translate(source: Source, function: Function, shape: Shape, known: dict[str, int],
              shifted: frozenset[str]) -> tuple[Translated, list[str]]:
    """A kernel for executors, and the device variables that it takes after its arguments.

    Raises
    ------
    SourceError
        The kernel uses what is not understood here.
    """
    unit = Unit(source, shape)
    kernel = Translator(unit, function).kernel(known, shifted)
    return kernel, unit.implicit


