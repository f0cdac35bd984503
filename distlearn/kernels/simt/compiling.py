"""A kernel's syntax tree as closures: statements take the active mask and give who goes on.

``if`` runs both sides under their masks; ``return``, ``break`` and ``continue`` take threads out of
the mask; they come back at the end of the statement they leave (structured reconvergence).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from distlearn.kernels import names, spinning
from distlearn.kernels.errors import NO_NUMBERS, KernelError
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.simt import calls, carried
from distlearn.kernels.simt.compaction import go_on, independent, pays
from distlearn.kernels.simt.expressions import Expr, Expressions, Stmt
from distlearn.kernels.simt.frame import Frame, branch, flop, load, operate
from distlearn.kernels.simt.leaving import Leaving, loops
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.loops import IN_PLACE, at_once, fits
from distlearn.kernels.simt.numbers import (
    binary,
    compare,
    integer,
    numeric,
    same,
    select,
    truth,
    with_constant,
)
from distlearn.kernels.simt.space import Mask


class Code(Expressions):
    """A compiled function; ``do_x`` compiles an ``ast.X``."""

    def __init__(self, kernel: Kernel, codes: dict[Kernel, Code],
                 trees: dict[Kernel, ast.FunctionDef]) -> None:
        super().__init__(kernel, codes, trees)
        self.around: list[str] = []  # variables of the loops around what is compiled
        self.bodies: dict[ast.For, Stmt] = {}
        self.reads = carried.free_reads(self.tree)
        self.loops = loops(self.tree)
        self.independent = False
        self.body = self.block(self.tree.body)
        self.independent = independent(self.tree, self)

    def block(self, statements: list[ast.stmt]) -> Stmt:
        """Statements one after another, while threads are left."""
        made: list[Stmt] = []
        for node in statements:
            method = getattr(self, "do_" + type(node).__name__.lower(), None)
            if method is None:
                names.refuse_statement(node)
            made.append(method(node))

        def run(frame: Frame, mask: Mask) -> Mask | None:
            active = mask
            try:
                for statement in made:
                    after = statement(frame, active)
                    if after is None:
                        return None
                    active = after
            except KernelError as error:
                error.line = error.line or statements[made.index(statement)].lineno
                raise
            except (TypeError, ValueError) as error:
                raise KernelError("unsupported", f"{NO_NUMBERS}: {error}", line=statements[
                    made.index(statement)].lineno) from error
            return active
        return run

    def do_assign(self, node: ast.Assign) -> Stmt:
        """Compile ``assign``."""
        value = self.value(node.value)
        targets = [self.target(target) for target in node.targets]

        def run(frame: Frame, mask: Mask) -> Mask:
            result = value(frame, mask)
            for target in targets:
                target(frame, mask, result)
            return mask
        return run

    def do_annassign(self, node: ast.AnnAssign) -> Stmt:
        """Compile ``annassign``."""
        if node.value is None:
            return lambda frame, mask: mask
        return self.do_assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def target(self, node: ast.expr) -> Callable[[Frame, Mask, Any], None]:
        """The closure that assigns to a target."""
        line = node.lineno
        if isinstance(node, ast.Name):
            name = node.id
            return lambda frame, mask, value: frame.assign(name, value, mask, line)
        if isinstance(node, ast.Tuple) and all(isinstance(e, ast.Name) for e in node.elts):
            inner = [e.id for e in node.elts if isinstance(e, ast.Name)]

            def unpack(frame: Frame, mask: Mask, value: Any) -> None:
                if not isinstance(value, tuple) or len(value) != len(inner):
                    raise KernelError("unsupported", f"{len(inner)} names want {len(inner)} values",
                                      line=line)
                for name, item in zip(inner, value, strict=True):
                    frame.assign(name, item, mask, line)
            return unpack
        if not isinstance(node, ast.Subscript):
            names.refuse(node, f"cannot assign to {ast.unparse(node)}")
        base, index = self.value(node.value), self.value(node.slice)
        self.stores_to(node.value)

        def store(frame: Frame, mask: Mask, value: Any) -> None:
            array, at = base(frame, mask), index(frame, mask)
            if isinstance(array, Local):
                array.store(line, at, value, mask)
            else:
                frame.machine.store(line, calls.array(array, line), at, value, mask)
        return store

    def do_augassign(self, node: ast.AugAssign) -> Stmt:
        """Compile ``augassign``."""
        kind, line, value = type(node.op).__name__, node.lineno, self.value(node.value)
        if isinstance(node.target, ast.Name):
            name = node.target.id
            fresh = isinstance(node.value, ast.BinOp)  # its array belongs to nobody yet
            quick = with_constant(kind, node.target, node.value)

            def update(frame: Frame, mask: Mask) -> Mask:
                if name in frame.totals:
                    frame.add_up(name, line, kind, value(frame, mask), mask)
                    return mask
                old = frame.read(name, mask, line)
                new = quick(old) if quick is not None else None
                if new is None:
                    new = operate(frame, line, kind, old, value(frame, mask), mask, fresh)
                frame.assign(name, new, mask, line)
                return mask
            return update
        if not isinstance(node.target, ast.Subscript):
            names.refuse(node, f"cannot assign to {ast.unparse(node.target)}")
        base, index = self.value(node.target.value), self.value(node.target.slice)
        self.stores_to(node.target.value)

        def change(frame: Frame, mask: Mask) -> Mask:
            array, at = base(frame, mask), index(frame, mask)
            if frame.machine.trial is not None and type(array) is Local and kind in IN_PLACE and (
                    array.sums(line, at, mask)):
                array.add_up(line, kind, at, value(frame, mask), mask)
                flop(frame.machine, line, mask)
                return mask
            old = load(frame, line, array, at, mask)
            new = operate(frame, line, kind, old, value(frame, mask), mask)
            if isinstance(array, Local):
                array.store(line, at, new, mask)
            else:
                frame.machine.store(line, array, at, new, mask)
            return mask
        return change

    def do_if(self, node: ast.If) -> Stmt:
        """Compile ``if``."""
        test, line = self.value(node.test), node.test.lineno
        body = self.block(node.body)
        other = self.block(node.orelse) if node.orelse else None

        def run(frame: Frame, mask: Mask) -> Mask | None:
            yes, no = branch(frame, line, test(frame, mask), mask)
            after = body(frame, yes) if yes is not None else None
            rest = other(frame, no) if no is not None and other is not None else no
            return _together(mask, after, rest)
        return run

    def do_while(self, node: ast.While) -> Stmt:
        """Compile ``while``."""
        if node.orelse:
            names.refuse(node, "while ... else is not part of the language of kernels")
        test, line, body = self.value(node.test), node.test.lineno, self.block(node.body)
        decisive, loop = sorted(spinning.decisive(node) & self.local), self.loops[node]
        apart = independent(node, self)

        def run(frame: Frame, mask: Mask) -> Mask | None:
            outer, frame.broken = (frame.broken, frame.continued), None
            returned, leaving = frame.returned, Leaving(frame, loop, mask)
            active: Mask | None = mask
            machine = frame.machine
            machine.watching += 1
            state: list[Any] = []
            turn = 0
            while active is not None:
                if apart and pays(frame, loop, active, turn):
                    active = leaving.part(go_on(frame, loop, active, run), None)
                    break
                # A turn that changes nothing repeats for ever: turns 2, 4, 8 ... are enough.
                start = turn & (turn - 1) == 0
                if start or (turn - 1) & (turn - 2) == 0:
                    now = [active, *(machine.state(frame.value(n)) for n in decisive)]
                    if not start and _repeats(state, now):
                        raise KernelError("spin_wait", spinning.WAITS, line=node.lineno,
                                          **active.first)
                    state = now
                turn += 1
                here, no = branch(frame, line, test(frame, active), active)
                active = leaving.part(no, here)
                if active is not None:
                    active = _iterate(frame, body, active, leaving)
            machine.watching -= 1
            return _end(frame, leaving, outer, returned)
        return run

    def do_for(self, node: ast.For) -> Stmt:
        """Compile ``for``."""
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        bounds = [self.value(a) for a in node.iter.args]
        name, line, loop = node.target.id, node.lineno, self.loops[node]
        self.around.append(name)
        body = self.bodies[node] = self.block(node.body)
        self.around.pop()
        nest = carried.nest(node, {*self.around}, self.reads, partial(
            names.resolve, self.kernel, self.local))
        heads = [] if nest is None else [
            [self.value(a) for a in inner.iter.args] for inner in nest.loops[1:]
            if isinstance(inner.iter, ast.Call)]
        innermost = body if nest is None else self.bodies[nest.loops[-1]]
        apart = independent(node, self)

        def run(frame: Frame, mask: Mask) -> Mask | None:
            start, stop, step = _range(bounds, frame, mask)
            if nest is not None and fits(nest, frame) and at_once(
                    nest, innermost, frame, mask,
                    [(start, stop, step), *(_range(head, frame, mask) for head in heads)]):
                return mask
            return turns(frame, mask, start, stop, step)

        def turns(frame: Frame, mask: Mask, start: Any, stop: Any, step: Any) -> Mask | None:
            outer, frame.broken = (frame.broken, frame.continued), None
            returned, leaving = frame.returned, Leaving(frame, loop, mask)
            active: Mask | None = mask
            uniform = all(isinstance(n, int) for n in (start, stop, step))
            at, space, n = start, frame.space, 0
            if uniform:
                trips = len(range(start, stop, step))
            while active is not None:
                if apart and pays(frame, loop, active, n):
                    active = leaving.part(
                        go_on(frame, loop, active, turns, at, stop, step), None)
                    break
                if uniform:
                    if n == trips:
                        active = leaving.part(active, None)
                        break
                else:
                    going = truth(space, _going(frame, line, at, stop, step))
                    here, no = active.split(going) if isinstance(going, Mask) else (
                        (active, None) if going else (None, active))
                    active = leaving.part(no, here)
                    if active is None:
                        break
                frame.assign(name, at, active, line)
                active = _iterate(frame, body, active, leaving)
                n += 1
                at = start + n * step if uniform else binary(
                    space, line, "Add", at, step, mask)
            return _end(frame, leaving, outer, returned)
        return run

    def do_expr(self, node: ast.Expr) -> Stmt:
        """Compile ``expr``."""
        if isinstance(node.value, ast.Constant):
            return lambda frame, mask: mask  # a docstring
        self.unused = node.value
        value = self.value(node.value)

        def run(frame: Frame, mask: Mask) -> Mask:
            value(frame, mask)
            return mask
        return run

    def do_return(self, node: ast.Return) -> Stmt:
        """Compile ``return``."""
        value, line = self.value(node.value) if node.value else None, node.lineno

        def run(frame: Frame, mask: Mask) -> None:
            if value is not None:
                result = value(frame, mask)
                frame.result = result if frame.returned is None else select(
                    frame.space, mask, result, frame.result, line)
            frame.returned = mask if frame.returned is None else frame.returned.either(mask)
        return run

    def do_break(self, node: ast.Break) -> Stmt:
        """Compile ``break``."""
        def run(frame: Frame, mask: Mask) -> None:
            frame.broken = mask if frame.broken is None else mask.either(frame.broken)
        return run

    def do_continue(self, node: ast.Continue) -> Stmt:
        """Compile ``continue``."""
        def run(frame: Frame, mask: Mask) -> None:
            frame.continued = mask if frame.continued is None else mask.either(frame.continued)
        return run

    def do_pass(self, node: ast.Pass) -> Stmt:
        """Compile ``pass``."""
        return lambda frame, mask: mask


def _range(bounds: list[Expr], frame: Frame, mask: Mask) -> tuple[Any, Any, Any]:
    """Where the variable of a loop starts and stops, and its step."""
    numbers = [bound(frame, mask) for bound in bounds]
    return (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]


def _going(frame: Frame, line: int, at: Any, stop: Any, step: Any) -> Any:
    space = frame.space
    if isinstance(step, int):
        return compare(space, line, "Lt" if step > 0 else "Gt", at, stop)
    rest = integer(space, line, "Sub", stop, at, space.full) if all(
        not isinstance(v, np.ndarray) for v in (stop, at)) else numeric(stop) - numeric(at)
    signed = np.asarray(numeric(rest) * np.sign(numeric(step)))
    return space.truth(np.asarray(signed > 0), False)


def _iterate(frame: Frame, body: Stmt, mask: Mask, leaving: Leaving) -> Mask | None:
    """One iteration of a loop by the threads of a mask; who goes on to the next."""
    frame.continued = None
    active = _together(mask, body(frame, mask), frame.continued)
    if active is not mask:
        active = leaving.part(frame.broken, active)
        frame.broken = None
    return active


def _end(frame: Frame, leaving: Leaving, outer: tuple[Mask | None, Mask | None],
         returned: Mask | None) -> Mask | None:
    """A loop has ended: who goes on behind it, where some have returned."""
    mask = leaving.mask
    done = mask if frame.returned is returned else mask.without(frame.returned)
    leaving.end(done)
    frame.broken, frame.continued = outer
    return done


def _together(mask: Mask, a: Mask | None, b: Mask | None) -> Mask | None:
    """Two parts of a mask that have no thread in common."""
    if a is None or b is None:
        return b if a is None else a
    if a.count + b.count == mask.count:
        return mask
    made = a.either(b)
    if made.parent is None and not made.static and made.count < mask.count:
        made.parent = mask
    return made


def _repeats(before: list[Any], now: list[Any]) -> bool:
    """Whether the same threads are in the same state as before."""
    mask = now[0]
    return mask.count == before[0].count and all(
        same(a, b, mask) for a, b in zip(before, now, strict=True))
