"""Values of a kernel as Python syntax: what C's types make of executors' 64-bit integers.

Executors compute integers in 64 bits. The results of ``+ - * << & | ^ ~`` are right in their low
bits, so a value is brought into its C type's range only where that matters (a comparison, a
division, a shift to the right, a conversion, an assignment), and only if its bounds, tracked here,
do not show that it is there already. A signed value outside its range is an overflow, which C
leaves undefined: ``int32()`` names it. An unsigned one wraps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.arithmetic import Known
from distlearn.kernels.cuda_c.types import BOOL, Number, Pointer, Struct, Void

WIDE = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Value:
    """A number: ``bounds`` hold what ``code`` may be before it is brought into its type's range.

    ``pure``: ``code`` may be written twice (it neither loads nor calls).
    """

    code: ast.expr
    type: Number
    bounds: tuple[int, int] = WIDE
    pure: bool = False


@dataclass(frozen=True)
class Address:
    """A pointer: ``at`` elements into the array called ``base``; a NULL has no base."""

    base: str | None
    at: Value
    type: Pointer
    extent: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Record:
    """A structure by its fields."""

    type: Struct
    fields: dict[str, Result]


@dataclass(frozen=True)
class Nothing:
    """The result of a ``void`` function: the call itself."""

    code: ast.expr
    type: Void = types.VOID


Result = Value | Address | Record | Nothing


def codes(made: Result) -> Iterator[ast.expr]:
    """All syntax in a result."""
    if isinstance(made, Value | Nothing):
        yield made.code
    elif isinstance(made, Address):
        yield made.at.code
    else:
        for inner in made.fields.values():
            yield from codes(inner)


# ---- syntax

def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def number(value: int) -> ast.expr:
    """An integer literal."""
    return ast.Constant(value)


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """A call; ``function`` may have dots."""
    parts = function.split(".")
    target: ast.expr = name(parts[0])
    for part in parts[1:]:
        target = ast.Attribute(target, part, ast.Load())
    return ast.Call(target, list(arguments), [])


OPERATORS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
}
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
}


def binop(left: ast.expr, op: str, right: ast.expr) -> ast.BinOp:
    """``left op right``."""
    return ast.BinOp(left, OPERATORS[op](), right)


def compare(left: ast.expr, op: str, right: ast.expr) -> ast.Compare:
    """``left op right``, a truth value."""
    return ast.Compare(left, [COMPARISONS[op]()], [right])


def within(code: ast.expr, low: int, high: int) -> ast.expr:
    """``low <= code <= high``."""
    return ast.Compare(number(low), [ast.LtE(), ast.LtE()], [code, number(high)])


def stamp(code: ast.AST, line: int) -> None:
    """Give a line to the parts that have none."""
    if isinstance(code, ast.expr | ast.stmt):
        if hasattr(code, "lineno"):
            return
        code.lineno = code.end_lineno = line
        code.col_offset = code.end_col_offset = 0
    for child in ast.iter_child_nodes(code):
        stamp(child, line)


# ---- bounds

def inside(bounds: tuple[int, int], kind: Number) -> bool:
    """Whether all of the bounds are in the type's range."""
    low, high = kind.bounds
    if kind.size == 8:  # executors' own width: nothing to check
        return True
    return low <= bounds[0] and bounds[1] <= high


def of_known(known: Known) -> Value:
    """A literal."""
    if known.type.kind == "f":
        code: ast.expr = ast.Constant(float(known.value))
        if known.type != types.DOUBLE:
            code = call(f"float{8 * known.type.size}", code)
        return Value(code, known.type, WIDE, True)
    return Value(number(int(known.value)), known.type, (int(known.value),) * 2, True)


def literal_of(value: Value) -> float | None:
    """The number in ``0.5`` or ``float32(0.5)``; None for what is no literal."""
    code = value.code
    if isinstance(code, ast.Call) and isinstance(code.func, ast.Name) and code.func.id.startswith(
            "float") and len(code.args) == 1:
        code = code.args[0]
    found = code.value if isinstance(code, ast.Constant) else None
    return found if isinstance(found, float) else None


def known(value: Value) -> int | None:
    """The integer that a value always is."""
    return value.bounds[0] if value.bounds[0] == value.bounds[1] else None


# ---- conversions

