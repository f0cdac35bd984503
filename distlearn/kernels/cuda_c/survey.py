"""What a function's body does to its names: looked up before the function is translated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c.rules import STEPS
from distlearn.kernels.cuda_c.source import walk


class Survey:
    """Names of a function's body.

    Attributes
    ----------
    assigned : Counter
        How often a name is assigned or stepped, its declaration's initial value not counted.
    seated : Counter
        How often it is assigned with a plain ``=``.
    shrinking : set of str
        Names that only ``>>=`` and ``/=`` by a positive constant change.
    boxed : set of str
        Names whose address is taken as ``&name``.
    depths : dict
        With how many subscripts a name is used; -1 if its address is taken then.
    """

    def __init__(self, body: Any) -> None:
        self.assigned: Counter[str] = Counter()
        self.seated: Counter[str] = Counter()
        self.growing: set[str] = set()
        self.boxed: set[str] = set()
        self.depths: dict[str, set[int]] = {}
        self._visit(body, 0, False)

    def _visit(self, node: Any, depth: int, addressed: bool) -> None:
        if isinstance(node, c_ast.ID):
            self.depths.setdefault(node.name, set()).add(-1 if addressed else depth)
            return
        if isinstance(node, c_ast.ArrayRef):
            self._visit(node.name, depth + 1, addressed)
            self._visit(node.subscript, 0, False)
            return
        for target in targets(node):
            self.assigned[target] += 1
            if not (isinstance(node, c_ast.Assignment) and node.op in (">>=", "/=") and isinstance(
                    node.rvalue, c_ast.Constant) and node.rvalue.value.isdigit()):
                self.growing.add(target)
        if isinstance(node, c_ast.Assignment) and node.op == "=" and isinstance(
                node.lvalue, c_ast.ID):
            self.seated[node.lvalue.name] += 1
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            if isinstance(node.expr, c_ast.ID):
                self.boxed.add(node.expr.name)
            self._visit(node.expr, 0, True)
            return
        if isinstance(node, c_ast.FuncCall) and isinstance(node.name, c_ast.ID) and \
                node.name.name.startswith("atomic") and node.args:
            first, *rest = node.args.exprs
            if isinstance(first, c_ast.UnaryOp) and first.op == "&" and isinstance(
                    first.expr, c_ast.ArrayRef):
                self._visit(first.expr, 0, False)
                first = None
            for argument in ([first] if first is not None else []) + rest:
                self._visit(argument, 0, False)
            return
        for _, child in node.children():
            self._visit(child, 0, False)


    @property
    def shrinking(self) -> set[str]:
        """Names that stay between 0 and a first value that is not negative."""
        return set(self.assigned) - self.growing


def targets(node: Any) -> Iterator[str]:
    """The variable that an assignment or a step changes, if it is one."""
    if isinstance(node, c_ast.Assignment):
        at = node.lvalue
    elif isinstance(node, c_ast.UnaryOp) and node.op in STEPS:
        at = node.expr
    else:
        return
    while isinstance(at, c_ast.StructRef) and at.type == ".":
        at = at.name
    if isinstance(at, c_ast.ID):
        yield at.name


def changed(node: Any) -> set[str]:
    """Names that a piece of code assigns."""
    return {name for part in walk(node) for name in targets(part)}


def used(node: Any) -> set[str]:
    """Names that a piece of code reads or assigns."""
    return {part.name for part in walk(node) if isinstance(part, c_ast.ID)}


def loads(node: Any) -> bool:
    """Whether a piece of code may read memory."""
    return any(isinstance(part, c_ast.ArrayRef) or (
        isinstance(part, c_ast.UnaryOp) and part.op == "*") or (
        isinstance(part, c_ast.StructRef) and part.type == "->") for part in walk(node))


def writes(node: Any) -> bool:
    """Whether a piece of code may write memory, wait for others, or call something that may."""
    for part in walk(node):
        if isinstance(part, c_ast.FuncCall):
            return True
        at = part.lvalue if isinstance(part, c_ast.Assignment) else part.expr if isinstance(
            part, c_ast.UnaryOp) and part.op in STEPS else None
        if at is not None and loads(at):
            return True
    return False


def calls(node: Any) -> bool:
    """Whether a piece of code calls or changes anything: it cannot be computed just once."""
    return any(isinstance(part, c_ast.FuncCall) for part in walk(node)) or bool(changed(node))


def leaves(node: Any, kind: type) -> bool:
    """Whether ``break`` or ``continue`` leaves this loop's body, inner loops aside."""
    if isinstance(node, kind):
        return True
    if isinstance(node, c_ast.For | c_ast.While | c_ast.DoWhile) or (
            isinstance(node, c_ast.Switch) and kind is c_ast.Break):
        return False
    return any(leaves(child, kind) for _, child in node.children())
