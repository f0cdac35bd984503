"""What decides whether a ``while`` ends: if none of it changes, the loop waits for another thread.

The names that its test, and the tests around its ``break``, ``continue`` and ``return``, depend on
through the assignments of its body (a program slice: Weiser, "Program Slicing", ICSE 1981). That
the loop counts its rounds, or stores the same value in every one, does not bring it to an end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

WAITS = ("nothing that the end of this loop depends on has changed in an iteration: it waits for "
         "another thread, which may never run")


def decisive(loop: ast.While) -> frozenset[str]:
    r"""Variables and arrays that the end of the loop depends on.

    >>> loop = ast.parse("while flag[i] == 0:\n    n += 1").body[0]
    >>> sorted(decisive(loop))
    ['flag', 'i']
    """
    parts = list(_parts(loop.body, []))
    found = _names(loop.test)
    for statement, tests in parts:
        if isinstance(statement, ast.Break | ast.Continue | ast.Return):
            found |= _names(*tests)
    size = -1
    while size != len(found):
        size = len(found)
        for statement, tests in parts:
            if not found.isdisjoint(_changed(statement)):
                found |= _names(statement, *tests)
    return frozenset(found)


def _parts(body: list[ast.stmt], tests: list[ast.expr]
           ) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Statements without others inside, and the tests that they stand under."""
    for statement in body:
        if isinstance(statement, ast.If | ast.While):
            inner = [*tests, statement.test]
            yield ast.Expr(statement.test), tests
            yield from _parts(statement.body + statement.orelse, inner)
        elif isinstance(statement, ast.For):
            yield ast.Assign([statement.target], statement.iter), tests
            yield from _parts(statement.body, [*tests, statement.iter])
        else:
            yield statement, tests


def _names(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _changed(statement: ast.AST) -> set[str]:
    """What a statement assigns; calls may change the arrays that they are given."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign):
            found |= _names(*node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            found |= _names(node.target)
        elif isinstance(node, ast.Call):
            found |= _names(*node.args)
    return found
