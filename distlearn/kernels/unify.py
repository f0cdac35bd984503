"""Where values of two types meet in one name: the type that a compiler gives it.

A name has one type at each place that reads it, whichever assignment came before: after ``if c:
x = 0`` and ``else: x = a[i]`` with ``float32`` elements, numba.cuda holds ``x`` in ``float64`` in
all threads. Executors compute with the types that values have when they run; so `unified` writes
the conversions down where they change what is computed. Expressions whose type is not known here
stay as they are.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from distlearn.kernels.inference import UNKNOWN, Function, Inference, arithmetic, union
from distlearn.kernels.kernel import Kernel

FLOATS = {"f2", "f4", "f8"}
NUMBERS = {*FLOATS, "i2", "i8"}
Casts = dict[ast.AST, str]


def unified(kernel: Kernel, types: tuple[Any, ...]) -> dict[Kernel, ast.FunctionDef]:
    """Trees with conversions, of the kernel and of what it calls, where they need any.

    A device function that is called with arguments of several types gets those conversions that
    are right for all calls.
    """
    inference = Inference()
    inference.run(kernel, types)
    made: dict[Kernel, ast.FunctionDef] = {}
    for one, signatures in list(inference.runs.items()):
        marked = [_Casts(function).marked() for function in list(signatures.values())]
        casts: Casts = {}
        for node in {node for call in marked for node in call.found}:
            kinds = {call.of(node) for call in marked}
            if len(kinds) == 1:
                casts[node] = kinds.pop()
        if casts:
            made[one] = ast.fix_missing_locations(_Writer(casts).visit(one.tree))
    return made


class _Casts(ast.NodeVisitor):
    """The expressions of one function that must be converted, and to what."""

    def __init__(self, function: Function) -> None:
        self.function, self.flow = function, function.flow
        self.found: Casts = {}

    def marked(self) -> _Casts:
        """Itself, when all statements have been looked at."""
        for statement in self.function.kernel.tree.body:
            self.visit(statement)
        return self

    def returned(self) -> set[Any]:
        """The types that what it returns may come in."""
        values = [value for value in self.flow.returns.values() if value is not None]
        return {kind for value in values for kind in self._choice(value)[0] | {
            self.function.type_of(value)}}

    def of(self, node: ast.AST) -> Any:
        """The type that a part must have: that it is converted to, or its own."""
        kind = self.found.get(node)
        if kind is not None:
            return kind
        return self.function.type_of(node) if isinstance(node, ast.expr) else UNKNOWN

    def _kinds(self, node: ast.AST, name: str) -> tuple[set[Any], Any]:
        """The types that a name's value may come in, and the one it is held in.

        The fast executor has one array for all threads: where others have taken another way, it
        may come in the type of what they were given.
        """
        kinds = {self.function.of_definition(d) for d in self.flow.reaching.get(node, ())}
        kind = union(kinds)
        if kind in ("f2", "f4", "i8"):
            kinds |= {self.function.of_definition(d) for d in self.flow.definitions
                      if d.name == name} & NUMBERS
        return kinds, kind

    def _choice(self, node: ast.expr) -> tuple[set[Any], Any]:
        """The same of what an expression chooses from: a name, ``a if c else b``, ``a or b``."""
        if isinstance(node, ast.Name):
            return self._kinds(node, node.id)
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            types = {self.function.type_of(part) for part in parts}
            return types.union(*(self._choice(part)[0] for part in parts)), union(types)
        return set(), UNKNOWN

    def _mark(self, node: ast.expr) -> None:
        """Convert a part if its value may come in another type."""
        kinds, kind = self._choice(node)
        if _meet(kinds, kind):
            self.found[node] = kind

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Mark parts of a `BinOp`."""
        self._pair(type(node.op).__name__, (node.left, *self._choice(node.left)), node.right)
        self.generic_visit(node)

    def _pair(self, op: str, left: tuple[ast.AST, set[Any], Any], right: ast.expr) -> None:
        """Convert the operands if the operation would else be of another type."""
        others, other = self._choice(right)
        node, kinds, kind = left
        if other == UNKNOWN:
            other = self.function.type_of(right)
        if kind == UNKNOWN and isinstance(node, ast.expr):
            kind = self.function.type_of(node)
        made = arithmetic(op, kind, other)
        if all(arithmetic(op, a, b) == made for a in kinds or {kind} for b in others or {other}):
            return
        if _meet(kinds, kind):
            self.found[node] = kind
        if _meet(others, other):
            self.found[right] = other

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Mark parts of a `UnaryOp`."""
        if not isinstance(node.op, ast.Not):
            self._mark(node.operand)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Mark parts of a `Call`."""
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self._mark(argument)
        returned = self.function.type_of(node)
        callee = self.function.resolve(node.func)
        if returned in FLOATS and isinstance(callee, Kernel) and any(
                len(_Casts(called).returned()) > 1
                for called in self.function.inference.runs[callee].values()):
            self.found[node] = returned  # here, as other calls may want another type
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Mark parts of a `Subscript`."""
        for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            self._mark(index)
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """Mark parts of a `Tuple`."""
        if isinstance(node.ctx, ast.Load):
            for item in node.elts:
                self._mark(item)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Mark parts of a `Assign`."""
        if any(not isinstance(target, ast.Subscript) for target in node.targets):
            self._mark(node.value)  # an element's type converts by itself
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Mark parts of a `AugAssign`."""
        left: tuple[ast.AST, set[Any], Any] = (node.target, set(), UNKNOWN)
        if isinstance(node.target, ast.Name):
            left = (node, *self._kinds(node, node.target.id))
        self._pair(type(node.op).__name__, left, node.value)
        self.generic_visit(node)


def _meet(kinds: set[Any], kind: Any) -> bool:
    """Whether a value may come in another type than that which it is held in."""
    return len(kinds) > 1 and (kind in FLOATS or (kind == "i8" and bool(kinds & FLOATS)))


class _Writer(ast.NodeTransformer):
    """A copy of a tree with conversions."""

    def __init__(self, casts: Casts) -> None:
        self.casts = casts

    def visit(self, node: ast.AST) -> Any:
        """The copy of a node, converted if it must be."""
        kind = self.casts.get(node)
        made = self.generic_visit(copy.copy(node))
        if kind is None:
            return made
        if isinstance(made, ast.AugAssign):
            assert isinstance(made.target, ast.Name)
            old = _cast(ast.copy_location(ast.Name(made.target.id, ast.Load()), node), kind)
            new = ast.copy_location(ast.BinOp(old, made.op, made.value), node)
            return ast.copy_location(ast.Assign([made.target], new), node)
        assert isinstance(made, ast.expr)
        return _cast(made, kind)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Copies of the parts in the copy of a node."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [self.visit(v) if isinstance(v, ast.AST) else v
                                     for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node


def _cast(node: ast.expr, kind: str) -> ast.Call:
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(f"_to_{kind}", ast.Load()), node),
                                      [node], []), node)

