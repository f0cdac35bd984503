"""What threads hold in the names that a loop assigns when they leave it, one after another.

Within the loop a name has a value only for the threads that are still in it, so that most
assignments replace the whole of it. Those that leave take along what they hold of the names that
are read later; at the end of the loop it is put together.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distlearn.kernels import spinning
from distlearn.kernels.simt.numbers import VALUES, numeric, select
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame

Bound = tuple[Mask | None, Any]  # in which threads a name is bound, and its value


class Loop(NamedTuple):
    """Names that a loop assigns, mentions, and assigns for reads when it has ended."""

    assigned: tuple[str, ...]
    mentioned: tuple[str, ...]
    kept: frozenset[str]
    line: int


def loops(tree: ast.FunctionDef) -> dict[ast.For | ast.While, Loop]:
    r"""The loops of a function.

    >>> tree = ast.parse("def f(a, k):\n while k > 0:\n  x = k\n  k = x // 2\n a[0] = x").body[0]
    >>> [(loop.assigned, sorted(loop.kept)) for loop in loops(tree).values()]
    [(('k', 'x'), ['x'])]
    """
    found: dict[ast.For | ast.While, Loop] = {}
    reads = _reads(tree)

    def visit(node: ast.AST, outermost: ast.AST | None, watched: frozenset[str]) -> None:
        if isinstance(node, ast.For | ast.While):
            # The next iteration of a loop around this one may read what this one has assigned.
            later = reads if outermost is not None else reads - _reads(node)
            assigned = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)
                               and isinstance(n.ctx, ast.Store)})
            mentioned = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)})
            found[node] = Loop(tuple(assigned), tuple(mentioned), frozenset(
                name for name in assigned if later[name] > 0 or name in watched), node.lineno)
            outermost = outermost or node
            if isinstance(node, ast.While):
                watched = watched | spinning.decisive(node)
        for child in ast.iter_child_nodes(node):
            visit(child, outermost, watched)

    visit(tree, None, frozenset())
    return found


def _reads(tree: ast.AST) -> Counter[str]:
    """How often each name is read; ``x += 1`` reads x.

    Unlike in `carried.free_reads`, variables of loops count: a loop in them may assign them.
    """
    return Counter(
        [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        + [n.target.id for n in ast.walk(tree) if isinstance(n, ast.AugAssign)
           and isinstance(n.target, ast.Name)])


class Left:
    """One name's values in the threads that have left: masks, or lanes and their elements."""

    def __init__(self) -> None:
        self.whole = True  # none of them had it unbound
        self.masked: Bound = (None, None)
        self.lanes: list[Array] = []
        self.parts: list[Any] = []

    def add(self, space: Space, who: Mask, value: Any, line: int) -> None:
        """Some threads leave with a value."""
        if type(value) is int and not who.static and who.array.shape == space.shape:
            self.lanes.append(who.index)
            self.parts.append(value)
            return
        small = space.shape not in (who.array.shape, getattr(value, "shape", ()))
        if isinstance(value, VALUES) and not small and not (
                who.static and isinstance(value, int | Sym)):
            array = value.array if isinstance(value, Mask | Sym) else value
            self.lanes.append(who.index)
            self.parts.append(
                (array if array.shape == space.shape else np.broadcast_to(
                    array, space.shape)).reshape(-1)[who.index]
                if isinstance(array, np.ndarray) else value)
            return
        mask, old = self.masked
        self.masked = (who, value) if mask is None else (
            mask.either(who), select(space, who, value, old, line))

    def together(self, space: Space, all_: Mask | None) -> Bound:
        """The mask and the value of all, who are ``all_`` if none of them had it unbound."""
        mask, old = self.masked
        if not self.lanes:
            return (all_ if self.whole else mask), old
        truths = all(map(_is_truth, self.parts)) and (mask is None or isinstance(old, bool | Mask))
        parts = list(map(np.asarray if truths else _number, self.parts))
        kinds = [part.dtype for part in parts]
        if mask is not None:
            first = _number(old) if not truths else np.asarray(getattr(old, "array", old))
            kinds.append(first.dtype)
        made = np.zeros(space.size, reduce(np.promote_types, kinds))
        if mask is not None:
            made.reshape(space.shape)[...] = first
        for lanes, part in zip(self.lanes, parts, strict=True):
            made[lanes] = part
        value = made.reshape(space.shape)
        if not self.whole:
            who = np.zeros(space.size, bool)
            for lanes in self.lanes:
                who[lanes] = True
            here = space.mask(who.reshape(space.shape), False)
            assert here is not None
            all_ = here.either(mask)
        return all_, space.truth(value, False) if truths else value


