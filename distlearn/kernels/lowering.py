"""Python's ways of saying a thing brought to the few that both executors know.

``for x in (1, 2)``, ``enumerate`` and ``zip`` become loops over ``range``; nested targets and
exchanges such as ``s[i], s[j] = s[j], s[i]`` become single assignments; keywords become positions;
``operator.add(a, b)`` becomes ``a + b``. Lines stay those of the source.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any

from distlearn.kernels import names
from distlearn.kernels.kernel import Kernel

# What calls with keywords take, in order.
SIGNATURES: dict[str, tuple[str, ...]] = {
    "shared.array": ("shape", "dtype"), "local.array": ("shape", "dtype"),
    "const.array_like": ("ary",), "grid": ("ndim",), "gridsize": ("ndim",),
    "syncwarp": ("mask",), "ballot_sync": ("mask", "predicate"), "all_sync": ("mask", "predicate"),
    "any_sync": ("mask", "predicate"), "eq_sync": ("mask", "predicate"),
    "shfl_sync": ("mask", "value", "src_lane"), "shfl_up_sync": ("mask", "value", "delta"),
    "shfl_down_sync": ("mask", "value", "delta"), "shfl_xor_sync": ("mask", "value", "lane_mask"),
    "match_any_sync": ("mask", "value"), "match_all_sync": ("mask", "value"),
}
BINARY: dict[Any, type[ast.operator]] = {
    operator.add: ast.Add, operator.sub: ast.Sub, operator.mul: ast.Mult,
    operator.truediv: ast.Div, operator.floordiv: ast.FloorDiv, operator.mod: ast.Mod,
    operator.pow: ast.Pow, builtins.pow: ast.Pow, operator.lshift: ast.LShift,
    operator.rshift: ast.RShift, operator.and_: ast.BitAnd, operator.or_: ast.BitOr,
    operator.xor: ast.BitXor,
}
COMPARE: dict[Any, type[ast.cmpop]] = {
    operator.eq: ast.Eq, operator.ne: ast.NotEq, operator.lt: ast.Lt, operator.le: ast.LtE,
    operator.gt: ast.Gt, operator.ge: ast.GtE,
}
UNARY: dict[Any, type[ast.unaryop]] = {
    operator.neg: ast.USub, operator.pos: ast.UAdd, operator.invert: ast.Invert,
    operator.not_: ast.Not,
}


def lowered(kernel: Kernel, tree: ast.FunctionDef | None = None) -> ast.FunctionDef:
    """The kernel's tree, or one in its place, in the executors' language.

    Raises
    ------
    KernelError
        "unsupported": what has no meaning in a kernel, with its line.
    """
    return ast.fix_missing_locations(_Lowering(kernel).function(
        kernel.tree if tree is None else tree))


class _Lowering(ast.NodeTransformer):
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.local = kernel, names.local_names(kernel.tree)
        self.hidden = 0

    def function(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            names.refuse(tree, f"{self.kernel.name}() takes *arguments or keyword-only ones; a "
                         "kernel takes positional parameters")
        body = self._block(tree.body)
        return ast.copy_location(ast.FunctionDef(tree.name, tree.args, body, []), tree)

    def fresh(self) -> str:
        self.hidden += 1
        return f"_h_{self.hidden}"

    def resolve(self, node: ast.expr) -> Any:
        return names.resolve(self.kernel, self.local, node)

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            made += result if isinstance(result, list) else [result]
        return made

    # ---- statements

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A copy with its parts lowered: the kernel's own tree stays as it is."""
        made = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                made[name] = self._block(value)
            elif isinstance(value, list):
                made[name] = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
            else:
                made[name] = self.visit(value) if isinstance(value, ast.AST) else value
        return ast.copy_location(type(node)(**made), node)

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value: ast.expr = self.visit(node.value)
        made: list[ast.stmt] = []
        if len(node.targets) > 1 and not all(isinstance(t, ast.Name) for t in node.targets):
            held = self.fresh()
            made.append(_assign(node, ast.Name(held, ast.Store()), value))
            value = ast.copy_location(ast.Name(held, ast.Load()), node)
            for target in node.targets:
                made += self._assign(node, target, value)
            return made
        if len(node.targets) > 1:
            return [ast.copy_location(ast.Assign(node.targets, value), node)]
        return self._assign(node, node.targets[0], value)

    def _assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """Simple assignments that together are this one."""
        if not isinstance(target, ast.Tuple | ast.List):
            return [_assign(node, self.visit(target), value)]
        if any(isinstance(e, ast.Starred) for e in target.elts):
            names.refuse(node, "a starred target has no place in a kernel")
        if isinstance(value, ast.Tuple) and len(value.elts) != len(target.elts):
            names.refuse(node, f"{len(value.elts)} values for {len(target.elts)} names")
        flat: list[ast.expr] = []
        rest: list[ast.stmt] = []
        for element in target.elts:
            if isinstance(element, ast.Name):
                flat.append(element)
                continue
            held = self.fresh()
            flat.append(ast.copy_location(ast.Name(held, ast.Store()), element))
            rest += self._assign(node, element, ast.copy_location(
                ast.Name(held, ast.Load()), element))
        return [_assign(node, ast.copy_location(ast.Tuple(flat, ast.Store()), target), value),
                *rest]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        call = node.iter
        if node.orelse:
            names.refuse(node, "for ... else is not part of the language of kernels")
        callee = self.resolve(call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and callee is range:
            if not isinstance(node.target, ast.Name):
                names.refuse(node, f"range gives numbers, not {ast.unparse(node.target)}")
            if call.keywords or not 1 <= len(call.args) <= 3:
                names.refuse(node, "range takes one to three numbers")
            made = ast.For(node.target, self.visit(call), self._block(node.body), [])
            return [ast.copy_location(made, node)]
        return self._each(node, callee)

    def _each(self, node: ast.For, callee: Any) -> list[ast.stmt]:
        """A loop over the elements of tuples and arrays, by their number."""
        at, made = self.fresh(), list[ast.stmt]()

        def held(what: ast.expr) -> ast.expr:
            name = self.fresh()
            made.append(_assign(node, ast.Name(name, ast.Store()), self.visit(what)))
            return ast.Name(name, ast.Load())

        def item(array: ast.expr) -> ast.expr:
            return ast.Subscript(array, ast.Name(at, ast.Load()), ast.Load())

        def length(array: ast.expr) -> ast.expr:
            return _call("len", array)

        call = node.iter
        value: ast.expr
        if isinstance(call, ast.Call) and callee is zip:
            arrays = [held(argument) for argument in call.args]
            if call.keywords or not arrays:
                names.refuse(node, "zip takes tuples or arrays")
            value = ast.Tuple([item(array) for array in arrays], ast.Load())
            count = length(arrays[0]) if len(arrays) == 1 else _call("min", *map(length, arrays))
        elif isinstance(call, ast.Call) and callee is enumerate:
            numbers = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "start")]
            if len(call.args) + len(call.keywords) != 1 + len(numbers) or len(numbers) > 1:
                names.refuse(node, "enumerate takes a tuple or an array, and where to start")
            array = held(call.args[0])
            number: ast.expr = ast.Name(at, ast.Load())
            if numbers:
                number = ast.BinOp(held(numbers[0]), ast.Add(), number)
            value, count = ast.Tuple([number, item(array)], ast.Load()), length(array)
        elif isinstance(call, ast.Call):
            names.refuse(node, f"{ast.unparse(call.func)}() gives nothing that a loop goes "
                         "through; loops go through range, enumerate, zip, tuples and arrays")
        else:
            array = held(call)
            value, count = item(array), length(array)
        body = [*self._assign(node, node.target, value), *self._block(node.body)]
        loop = ast.For(ast.Name(at, ast.Store()), _call("range", count), body, [])
        return [_placed(node, statement) for statement in [*made, loop]]

    # ---- expressions

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot):
                names.refuse(node, "`is` has no meaning between the values of a kernel; use ==")
            if isinstance(op, ast.In | ast.NotIn) and (len(node.ops) > 1 or not isinstance(
                    right, ast.Tuple)):
                names.refuse(node, "`in` takes one value and a tuple that is written there")
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        callee = self.resolve(node.func)
        path = names.path_of(callee)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
                k.arg is None for k in node.keywords):
            names.refuse(node, f"{ast.unparse(node.func)}() is called with * or **, which kernels "
                         "cannot do")
        if isinstance(callee, Kernel) or node.keywords:
            node = self._positional(node, callee, path)
        made = self.generic_visit(node)
        assert isinstance(made, ast.Call)
        return ast.copy_location(_operator(made, callee, path), node)

    def _positional(self, node: ast.Call, callee: Any, path: str) -> ast.Call:
        """The call with its keywords at their places."""
        known = callee.parameters if isinstance(callee, Kernel) else SIGNATURES.get(path)
        if known is None:
            names.refuse(node, f"{ast.unparse(node.func)}() takes no keywords here")
        values = dict(zip(known, node.args, strict=False))
        for keyword in node.keywords:
            assert keyword.arg is not None
            if keyword.arg not in known or keyword.arg in values:
                names.refuse(node, f"{ast.unparse(node.func)}() has no argument {keyword.arg}, or "
                             f"is given it twice; it takes {', '.join(known)}")
            values[keyword.arg] = keyword.value
        given = [name for name in known if name in values]
        wanted = len(known) if isinstance(callee, Kernel) else len(given)
        if len(node.args) > len(known) or given != list(known[:wanted]):
            names.refuse(node, f"{ast.unparse(node.func)}() takes {', '.join(known) or 'nothing'}")
        return ast.copy_location(ast.Call(node.func, [values[name] for name in given], []), node)