class Conversions:
    """Makes the syntax of conversions; ``helper`` names a device function for unpure ones."""

    def helper(self, what: str) -> str:
        """The name of a device function with the meaning of a template below."""
        raise NotImplementedError

    def apply(self, template: str, *values: Value) -> ast.expr:
        """An expression in ``a`` and ``b``: written out if they may be repeated, else called."""
        if all(value.pure for value in values):
            filled = _Fill(dict(zip("ab", values, strict=False))).visit(
                ast.parse(template, mode="eval").body)
            assert isinstance(filled, ast.expr)
            return filled
        return call(self.helper(template), *(value.code for value in values))

    def settled(self, value: Value) -> Value:
        """The value within its own type's range."""
        return value if value.type.kind == "f" or inside(value.bounds, value.type) \
            else self._into(value, value.type, value.type.kind == "i")

    def _into(self, value: Value, kind: Number, strict: bool) -> Value:
        """Bring integers into range: an error for those outside, or modulo a power of two."""
        low, high = kind.bounds
        if strict:
            return replace(value, code=call(f"int{8 * kind.size}", value.code), type=kind,
                           bounds=(low, high), pure=False)
        mask = high - low
        wrap = f"a & {mask}" if low == 0 else f"((a - {low}) & {mask}) + {low}"
        code = self.apply(f"a if {low} <= a <= {high} else {wrap}", value)
        return replace(value, code=code, type=kind, bounds=(low, high))

    def convert(self, value: Value, kind: Number) -> Value:
        """A value converted to another arithmetic type."""
        mine = value.type
        if mine == kind:
            return self.settled(value)
        if kind == BOOL:
            return Value(compare(value.code, "!=", number(0)) if mine.is_integer else
                         compare(value.code, "!=", call(f"float{8 * mine.size}", number(0))),
                         BOOL, (0, 1), value.pure)
        if kind.kind == "f":
            if mine.is_integer:
                value = self.settled(value)
                literal = known(value)
                if literal is not None:
                    return of_known(Known(kind, float(literal)))
            real = literal_of(value)
            if real is not None:
                return of_known(Known(kind, kind.dtype.type(mine.dtype.type(real))))
            return Value(call(f"float{8 * kind.size}", value.code), kind, WIDE, False)
        if not mine.is_integer:
            word = {("u", 8): "int64", ("i", 8): "int64"}.get(
                (kind.kind, kind.size), f"{'u' if kind.kind == 'u' else ''}int{8 * kind.size}")
            return Value(call(word, value.code), kind, kind.bounds, False)
        if inside(value.bounds, kind) and kind.size < 8:
            return replace(value, type=kind)
        if kind.size > mine.size:
            value = self.settled(value)
            if kind.kind == "u" and value.bounds[0] < 0 and kind.size < 8:
                return self._into(value, kind, False)
            return replace(value, type=kind)
        if kind.size == 8:
            return replace(value, type=kind, bounds=_meet(value.bounds, kind))
        if mine.kind == "i" and mine.size > kind.size:
            value = self.settled(value)
        strict = mine.kind == kind.kind == "i" and mine.size == kind.size
        return self._into(value, kind, strict)

    def arithmetic(self, op: str, a: Value, b: Value) -> Value:
        """``a op b`` after the usual arithmetic conversions; not for comparisons."""
        if op in ("<<", ">>"):
            kind = types.promoted(a.type)
            a, b = self.meet(a, kind), self.settled(b)
            a = self.settled(a)
            made = self._integer(op, kind, a, b)
            if kind.kind == "u" or inside(made.bounds, kind):
                return made
            return self._into(made, kind, False)  # C++20: a sign's bits are shifted out
        kind = types.common(a.type, b.type)
        if kind.kind == "f":
            a, b = self.convert(a, kind), self.convert(b, kind)
            return Value(binop(a.code, op, b.code), kind, WIDE, a.pure and b.pure)
        a, b = self.meet(a, kind), self.meet(b, kind)
        if op in ("/", "%"):
            return self._divide(op, kind, self.convert(a, kind), self.convert(b, kind))
        return self._integer(op, kind, a, b)

    def meet(self, value: Value, kind: Number) -> Value:
        """An operand of ``+ - *`` and bit operations: only its low bits must be right."""
        if value.type == kind or value.type.size >= kind.size:
            return replace(value, type=kind)
        return self.convert(value, kind)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """A comparison, an ``int`` of 0 or 1."""
        kind = types.common(a.type, b.type)
        a, b = self.convert(a, kind), self.convert(b, kind)
        return Value(compare(a.code, op, b.code), types.INT, (0, 1), a.pure and b.pure)

    def _integer(self, op: str, kind: Number, a: Value, b: Value) -> Value:
        bounds = combined(op, a.bounds, b.bounds)
        if bounds[0] < WIDE[0] or bounds[1] > WIDE[1]:
            a, b = self.settled(a), self.settled(b)
            low, high = combined(op, a.bounds, b.bounds)
            bounds = (low, high) if WIDE[0] <= low and high <= WIDE[1] else WIDE
        x, y = known(a), known(b)
        if op == ">>" and kind == types.ULONG and y:  # executors shift signs in
            return Value(binop(binop(a.code, ">>", b.code), "&", number((1 << 64 - y) - 1)),
                         kind, (0, (1 << 64 - y) - 1), a.pure)
        pure = a.pure and b.pure
        if x is not None and y is not None and bounds[0] == bounds[1]:
            return Value(number(bounds[0]), kind, bounds, True)
        if op in ("+", "-") and y == 0:
            return replace(a, type=kind)
        if (op == "+" and x == 0) or (op == "*" and x == 1):
            return replace(b, type=kind)
        if op == "*" and y == 1:
            return replace(a, type=kind)
        return Value(binop(a.code, op, b.code), kind, bounds, pure)

    def _divide(self, op: str, kind: Number, a: Value, b: Value) -> Value:
        (low, high), (least, most) = a.bounds, b.bounds
        if known(a) is not None and known(b):
            x, y = low, least
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            result = quotient if op == "/" else x - quotient * y
            return Value(number(result), kind, (result, result), True)
        far = max(abs(low), abs(high))
        if op == "/":
            bounds = (low // max(most, 1), high // max(least, 1)) if low >= 0 <= least else (
                -far, far)
        else:
            size = max(abs(least), abs(most)) - 1
            bounds = (0 if low >= 0 else -min(far, size), min(far, size))
        if least <= 0 <= most and bounds[0] == bounds[1]:
            bounds = bounds[0], bounds[1] + 1  # no literal: a division by zero must show
        python = "//" if op == "/" else "%"
        if (low >= 0 and least >= 0) or kind.kind == "u":
            return Value(binop(a.code, python, b.code), kind, bounds, a.pure and b.pure)
        if least >= 0:  # Python rounds down, C towards zero
            back = f"-(-a {python} b)"
            code = self.apply(f"a {python} b if a >= 0 else {back}", a, b)
        elif op == "/":
            code = self.apply("abs(a) // abs(b) if (a >= 0) == (b >= 0) else "
                              "-(abs(a) // abs(b))", a, b)
        else:
            code = self.apply("a % abs(b) if a >= 0 else -(-a % abs(b))", a, b)
        return Value(code, kind, bounds, a.pure and b.pure)


class _Fill(ast.NodeTransformer):
    """Puts values' syntax in the place of ``a`` and ``b``."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name) and node.id in self.values:
            return self.values[node.id].code
        for what in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, what):
                delattr(node, what)
        return self.generic_visit(node)


def _meet(bounds: tuple[int, int], kind: Number) -> tuple[int, int]:
    low, high = kind.bounds
    return bounds if low <= bounds[0] and bounds[1] <= high else (low, high)


def combined(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Bounds of ``a op b`` from the bounds of its parts."""
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if op == "<<":
        if 0 <= b[0] and b[1] < 64:
            corners = [x << y for x in a for y in b]
            return min(corners), max(corners)
        return WIDE
    if op == ">>":
        if 0 <= b[0]:
            corners = [x >> min(y, 64) for x in a for y in b]
            return min(corners), max(corners)
        return WIDE
    if op == "&" and (a[0] >= 0 or b[0] >= 0):
        return 0, min(x[1] for x in (a, b) if x[0] >= 0)
    far = max(abs(a[0]), abs(a[1]) + 1, abs(b[0]), abs(b[1]) + 1)
    power = (1 << (far - 1).bit_length())
    return (0 if a[0] >= 0 <= b[0] else -power), power - 1