def _is_truth(part: Any) -> bool:
    return isinstance(part, bool) or (isinstance(part, np.ndarray) and part.dtype.kind == "b")


def _number(part: Any) -> Array:
    array = np.asarray(numeric(part))
    return array.astype(np.int64) if array.dtype.kind == "b" else array


class Leaving:
    """A loop that runs: the values of threads outside, and of those that have left."""

    def __init__(self, frame: Frame, loop: Loop, mask: Mask) -> None:
        self.frame, self.loop, self.mask = frame, loop, mask
        self.now: Mask | None = mask
        self.outside: dict[str, Bound] = {}
        self.left: dict[str, Left] | None = None
        if mask is frame.space.full:
            return
        for name in loop.assigned:
            bound = frame.bound.get(name)
            if bound is not None and bound is not mask:
                self.outside[name] = bound, frame.value(name)
                self._narrow(name, bound, mask)

    def _narrow(self, name: str, bound: Mask, mask: Mask | None) -> None:
        """From now on the name has a value only for threads of the mask."""
        frame = self.frame
        here = mask if mask is None or mask.within(bound) else mask.both(bound)
        if here is not None:
            frame.bound[name] = here
        else:
            del frame.bound[name], frame.values[name]

    def part(self, who: Mask | None, rest: Mask | None) -> Mask | None:
        """Threads leave (or return, who need nothing any more); gives the rest, which goes on."""
        frame = self.frame
        if (who is None and rest is self.now) or (rest is None and self.left is None):
            return rest  # nobody leaves, or all at once: their values are right as they stand
        if self.left is None:
            self.left = {name: Left() for name in self.loop.assigned if name in self.loop.kept}
        for name in self.loop.assigned:
            bound, left = frame.bound.get(name), self.left.get(name)
            if left is not None and who is not None:
                here = None if bound is None else who if who.within(bound) else who.both(bound)
                if here is None:
                    left.whole = False
                else:
                    left.whole &= here.count == who.count
                    left.add(frame.space, here, frame.value(name), self.loop.line)
            if rest is not None and bound is self.now:
                frame.bound[name] = rest
            elif bound is not None:
                self._narrow(name, bound, rest)
        if rest is not None and not rest.static and rest.count < self.mask.count:
            # No chain of all the masks there have been.
            rest.parent, rest.pair = self.mask, None
        self.now = rest
        return rest

    def end(self, who: Mask | None) -> None:
        """All that are still in the loop leave; ``who`` have left and not returned."""
        frame, space = self.frame, self.frame.space
        if self.left is None and not self.outside:
            return
        for name in self.loop.assigned:
            if name not in self.loop.kept:
                frame.bound.pop(name, None)
                frame.values.pop(name, None)
                continue
            bound, value = frame.bound.get(name), frame.value(name)
            if self.left is not None:
                bound, value = self.left[name].together(space, who)
            before, old = self.outside.get(name, (None, None))
            rest = before.without(self.mask) if before is not None else None
            if rest is not None and bound is None:
                bound, value = rest, old
            elif rest is not None and bound is not None:
                value = select(space, bound, value, old, self.loop.line)
                bound = before if before is not None and self.mask.within(before) and (
                    bound is self.mask) else rest.either(bound)
            if bound is None:
                frame.bound.pop(name, None)
                frame.values.pop(name, None)
            else:
                frame.bound[name], frame.values[name] = bound, value
