"""Turn a kernel into a generator function that one simulated thread runs.

``C[r, c] = acc + A[r, k]`` becomes ``_t.store(9, C, (r, c), _t.op(3, "Add", acc, _t.load(8, A,
(r, k))))``: the numbers are *sites*, counted in the order of evaluation. With the iteration numbers
of the enclosing loops a site makes the key of a dynamic instruction; keys sort in the order in
which a warp in lockstep would come to them. What waits for others, as ``cuda.syncthreads()`` and
atomics do, becomes a ``yield``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from distlearn.kernels import names, spinning
from distlearn.kernels.intrinsics import VECTORS, WIDTHS
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.lowering import lowered


def rewrite(kernel: Kernel, tree: ast.FunctionDef | None = None, steps: bool = False
            ) -> tuple[Callable[..., Any], list[int]]:
    """The generator function of a kernel's tree, or of one in its place; each site's line.

    With ``steps`` it also yields ``("step", line)`` before every statement, and before
    each test of a ``while``, for the debugger.
    """
    writer = _Rewriter(kernel, steps, tree)
    body = writer.body(writer.tree.body)
    never = ast.parse("if False:\n    yield").body
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("_t"), *(
        ast.arg(name) for name in kernel.parameters)], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef(kernel.name, arguments, body + never, [])
    module = ast.fix_missing_locations(ast.Module([function], []))
    space = dict(writer.constants)
    exec(compile(module, f"<oracle of {kernel.name}>", "exec"), space)
    return space[kernel.name], writer.lines


class _Rewriter:
    def __init__(self, kernel: Kernel, steps: bool, tree: ast.FunctionDef | None) -> None:
        self.kernel, self.steps = kernel, steps
        self.tree = lowered(kernel, tree)
        self.local = names.local_names(self.tree)
        self.shared_names = names.shared_names(self.tree)
        self.lines: list[int] = []
        self.constants: dict[str, Any] = {}

    def site(self, node: ast.AST) -> ast.Constant:
        self.lines.append(getattr(node, "lineno", 0))
        return ast.Constant(len(self.lines) - 1)

    def const(self, value: Any) -> ast.Name:
        name = f"_c{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    # ---- statements

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in statements:
            if not isinstance(node, ast.While):
                made += self.step(node)
            method = getattr(self, "do_" + type(node).__name__.lower(), None)
            if method is None:
                names.refuse_statement(node)
            result: list[ast.stmt] = method(node)
            for statement in result:  # an error's line is that where the statement begins
                made.append(ast.copy_location(statement, node))
                statement.end_lineno = node.lineno
        return made or [ast.Pass()]

    def step(self, node: ast.stmt) -> list[ast.stmt]:
        step = ast.Yield(_tuple(ast.Constant("step"), ast.Constant(node.lineno)))
        return [ast.Expr(step)] if self.steps else []

    def do_assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.value(node.value)
        if len(node.targets) == 1:
            return self.assign(node.targets[0], value)
        hold = self.fresh()
        made: list[ast.stmt] = [ast.Assign([hold[0]], value)]
        for target in node.targets:
            made += self.assign(target, hold[1])
        return made

    def do_annassign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return self.assign(node.target, self.value(node.value)) if node.value else []

    def assign(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return [ast.Assign([ast.Name(target.id, ast.Store())], value)]
        if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            return [ast.Assign([target], _call("parts", ast.Constant(target.lineno), value,
                                               ast.Constant(len(target.elts))))]
        if isinstance(target, ast.Subscript):
            base, index = self.value(target.value), self.value(target.slice)
            hold = self.fresh()  # the value first: its loads come before the store
            return [ast.Assign([hold[0]], value),
                    ast.Expr(_call("store", self.site(target), base, index, hold[1]))]
        return names.refuse(target, f"cannot assign to {ast.unparse(target)}")

    def do_augassign(self, node: ast.AugAssign) -> list[ast.stmt]:
        kind, line = ast.Constant(type(node.op).__name__), ast.Constant(node.lineno)
        if isinstance(node.target, ast.Name):
            old = ast.Name(node.target.id, ast.Load())
            new = _call("op", line, kind, old, self.value(node.value))
            return [ast.Assign([ast.Name(node.target.id, ast.Store())], new)]
        if not isinstance(node.target, ast.Subscript):
            names.refuse(node, f"cannot assign to {ast.unparse(node.target)}")
        index, held = self.fresh(), self.fresh()
        base = self.value(node.target.value)
        first: ast.stmt = ast.Assign([index[0]], self.value(node.target.slice))
        load = _call("load", self.site(node), base, index[1])
        new = _call("op", line, kind, load, self.value(node.value))
        return [first, ast.Assign([held[0]], new),
                ast.Expr(_call("store", self.site(node), base, index[1], held[1]))]

    def do_if(self, node: ast.If) -> list[ast.stmt]:
        value = self.value(node.test)
        test = _call("branch", self.site(node.test), value)
        return [ast.If(test, self.body(node.body), self.body(node.orelse) if node.orelse else [])]

    def do_while(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            names.refuse(node, "while ... else is not part of the language of kernels")
        depth = self.fresh()
        enter = ast.Assign([depth[0]], _call("enter", self.site(node)))
        decisive = sorted(spinning.decisive(node) & self.local)
        here = ast.Call(ast.Name("locals", ast.Load()), [], [])
        tick = ast.Expr(_call("again", here, *map(ast.Constant, decisive)))
        value = self.value(node.test)
        test = _call("branch", self.site(node.test), value)
        stop = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
        loop = ast.While(ast.Constant(True), [
            tick, *self.step(node), stop, *self.body(node.body)], [])
        return [enter, loop, ast.Expr(_call("leave", depth[1]))]

    def do_for(self, node: ast.For) -> list[ast.stmt]:
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        depth, numbers = self.fresh(), [self.value(a) for a in node.iter.args]
        enter = ast.Assign([depth[0]], _call("enter", self.site(node)))
        loop = ast.For(ast.Name(node.target.id, ast.Store()), _call("range", *numbers),
                       [ast.Expr(_call("tick")), *self.body(node.body)], [])
        return [enter, loop, ast.Expr(_call("leave", depth[1]))]

    def do_expr(self, node: ast.Expr) -> list[ast.stmt]:
        if isinstance(node.value, ast.Constant):
            return []  # a docstring
        return [ast.Expr(self.value(node.value))]

    def do_return(self, node: ast.Return) -> list[ast.stmt]:
        return [ast.Return(self.value(node.value) if node.value else None)]

    def do_pass(self, node: ast.Pass) -> list[ast.stmt]:
        return [node]

    do_break = do_continue = do_pass

    def fresh(self) -> tuple[ast.Name, ast.Name]:
        name = f"_h{len(self.constants)}"
        self.constants[name] = None
        return ast.Name(name, ast.Store()), ast.Name(name, ast.Load())

    # ---- expressions

    def value(self, node: ast.expr) -> ast.expr:
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
        if method is None:
            names.refuse(node, f"{ast.unparse(node)} is not part of the language of kernels")
        result: ast.expr = method(node)
        return result

    def of_constant(self, node: ast.Constant) -> ast.expr:
        return self.const(names.constant(node.value, node))

    def of_name(self, node: ast.Name) -> ast.expr:
        if node.id in self.local:
            return ast.copy_location(ast.Name(node.id, ast.Load()), node)
        return self.const(names.constant(names.resolve(self.kernel, self.local, node), node))

    def of_attribute(self, node: ast.Attribute) -> ast.expr:
        known = names.resolve(self.kernel, self.local, node)
        if known is None:
            return _call("attribute", ast.Constant(node.lineno), self.value(node.value),
                         ast.Constant(node.attr))
        path = names.path_of(known)
        if path:
            return _call("special", ast.Constant(node.lineno), ast.Constant(path))
        return self.const(names.constant(known, node))

    def of_tuple(self, node: ast.Tuple) -> ast.expr:
        return _tuple(*(self.value(item) for item in node.elts))

    def of_slice(self, node: ast.Slice) -> ast.expr:
        return _call("slice", *(self.value(part) if part else ast.Constant(None)
                                for part in (node.lower, node.upper, node.step)))

    def of_subscript(self, node: ast.Subscript) -> ast.expr:
        base, index = self.value(node.value), self.value(node.slice)
        return _call("load", self.site(node), base, index)

    def of_binop(self, node: ast.BinOp) -> ast.expr:
        return _call("op", ast.Constant(node.lineno), ast.Constant(type(node.op).__name__),
                     self.value(node.left), self.value(node.right))

    def of_unaryop(self, node: ast.UnaryOp) -> ast.expr:
        return _call("unary", ast.Constant(node.lineno), ast.Constant(type(node.op).__name__),
                     self.value(node.operand))

    def of_namedexpr(self, node: ast.NamedExpr) -> ast.expr:
        return ast.NamedExpr(node.target, self.value(node.value))

    def of_compare(self, node: ast.Compare) -> ast.expr:
        return ast.Compare(self.value(node.left), node.ops,
                           [self.value(item) for item in node.comparators])

    def of_boolop(self, node: ast.BoolOp) -> ast.expr:
        return ast.BoolOp(node.op, [self.value(item) for item in node.values])

    def of_ifexp(self, node: ast.IfExp) -> ast.expr:
        test, body = self.value(node.test), self.value(node.body)
        return ast.IfExp(test, body, self.value(node.orelse))

    def of_call(self, node: ast.Call) -> ast.expr:
        callee = names.resolve(self.kernel, self.local, node.func)
        names.check_callee(node, callee)
        line = ast.Constant(node.lineno)
        arguments = [self.value(a) for a in node.args]
        path = names.path_of(callee)
        names.check_arguments(node, path, callee)
        if path in ("shared.array", "local.array"):
            declared = self.shared_names.get((node.lineno, node.col_offset), "")
            first = [ast.Constant(declared)] if path == "shared.array" else []
            return _call(path.split(".")[0], self.site(node), *first, *arguments)
        if path == "syncwarp" or path in names.MEETINGS:
            what = [ast.Constant(path), self.site(node), *arguments]
            return ast.Yield(_call("meet", *what))
        if path.startswith("intrinsics.wmma."):
            name = path.removeprefix("intrinsics.")
            return ast.Yield(_call("meet", ast.Constant(name), self.site(node), *arguments))
        if path.startswith("intrinsics."):
            name = path.removeprefix("intrinsics.")
            return _call(name[:-1] + "_wide", self.site(node), ast.Constant(WIDTHS[name]),
                         *arguments)
        if path in VECTORS:
            return _call("vector", line, ast.Constant(path), *arguments)
        if path.startswith("atomic."):
            kind = ast.Constant(path.split(".")[1])
            return ast.Yield(_call("meet", ast.Constant("atomic"), self.site(node), kind,
                                   *arguments))
        if path in names.IGNORED:
            return ast.Constant(None)
        if path in names.BITS:
            width, arrays = names.width_of(self.kernel, self.local, node.args[0])
            return _call("bits", ast.Constant(path), *arguments, ast.Constant(width),
                         *map(self.value, arrays))
        if path in ("grid", "gridsize", "selp", "fma", "lanemask_lt"):
            return _call(path, line, *arguments)
        if path == "const.array_like":
            return _call("constant", line, *arguments)
        if path == "cbrt":
            return _call("math", line, ast.Constant(path), *arguments)
        if path.startswith("fp16.") and path[5:] in names.FP16:
            return _call("fp16", line, ast.Constant(path[5:]), *arguments)
        if path.startswith("libdevice.") and path[10:] in names.SAME_BITS:
            return _call("same_bits", ast.Constant(path[10:]), *arguments)
        if isinstance(callee, Kernel):
            return ast.YieldFrom(_call("call", self.site(node), self.const(callee), *arguments))
        name = names.math_name(callee)
        if name:
            return _call("math", line, ast.Constant(name), *arguments)
        if callee in names.CASTS and len(arguments) == 1:
            return _call("cast", line, self.const(names.CASTS[callee]), *arguments)
        if callee in names.EXTREMES:
            return _call("extreme", line, self.const(names.EXTREMES[callee]), *arguments)
        if callee in (abs, np.abs, len, round, divmod):
            word = "abs" if callee is np.abs else callee.__name__
            return _call(word, line, *arguments)
        return names.refuse(node, f"{ast.unparse(node.func)}() cannot be called in a kernel")


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name("_t", ast.Load()), method, ast.Load())
    return ast.Call(function, list(arguments), [])


def _tuple(*items: ast.expr) -> ast.Tuple:
    return ast.Tuple(list(items), ast.Load())
