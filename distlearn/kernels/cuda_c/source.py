"""A CUDA C source, parsed: its types, constants, functions and variables."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_parser

from distlearn.kernels.cuda_c import arithmetic, rules, types
from distlearn.kernels.cuda_c.arithmetic import Known, UndefinedError
from distlearn.kernels.cuda_c.defaults import without_defaults
from distlearn.kernels.cuda_c.errors import SourceError, refuse
from distlearn.kernels.cuda_c.preprocess import Preprocessor, Token
from distlearn.kernels.cuda_c.spelling import MARKS, Speller, render
from distlearn.kernels.cuda_c.types import Array, CType, Number, Pointer, Struct

KEYWORDS = frozenset([
    "return", "else", "do", "if", "for", "while", "switch", "case", "default", "const", "struct",
    "typedef", "enum", "extern", "static", "sizeof", "break", "continue", "restrict", "_Alignas",
])
PRELUDE = "<types>"  # where the parser meets the names of known types


@dataclass(frozen=True)
class Function:
    """A function: ``marks`` are "__global__" and its like."""

    name: str
    marks: frozenset[str]
    result: CType
    parameters: tuple[tuple[str, CType], ...]
    body: Any
    line: int
    last_line: int


@dataclass(frozen=True)
class Variable:
    """A variable outside of functions."""

    name: str
    marks: frozenset[str]
    type: CType
    initial: Any
    line: int


class Source:
    """What a text declares.

    Raises
    ------
    SourceError
        The text is malformed, or uses what is not understood here.
    """

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        self.lines = text.splitlines()
        self.types: dict[str, CType] = dict(types.NAMED)
        self.structs: dict[str, Struct] = {}
        self.constants: dict[str, Known] = {}
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        try:
            tokens = Preprocessor(filename, self._condition).run(text)
            plain = Speller(filename, without_defaults(tokens)).run()
            for node in self._parse(self._prelude(plain) + render(plain), plain).ext:
                self._declare(node)
        except SourceError as error:
            if error.text is None and 0 < (error.lineno or 0) <= len(self.lines):
                error.text = self.lines[(error.lineno or 0) - 1]
            raise

    # ---- parsing

    def _prelude(self, tokens: list[Token]) -> str:
        """Declarations of the type names that the CUDA and C headers would bring."""
        used = {t.text for t in tokens}
        if "Matrix" in used and not any(
                a.text in ("}", "struct") and b.text == "Matrix"
                for a, b in pairwise(tokens)):
            self.types["Matrix"] = types.MATRIX  # the programming guide's, which listings leave out
        names = sorted(used & set(self.types))
        lines = [f"typedef int {name};" for name in names]
        return "".join(lines) + f'\n#line 1 "{self.filename}"\n'

    def _parse(self, text: str, tokens: list[Token]) -> Any:
        parser = c_parser.CParser()
        try:
            return parser.parse(text, PRELUDE)
        except c_parser.ParseError as error:
            match = re.match(r"(?P<file>.*?):(?P<line>\d+)(:\d+)?: (?P<what>.*)", str(error),
                             re.DOTALL)
            if match is None:  # pycparser names no line: it is the one that it has come to
                reason = str(error).removeprefix(f"{self.filename}: ")
                line = getattr(parser.clex, "_lineno", len(self.lines))
                if reason == "Invalid declaration":
                    reason += next(filter(None, (self._hint(a, b) for a, b in pairwise(tokens)
                                                 if a.line == b.line == line)), "")
                raise SourceError(f"malformed C: {reason}", self.filename,
                                  min(max(1, line), max(1, len(self.lines)))) from None
            what = match["what"]
            if what.startswith("before: "):
                what = f"this is no C before {what.removeprefix('before: ')!r}"
            line = int(match["line"])
            for before, token in pairwise(tokens):
                if token.line == line and repr(token.text) in what:
                    what += self._hint(before, token)
                    break
            raise SourceError(what, self.filename, line) from None

    def _hint(self, before: Token, token: Token) -> str:
        """What may be wrong between two tokens."""
        if before.line < token.line and before.text not in (";", "{", "}", ",", "("):
            return f"; is a ; missing after {before.text!r}?"
        if before.text.isidentifier() and not self._known_type(before.text) and (
                token.text.isidentifier() or token.text == "*"):
            return f"; is {before.text!r} a type? it is declared nowhere"
        return ""

    def _line(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _known_type(self, word: str) -> bool:
        known = {*self.types, *(part for words in types.WORDS for part in words.split())}
        return word in known or word in KEYWORDS or bool(
            re.search(rf"}}\s*{word}\s*;|\bstruct\s+{word}\b", self.text))

    def _condition(self, text: str, line: int) -> int:
        """The integer of an ``#if``."""
        try:
            node = c_parser.CParser().parse(f"int x = ({text});", self.filename).ext[0].init
            found = self.fold(node)
        except (c_parser.ParseError, UndefinedError, SourceError):
            found = None
        if found is None:
            raise SourceError(f"#if {text}: no constant expression", self.filename, line)
        return int(found.value)

    # ---- declarations

    def _check(self, function: Any) -> None:
        """Refuse what C forbids, and literals that are none, whether they run or not."""
        nodes = walk(function.body)
        for node in nodes:
            if isinstance(node, c_ast.Constant):
                self.fold(node)
        if isinstance(function.decl.type, c_ast.FuncDecl):
            rules.check(function, nodes, self.filename)

    def _declare(self, node: Any) -> None:
        if isinstance(node, c_ast.Typedef):
            if node.coord.file != PRELUDE:
                self.types[node.name] = self.type_of(node.type, node.name)
        elif isinstance(node, c_ast.FuncDef):
            self._check(node)
            function = self._function(node)
            self.functions[function.name] = function
        elif isinstance(node, c_ast.Decl):
            if isinstance(node.type, c_ast.Struct | c_ast.Enum):
                self.type_of(node.type)
            elif not isinstance(node.type, c_ast.FuncDecl):
                self._variable(node)
        elif not isinstance(node, c_ast.Pragma | c_ast.EmptyStatement):
            refuse(f"{type(node).__name__} has no place outside of functions", node.coord,
                   self.filename)

    def _function(self, node: Any) -> Function:
        decl = node.decl
        if not isinstance(decl.type, c_ast.FuncDecl):
            refuse(f"{decl.name} has a body and no parameters (...)", decl.coord, self.filename)
        parameters: list[tuple[str, CType]] = []
        for parameter in (decl.type.args.params if decl.type.args else []):
            if isinstance(parameter, c_ast.EllipsisParam):
                refuse("a function of one's own takes a fixed number of arguments",
                       decl.coord, self.filename)
            if isinstance(parameter, c_ast.ID):
                refuse(f"the parameter {parameter.name} has no type", parameter.coord,
                       self.filename)
            kind = self.type_of(parameter.type)
            if kind == types.VOID and parameter.name is None:
                continue
            if isinstance(kind, Array):
                kind = Pointer(kind.item)
            parameters.append((parameter.name or f"_{len(parameters)}", kind))
        marks = self.marks(decl)
        result = self.type_of(decl.type.type)
        self._lengths(node.body, [name for name, _ in parameters])
        if "__global__" in marks and result != types.VOID:
            refuse(f"the kernel {decl.name} must return void", decl.coord, self.filename)
        last = max((getattr(n.coord, "line", 0) for n in walk(node) if n.coord),
                   default=node.coord.line)
        return Function(decl.name, marks, result, tuple(parameters), node.body,
                        node.coord.line, self._closing_line(last))

    def _lengths(self, body: Any, parameters: list[str]) -> None:
        """Put the numbers of a function's own constants into the lengths of its arrays."""
        nodes, outside = walk(body), self.constants  # an inner block comes after its outer ones
        names = Counter([*parameters, *(n.name for n in nodes if isinstance(n, c_ast.Decl))])
        self.constants = {word: known for word, known in outside.items() if word not in names}
        for node in nodes:
            if isinstance(node, c_ast.Decl) and "const" in node.quals and names[node.name] == 1:
                found = self.fold(node.init) if isinstance(node.type, c_ast.TypeDecl) else None
                kind = self.type_of(node.type) if found is not None else None
                if found is not None and isinstance(kind, Number):
                    self.constants[node.name] = arithmetic.convert(found, kind)
            elif isinstance(node, c_ast.ArrayDecl) and node.dim is not None:
                found = self.fold(node.dim)
                if found is not None and found.type.is_integer and found.value > 0:
                    node.dim = c_ast.Constant("int", str(found.value), node.dim.coord)
        self.constants = outside

    def _closing_line(self, line: int) -> int:
        """The line of the brace that ends a function whose last node is on ``line``."""
        for number in range(line, len(self.lines) + 1):
            if "}" in self._line(number):
                end = number
                while end < len(self.lines) and re.fullmatch(r"[\s}]*}[\s}]*", self._line(end + 1)):
                    end += 1
                return end
        return line

    def _variable(self, node: Any) -> None:
        kind, marks = self.type_of(node.type), self.marks(node)
        if "const" in node.quals and isinstance(kind, Number) and node.init is not None \
                and not marks & {"__device__", "__constant__"}:
            found = self.fold(node.init)
            if found is not None:
                self.constants[node.name] = arithmetic.convert(found, kind)
                return
        if isinstance(kind, Array) and kind.length is None and isinstance(
                node.init, c_ast.InitList):
            kind = Array(kind.item, len(node.init.exprs))
        self.variables[node.name] = Variable(node.name, marks, kind, node.init, node.coord.line)

    def marks(self, decl: Any) -> frozenset[str]:
        """``__global__`` and its like, as they stand before a declaration."""
        numbers = {align.alignment.value for align in decl.align or ()}
        return frozenset(mark for mark, number in MARKS.items() if str(number) in numbers)

    # ---- types and constants

    def type_of(self, node: Any, name: str = "") -> CType:
        """The type that a declarator stands for."""
        if isinstance(node, c_ast.TypeDecl | c_ast.Typename):
            return self.type_of(node.type, name)
        if isinstance(node, c_ast.PtrDecl):
            if isinstance(node.type, c_ast.FuncDecl):
                refuse("pointers to functions are not modelled", node.coord, self.filename)
            return Pointer(self.type_of(node.type))
        if isinstance(node, c_ast.ArrayDecl):
            length = None
            if node.dim is not None:
                found = self.fold(node.dim)
                if found is None or not found.type.is_integer or found.value <= 0:
                    refuse("the length of an array must be a positive constant", node.coord,
                           self.filename)
                length = int(found.value)
            return Array(self.type_of(node.type), length)
        if isinstance(node, c_ast.IdentifierType):
            words = " ".join(sorted(node.names))
            if words in self.types:
                return self.types[words]
            if words in types.WORDS:
                return types.WORDS[words]
            refuse(f"the type {' '.join(node.names)!r} is not known", node.coord, self.filename)
        if isinstance(node, c_ast.Struct):
            return self._struct(node, name)
        if isinstance(node, c_ast.Enum):
            value = 0
            for item in (node.values.enumerators if node.values else ()):
                found = self.fold(item.value) if item.value is not None else None
                value = int(found.value) if found is not None else value
                self.constants[item.name] = Known(types.INT, value)
                value += 1
            return types.INT
        return refuse(f"{type(node).__name__} is not understood as a type",
                      getattr(node, "coord", None), self.filename)

    def _struct(self, node: Any, name: str) -> Struct:
        name = node.name or name or f"struct of line {node.coord.line}"
        if node.decls is None:
            return self.structs.get(name) or self.structs.setdefault(name, Struct(name, ()))
        made = Struct(name, tuple((d.name, self.type_of(d.type)) for d in node.decls))
        known = self.structs.get(name)
        if known is not None and not known.fields:  # declared before: the same object, filled
            object.__setattr__(known, "fields", made.fields)
            return known
        self.structs[name] = made
        return made

    def fold(self, node: Any) -> Known | None:
        """The value of a constant expression; None if it is none.

        Raises
        ------
        SourceError
            A constant whose value C leaves undefined.
        """
        try:
            return self._fold(node)
        except UndefinedError as error:
            return refuse(str(error), node.coord, self.filename)

    def _fold(self, node: Any) -> Known | None:
        if isinstance(node, c_ast.Constant):
            return None if node.type == "string" else arithmetic.constant(node.type, node.value)
        if isinstance(node, c_ast.ID):
            return self.constants.get(node.name)
        if isinstance(node, c_ast.UnaryOp) and node.op == "sizeof":
            if isinstance(node.expr, c_ast.Typename):
                return Known(types.ULONG, self.type_of(node.expr).size)
            return None
        if isinstance(node, c_ast.UnaryOp) and node.op in ("+", "-", "~", "!"):
            inner = self._fold(node.expr)
            return None if inner is None else arithmetic.unary(node.op, inner)
        if isinstance(node, c_ast.BinaryOp):
            a, b = self._fold(node.left), self._fold(node.right)
            if a is None or b is None:
                return None
            if node.op in ("&&", "||"):
                truth = (a.value and b.value) if node.op == "&&" else (a.value or b.value)
                return Known(types.INT, int(bool(truth)))
            return arithmetic.binary(node.op, a, b)
        if isinstance(node, c_ast.TernaryOp):
            test = self._fold(node.cond)
            return None if test is None else self._fold(
                node.iftrue if test.value else node.iffalse)
        if isinstance(node, c_ast.Cast):
            inner, kind = self._fold(node.expr), self.type_of(node.to_type)
            if inner is None or not isinstance(kind, Number):
                return None
            return arithmetic.convert(inner, kind)
        return None


def walk(node: Any) -> list[Any]:
    """The node and all below it."""
    made = [node]
    for at in made:
        made += [child for _, child in at.children()]
    return made


def read(source: str | Path) -> Source:
    """A source from a text, or from a file if given a path (or a one-line name of one).

    Raises
    ------
    SourceError
    FileNotFoundError
    """
    if isinstance(source, Path) or ("\n" not in source and source.endswith((".cu", ".c", ".cuh"))):
        path = Path(source)
        return Source(path.read_text(encoding="utf-8"), path.name)
    return Source(source, "<cuda>")
