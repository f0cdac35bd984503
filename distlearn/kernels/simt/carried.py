"""Which loops may run all their iterations at once, as far as the source text tells.

Nothing may leave the body early, and nothing in it may make threads meet. A name that it assigns is
assigned before it is read in each iteration, or is only added to: ``total += ...``, once.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from distlearn.kernels import names
from distlearn.kernels.kernel import Kernel

LEAVES = (ast.Break, ast.Continue, ast.Return, ast.While, ast.NamedExpr)
ADDS = (ast.Add, ast.Sub, ast.Mult)
PLAIN = (ast.Constant, ast.Name, ast.BinOp, ast.operator, ast.expr_context)


@dataclass(frozen=True, eq=False)
class Nest:
    """A loop, or loops each of which is all that the one around it does.

    Attributes
    ----------
    loops : tuple of ast.For
        The outermost first.
    variables : tuple of str
    kept, dropped : tuple of str
        Names that iterations assign, which may be read after the last one, or are not.
    totals : frozenset of str
        Names that iterations add to.
    lines : tuple of int
        Lines of the source that may count something.
    """

    loops: tuple[ast.For, ...]
    variables: tuple[str, ...]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    totals: frozenset[str]
    lines: tuple[int, ...]


def nest(node: ast.For, around: set[str], reads: Counter[str],
         resolve: Callable[[ast.expr], Any]) -> Nest | None:
    """The nest of a loop; None if its iterations depend on each other.

    ``around`` are the variables of the loops that it is in, ``reads`` what `free_reads` finds in
    the whole function.
    """
    loops, targets = [node], {_target(node)}
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], ast.For):
        assert isinstance(inner.iter, ast.Call)
        parts = [n for bound in inner.iter.args for n in ast.walk(bound)]
        if not all(isinstance(n, PLAIN) for n in parts) or targets & {_target(inner), *(
                n.id for n in parts if isinstance(n, ast.Name))}:
            break
        loops.append(inner)
        targets.add(_target(inner))
    inside = [n for statement in loops[-1].body for n in ast.walk(statement)]
    if any(isinstance(n, LEAVES) or (isinstance(n, ast.Call) and (
            isinstance(callee := resolve(n.func), Kernel) or meets(callee)))
           for n in inside):
        return None
    mentions = Counter(n.id for n in inside if isinstance(n, ast.Name))
    mentions.update(n.id for loop in loops for n in ast.walk(loop.iter) if isinstance(n, ast.Name))
    assigned = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    totals = frozenset(n.target.id for n in inside if isinstance(n, ast.AugAssign) and isinstance(
        n.op, ADDS) and isinstance(n.target, ast.Name) and mentions[n.target.id] == 1)
    left = _after(loops[-1].body, set(), assigned - totals)
    if left is None or assigned & (targets | around):
        return None
    later = reads - free_reads(node)
    kept = {name for name in assigned - totals if later[name]}
    if not kept <= left:
        return None
    lines = {n.lineno for n in inside if isinstance(n, ast.expr | ast.stmt)}
    return Nest(tuple(loops), tuple(map(_target, loops)), tuple(kept),
                tuple(assigned - totals - kept), totals,
                tuple(lines))


def _target(loop: ast.For) -> str:
    assert isinstance(loop.target, ast.Name)
    return loop.target.id


def meets(callee: Any) -> bool:
    """Whether a call that is none of a device function is more than a value of its arguments."""
    path = names.path_of(callee)
    return path in names.MEETINGS or path.startswith(
        ("atomic.", "shared.", "local.", "intrinsics."))


def free_reads(tree: ast.AST) -> Counter[str]:
    """How often each name is read, other than as the variable of a loop around that place."""
    found: Counter[str] = Counter()

    def visit(node: ast.AST, variables: frozenset[str]) -> None:
        if isinstance(node, ast.Name):
            found[node.id] += isinstance(node.ctx, ast.Load) and node.id not in variables
        elif isinstance(node, ast.For):
            visit(node.iter, variables)
            for statement in node.body:
                visit(statement, variables | {_target(node)})
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] += node.target.id not in variables
            for child in ast.iter_child_nodes(node):
                visit(child, variables)

    visit(tree, frozenset())
    return found


def _after(statements: Iterable[ast.stmt], done: set[str], own: set[str]) -> set[str] | None:
    """Which of its ``own`` names an iteration has assigned; None if it reads one too early.

    ``done`` are those that it has assigned before the statements.
    """
    for node in statements:
        now = _read_first(node, done, own)
        if now is None:
            return None
        done = now
    return done


def _read_first(node: ast.stmt, done: set[str], own: set[str]) -> set[str] | None:
    early = own - done
    if isinstance(node, ast.If):
        yes, no = _after(node.body, done, own), _after(node.orelse, done, own)
        return None if yes is None or no is None or _reads(node.test) & early else yes & no
    if isinstance(node, ast.For):
        again = None if _reads(node.iter) & early else _after(
            node.body, done | {_target(node)}, own)
        return None if again is None else done
    if _reads(node) & early:
        return None
    if isinstance(node, ast.AugAssign):
        return None if isinstance(node.target, ast.Name) and node.target.id in early else done
    return done | {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(
        n.ctx, ast.Store)}


def _reads(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
