"""Which assignments of a name may have been the last at a place that reads it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from distlearn.kernels.kernel import Kernel


class Definition(NamedTuple):
    """A place that gives a name its value.

    ``how`` is "parameter", "value" (that of ``node``), "item" (one of ``node``'s items, number
    ``at``), "step" (``node`` is ``x += y``), "loop" (``node`` is what a loop goes through) or
    "item of loop".
    """

    name: str
    how: str
    node: ast.AST
    at: int = 0


Reach = dict[str, frozenset[Definition]]


class Flow:
    """Assignments that reach each reading of a local name.

    Attributes
    ----------
    reaching : dict
        Of a ``Name`` that is read, or an ``AugAssign`` of a name.
    definitions : set of Definition
        All, read or not.
    returns : dict
        Of each ``return``, what it returns, or None.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.reaching: defaultdict[ast.AST, set[Definition]] = defaultdict(set)
        self.returns: dict[ast.AST, ast.expr | None] = {}
        self._broken: list[list[Reach]] = []
        self._continued: list[list[Reach]] = []
        self.definitions: set[Definition] = set()
        start: Reach = {p: frozenset([Definition(p, "parameter", kernel.tree, n)])
                        for n, p in enumerate(kernel.parameters)}
        self.definitions |= {d for one in start.values() for d in one}
        self._block(kernel.tree.body, start)

    def _block(self, statements: list[ast.stmt], reach: Reach | None) -> Reach | None:
        for statement in statements:
            if reach is None:
                break
            reach = self._statement(statement, reach)
        return reach

    def _statement(self, node: ast.stmt, reach: Reach) -> Reach | None:
        if isinstance(node, ast.If):
            reach = self._read(node.test, reach)
            return _join([self._block(node.body, reach), self._block(node.orelse, reach)])
        if isinstance(node, ast.While | ast.For):
            return self._loop(node, reach)
        if isinstance(node, ast.Return):
            if node.value is not None:
                self._read(node.value, reach)
            self.returns[node] = node.value
            return None
        if isinstance(node, ast.Break | ast.Continue):
            kept = self._broken if isinstance(node, ast.Break) else self._continued
            if kept:
                kept[-1].append(reach)
            return None
        if isinstance(node, ast.AugAssign):
            reach = self._read(node.value, reach)
            if isinstance(node.target, ast.Name):
                self.reaching[node] |= reach.get(node.target.id, frozenset())
                return self._with(reach, Definition(node.target.id, "step", node))
            return self._read(node.target, reach)
        if isinstance(node, ast.Assign):
            reach = self._read(node.value, reach)
            for target in node.targets:
                reach = self._give(target, node.value, reach, "value")
            return reach
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return self._give(node.target, node.value, self._read(node.value, reach), "value")
        return self._read(node, reach)

    def _loop(self, node: ast.While | ast.For, reach: Reach) -> Reach | None:
        if isinstance(node, ast.For):
            reach = self._read(node.iter, reach)
        head = reach
        while True:
            self._broken.append([])
            self._continued.append([])
            inside = self._read(node.test, head) if isinstance(node, ast.While) else self._give(
                node.target, node.iter, head, "loop")
            over = inside if isinstance(node, ast.While) else head
            after = self._block(node.body, inside)
            ends, again = [over, *self._broken.pop()], [reach, after, *self._continued.pop()]
            following = _join(again)
            assert following is not None
            if following == head:
                return _join(ends)
            head = following

    def _with(self, reach: Reach, made: Definition) -> Reach:
        self.definitions.add(made)
        return {**reach, made.name: frozenset([made])}

    def _give(self, target: ast.expr, value: ast.expr, reach: Reach, how: str) -> Reach:
        """The names of a target from here on."""
        if isinstance(target, ast.Name):
            return self._with(reach, Definition(target.id, how, value))
        if isinstance(target, ast.Tuple | ast.List):
            written = isinstance(value, ast.Tuple) and how == "value" and len(
                value.elts) == len(target.elts)
            for n, part in enumerate(target.elts):
                if written and isinstance(value, ast.Tuple):
                    reach = self._give(part, value.elts[n], reach, "value")
                elif isinstance(part, ast.Name):
                    item = "item" if how == "value" else "item of loop"
                    reach = self._with(reach, Definition(part.id, item, value, n))
                else:
                    reach = self._give(part, value, reach, "unknown")
            return reach
        return self._read(target, reach)

    def _read(self, node: ast.AST, reach: Reach) -> Reach:
        """Note the names that are read, in order; ``:=`` gives some a value on the way."""
        if isinstance(node, ast.NamedExpr):
            return self._give(node.target, node.value, self._read(node.value, reach), "value")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.reaching[node] |= reach.get(node.id, frozenset())
        for child in ast.iter_child_nodes(node):
            reach = self._read(child, reach)
        return reach


def _join(parts: Sequence[Reach | None]) -> Reach | None:
    """What may reach where several ways come together."""
    joined: Reach | None = None
    for part in parts:
        if part is not None:
            joined = part if joined is None else {
                name: joined.get(name, frozenset()) | part.get(name, frozenset())
                for name in {*joined, *part}}
    return joined