def _operator(node: ast.Call, callee: Any, path: str) -> ast.expr:
    """``operator.add(a, b)`` as ``a + b``."""
    if path == "atomic.compare_and_swap" and len(node.args) == 3:
        assert isinstance(node.func, ast.Attribute)
        swap = ast.Attribute(node.func.value, "cas", ast.Load())
        return ast.Call(swap, [node.args[0], ast.Constant(0), *node.args[1:]], [])
    try:
        kinds = BINARY.get(callee), COMPARE.get(callee), UNARY.get(callee)
    except TypeError:  # no hash: not one of them
        return node
    binary, compare, unary = kinds
    if len(node.args) == 2 and binary is not None:
        return ast.BinOp(node.args[0], binary(), node.args[1])
    if len(node.args) == 2 and compare is not None:
        return ast.Compare(node.args[0], [compare()], [node.args[1]])
    if len(node.args) == 1 and unary is not None:
        return ast.UnaryOp(unary(), node.args[0])
    return node


def _assign(place: ast.AST, target: ast.expr, value: ast.expr) -> ast.stmt:
    return _placed(place, ast.Assign([target], value))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _placed(place: ast.AST, made: ast.stmt) -> ast.stmt:
    """New nodes at the place of the old one; those of the source keep theirs."""
    locate: Callable[[ast.AST, ast.AST], ast.AST] = ast.copy_location
    for node in ast.walk(made):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            locate(node, place)
    return made
