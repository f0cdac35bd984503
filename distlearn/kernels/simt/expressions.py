"""Expressions of a kernel as closures that give the value for all active threads."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.lowering import lowered
from distlearn.kernels.simt import calls
from distlearn.kernels.simt.frame import Frame, Later, load, operate
from distlearn.kernels.simt.numbers import (
    COMPARE,
    binary,
    compare,
    is_real,
    select,
    truth,
    with_constant,
)
from distlearn.kernels.simt.space import Mask

Expr = Callable[[Frame, Mask], Any]
Stmt = Callable[[Frame, Mask], Mask | None]


class Expressions:
    """The part of a compiled function that computes values; ``of_x`` compiles an ``ast.X``."""

    body: Stmt
    independent: bool  # see `compaction.independent`

    def __init__(self, kernel: Kernel, codes: dict[Kernel, Any],
                 trees: dict[Kernel, ast.FunctionDef]) -> None:
        self.kernel, self.codes, self.trees = kernel, codes, trees
        self.tree = lowered(kernel, trees.get(kernel))
        self.local = names.local_names(self.tree)
        self.shared_names = names.shared_names(self.tree)
        self.stored: set[str] = set()
        self.unused: ast.expr | None = None  # an expression that is a statement
        self.dynamic: set[int] = set()  # item sizes of dynamic shared arrays
        codes[kernel] = self

    def stores_to(self, node: ast.expr) -> None:
        """Note the arrays that an expression may name as written to."""
        self.stored |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    def value(self, node: ast.expr) -> Expr:
        """The closure of an expression."""
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
        if method is None:
            names.refuse(node, f"{ast.unparse(node)} is not part of the language of kernels")
        made: Expr = method(node)
        return made

    def of_constant(self, node: ast.Constant) -> Expr:
        """Compile ``constant``."""
        value = names.constant(node.value, node)
        return lambda frame, mask: value

    def of_name(self, node: ast.Name) -> Expr:
        """Compile ``name``."""
        if node.id in self.local:
            name, line = node.id, node.lineno

            def read(frame: Frame, mask: Mask) -> Any:
                if frame.bound.get(name) is mask:
                    value = frame.values[name]
                    if type(value) is not Later:
                        return value
                return frame.read(name, mask, line)
            return read
        value = names.constant(names.resolve(self.kernel, self.local, node), node)
        return lambda frame, mask: value

    def of_attribute(self, node: ast.Attribute) -> Expr:
        """Compile ``attribute``."""
        known, line = names.resolve(self.kernel, self.local, node), node.lineno
        if known is None:
            base, name = self.value(node.value), node.attr
            return lambda frame, mask: calls.attribute(base(frame, mask), name, line)
        path = names.path_of(known)
        if path:
            return lambda frame, mask: calls.special(frame, path, line)
        value = names.constant(known, node)
        return lambda frame, mask: value

    def of_tuple(self, node: ast.Tuple) -> Expr:
        """Compile ``tuple``."""
        items = [self.value(item) for item in node.elts]
        return lambda frame, mask: tuple(item(frame, mask) for item in items)

    def of_slice(self, node: ast.Slice) -> Expr:
        """Compile ``slice``."""
        parts = [self.value(p) if p is not None else None
                 for p in (node.lower, node.upper, node.step)]
        return lambda frame, mask: slice(*(p(frame, mask) if p else None for p in parts))

    def of_subscript(self, node: ast.Subscript) -> Expr:
        """Compile ``subscript``."""
        base, index, line = self.value(node.value), self.value(node.slice), node.lineno
        return lambda frame, mask: load(frame, line, base(frame, mask), index(frame, mask), mask)

    def of_binop(self, node: ast.BinOp) -> Expr:
        """Compile ``binop``."""
        kind, line = type(node.op).__name__, node.lineno
        left, right = self.value(node.left), self.value(node.right)
        quick = with_constant(kind, node.left, node.right)
        if quick is None:
            return lambda frame, mask: operate(frame, line, kind, left(frame, mask),
                                               right(frame, mask), mask)
        part, first = (left, True) if isinstance(node.right, ast.Constant) else (right, False)

        def run(frame: Frame, mask: Mask) -> Any:
            value = part(frame, mask)
            made = quick(value)
            if made is not None:
                return made
            pair = (value, right(frame, mask)) if first else (left(frame, mask), value)
            return operate(frame, line, kind, *pair, mask)
        return run

    def of_unaryop(self, node: ast.UnaryOp) -> Expr:
        """Compile ``unaryop``."""
        kind, operand, line = type(node.op).__name__, self.value(node.operand), node.lineno

        def run(frame: Frame, mask: Mask) -> Any:
            value = operand(frame, mask)
            if kind == "Not" or (kind == "Invert" and isinstance(value, bool | Mask)):
                return frame.space.opposite(truth(frame.space, value))
            if kind == "UAdd":
                return value
            if kind == "Invert":
                if is_real(value):
                    raise KernelError("unsupported", "operation ~ of floats", line=line)
                return binary(frame.space, line, "Sub", -1, value, mask)
            if is_real(value):
                return -value
            return binary(frame.space, line, "Sub", 0, value, mask)
        return run

    def of_compare(self, node: ast.Compare) -> Expr:
        """Compile ``compare``."""
        parts = [self.value(item) for item in (node.left, *node.comparators)]
        kinds, line = [type(op).__name__ for op in node.ops], node.lineno
        if len(kinds) == 1:
            return self._compare(kinds[0], line, node.comparators[0], *parts)

        def run(frame: Frame, mask: Mask) -> Any:
            left, active = parts[0](frame, mask), mask
            result: bool | Mask = True
            for kind, part in zip(kinds, parts[1:], strict=True):
                right = part(frame, active)
                test = compare(frame.space, line, kind, left, right)
                result = _and(result, test)
                narrowed = active if result is True else (
                    None if result is False else active.both(result))
                if narrowed is None:
                    return False
                left, active = right, narrowed
            return result
        return run

    def _compare(self, kind: str, line: int, node: ast.expr, left: Expr, right: Expr) -> Expr:
        number = node.value if isinstance(node, ast.Constant) else None
        if type(number) is not int or abs(number) >= 1 << 32 or kind not in COMPARE:
            return lambda frame, mask: compare(
                frame.space, line, kind, left(frame, mask), right(frame, mask))
        function = COMPARE[kind]

        def run(frame: Frame, mask: Mask) -> Any:
            value = left(frame, mask)
            if type(value) is np.ndarray:
                return frame.space.truth(function(value, number), False)
            return function(value, number) if type(value) is int else compare(
                frame.space, line, kind, value, right(frame, mask))
        return run

    def of_boolop(self, node: ast.BoolOp) -> Expr:
        """Compile ``boolop``."""
        parts = [self.value(item) for item in node.values]
        both, line = isinstance(node.op, ast.And), node.lineno

        def run(frame: Frame, mask: Mask) -> Any:
            space = frame.space
            value = parts[0](frame, mask)
            for part in parts[1:]:
                test = truth(space, value)
                undecided = _within(mask, test, both)
                if undecided is None:
                    return value
                new = part(frame, undecided)
                if isinstance(value, bool | Mask) and isinstance(new, bool | Mask):
                    value = _and(test, new) if both else space.either(test, new)
                else:
                    value = new if undecided is mask else select(
                        space, undecided, new, value, line)
            return value
        return run

    def of_ifexp(self, node: ast.IfExp) -> Expr:
        """Compile ``ifexp``."""
        test, body, other = map(self.value, (node.test, node.body, node.orelse))
        line = node.lineno

        def run(frame: Frame, mask: Mask) -> Any:
            condition = truth(frame.space, test(frame, mask))
            yes, no = _within(mask, condition, True), _within(mask, condition, False)
            if yes is None or no is None:
                return body(frame, mask) if no is None else other(frame, mask)
            return select(frame.space, yes, body(frame, yes), other(frame, no), line)
        return run

    def of_namedexpr(self, node: ast.NamedExpr) -> Expr:
        """Compile ``namedexpr``."""
        value, name, line = self.value(node.value), node.target.id, node.lineno

        def run(frame: Frame, mask: Mask) -> Any:
            result = value(frame, mask)
            frame.assign(name, result, mask, line)
            return result
        return run

    def of_call(self, node: ast.Call) -> Expr:
        """Compile ``call``."""
        callee = names.resolve(self.kernel, self.local, node.func)
        names.check_callee(node, callee)
        arguments = [self.value(a) for a in node.args]
        path = names.path_of(callee)
        names.check_arguments(node, path, callee)
        if path.startswith("atomic.") or path in names.STORES:
            self.stores_to(node.args[0])
        if path == "shared.array" and ast.unparse(node.args[0]) == "0":
            self.dynamic.add(names.item_size(self.kernel, self.local, node))
        if isinstance(callee, Kernel):
            code = self.codes.get(callee) or type(self)(callee, self.codes, self.trees)
            return self._device_call(code, arguments, node)
        if path in names.BITS:
            width, arrays = names.width_of(self.kernel, self.local, node.args[0])
            arguments += map(self.value, arrays)
            function = calls.bits(path, width)
        else:
            function = calls.find(
                callee, path, node, node is not self.unused,
                self.shared_names.get((node.lineno, node.col_offset), ""))
        line, site = node.lineno, (node.lineno, node.col_offset)

        def run(frame: Frame, mask: Mask) -> Any:
            return function(frame, line, site, [a(frame, mask) for a in arguments], mask)
        return run

    def _device_call(self, code: Expressions, arguments: list[Expr], node: ast.Call) -> Expr:
        site = (node.lineno, node.col_offset)

        def run(frame: Frame, mask: Mask) -> Any:
            values = [a(frame, mask) for a in arguments]
            inner = Frame(frame.machine, dict(zip(code.kernel.parameters, values, strict=True)),
                          (*frame.path, *site))
            code.body(inner, mask)
            return inner.result
        return run


def _within(mask: Mask, test: bool | Mask, wanted: bool) -> Mask | None:
    if not isinstance(test, Mask):
        return mask if test == wanted else None
    return mask.both(test) if wanted else mask.without(test)


def _and(a: bool | Mask, b: bool | Mask) -> bool | Mask:
    if a is True or b is False:
        return b
    if b is True or a is False:
        return a
    assert isinstance(a, Mask) and isinstance(b, Mask)
    return a.both(b) or False
