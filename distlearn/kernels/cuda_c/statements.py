"""Statements of a kernel in C as Python's."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c import rules, survey, types
from distlearn.kernels.cuda_c.intrinsics import Intrinsics
from distlearn.kernels.cuda_c.source import walk
from distlearn.kernels.cuda_c.types import CType, Number
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Address,
    Nothing,
    Record,
    Result,
    Value,
    call,
    name,
    number,
    stamp,
)
from distlearn.kernels.cuda_c.variables import Cell, Scalar

MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
MOST = 2**31 - 1


class Statements(Intrinsics):
    """The part of a function's translation that follows its control flow."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tails: list[Callable[[], None]] = []  # what `continue` still has to do

    def statement(self, node: Any) -> None:
        """Translate a statement."""
        if getattr(node, "coord", None) is not None:
            self.line = node.coord.line
        method = getattr(self, "do_" + type(node).__name__.lower(), None)
        if method is not None:
            method(node)
        elif isinstance(node, c_ast.Decl):
            self.declare(node)
        elif isinstance(node, c_ast.Pragma | c_ast.EmptyStatement | c_ast.Typedef):
            if isinstance(node, c_ast.Typedef):
                self.source.types[node.name] = self.source.type_of(node.type, node.name)
        else:
            self.effect(node)

    def body(self, node: Any) -> list[ast.stmt]:
        """A statement's translation as a block of its own."""
        line = self.line
        with self.collected() as made:
            self.scopes.append({})
            if node is not None:
                self.statement(node)
            self.scopes.pop()
        self.line = line
        if not made:
            made.append(ast.Pass())
            stamp(made[0], line)
        return made

    def do_compound(self, node: Any) -> None:
        """Translate ``{...}``."""
        self.scopes.append({})
        for part in node.block_items or ():
            self.statement(part)
        self.scopes.pop()

    def do_decllist(self, node: Any) -> None:
        """Translate declarations."""
        for part in node.decls:
            self.declare(part)

    def do_if(self, node: Any) -> None:
        """Translate ``if``."""
        test = self.truth(node.cond)
        yes = self.body(node.iftrue)
        no = self.body(node.iffalse) if node.iffalse is not None else []
        self.line = node.coord.line
        self.emit(ast.If(test, yes, no))

    def do_return(self, node: Any) -> None:
        """Translate ``return``."""
        if node.expr is None:
            self.emit(ast.Return(None))
            return
        if self.function.result == types.VOID:
            self.no(f"{self.function.name} returns nothing", node)
        made = self.to(self.result(node.expr), self.function.result, node)
        self.emit(ast.Return(flat(made)))

    def do_break(self, node: Any) -> None:
        """Translate ``break``."""
        if not self.tails:
            self.no("break outside of a loop", node)
        self.emit(ast.Break())

    def do_continue(self, node: Any) -> None:
        """Translate ``continue``."""
        if not self.tails:
            self.no("continue outside of a loop", node)
        self.tails[-1]()
        self.emit(ast.Continue())

    # ---- loops

    def do_for(self, node: Any) -> None:
        """Translate ``for``: over a ``range`` if it counts, else as ``while``."""
        self.scopes.append({})
        if not self._counted(node):
            if node.init is not None:
                if isinstance(node.init, c_ast.DeclList):
                    self.do_decllist(node.init)
                else:
                    self.effect(node.init)
            self._loop(node, node.cond, node.next)
        self.scopes.pop()

    def do_while(self, node: Any) -> None:
        """Translate ``while``."""
        self._loop(node, node.cond, None)

    def _loop(self, node: Any, cond: Any, after: Any) -> None:
        """A loop with a test before its body and a step after it."""
        test: ast.expr = ast.Constant(True)
        before: list[ast.stmt] = []
        if cond is not None:
            with self.collected() as before:
                test = self.truth(cond)
        self.out += before

        def tail() -> None:
            if after is not None:
                self.effect(after)
            self.out += copy.deepcopy(before)

        body = self._body_and_tail(node, tail)
        self.emit(ast.While(test, body, []))

    def _body_and_tail(self, node: Any, tail: Callable[[], None]) -> list[ast.stmt]:
        """A loop's body, and what each turn ends with; ``continue`` does that, too."""
        self.tails.append(tail)
        body = self.body(node.stmt)
        with self.collected() as end:
            tail()
        self.tails.pop()
        self.line = node.coord.line
        return body + end

    def do_dowhile(self, node: Any) -> None:
        """Translate ``do``: the body once and then a ``while``, or a loop that ends itself."""
        declares = any(isinstance(part, c_ast.Decl) and self.source.marks(part)
                       for part in walk(node.stmt))
        simple = not (declares or survey.leaves(node.stmt, c_ast.Break)
                      or survey.leaves(node.stmt, c_ast.Continue))
        if simple:
            self.out += self.body(node.stmt)
            found = self.source.fold(node.cond)
            if found is None or found.value:  # do {...} while (0) is how macros are written
                self._loop(node, node.cond, None)
            return

        def tail() -> None:
            test = self.truth(node.cond)
            stop = ast.Break()
            stamp(stop, self.line)
            self.emit(ast.If(ast.UnaryOp(ast.Not(), test), [stop], []))

        self.tails.append(tail)
        body = self.body(node.stmt)
        with self.collected() as end:
            tail()
        self.tails.pop()
        self.line = node.coord.line
        self.emit(ast.For(ast.Name(self.fresh("_turn"), ast.Store()), call(
            "range", number(MOST)), body + end, []))

    # ---- loops that count

    def _counted(self, node: Any) -> bool:
        """Translate a loop over a ``range`` if its variable, bound and step allow it."""
        found = self._variable(node.init)
        test = node.cond
        if found is None or not isinstance(test, c_ast.BinaryOp) or test.op not in MIRROR:
            return False
        variable, kind, start_node, named = found
        left, op, right = test.left, test.op, test.right
        if isinstance(right, c_ast.ID) and right.name == variable:
            left, op, right = right, MIRROR[op], left
        steps = list(node.next.exprs) if isinstance(node.next, c_ast.ExprList) else [node.next]
        stepped = next(filter(None, (self._step_of(part, variable) for part in steps)), None)
        if not (isinstance(left, c_ast.ID) and left.name == variable) or stepped is None:
            return False
        step_node, sign = stepped
        others = [part for part in steps if self._step_of(part, variable) is None]
        whole = c_ast.Compound([node.stmt, *others])
        if not self._steady(whole, variable, right) or not (
                step_node is None or self._steady(whole, variable, step_node)):
            return False
        with self.collected() as extra:
            start = self.convert(self.value(start_node), kind)
            stop = self.result(right)
            step = self.value(step_node) if step_node is not None else Value(
                number(1), types.INT, (1, 1), True)
        if extra or not isinstance(stop, Value) or not (
                stop.type.is_integer and step.type.is_integer):
            return False
        return self._range(node, (variable, kind, named), others, op, sign, start, stop, step)

    def _range(self, node: Any, loop: tuple[str, Number, Scalar | None], others: list[Any],
               op: str, sign: int, start: Value, stop: Value, step: Value) -> bool:
        variable, kind, named = loop
        up = op in ("<", "<=")
        if (sign > 0) != up or step.bounds[0] <= 0:
            return False
        meet = types.common(kind, stop.type)
        if meet.kind == "u" and (start.bounds[0] < 0 or not up):
            return False
        stop, step = self.convert(stop, meet), self.settled(step)
        low, high = start.bounds[0], start.bounds[1]
        if up:
            high = max(high, stop.bounds[1] - (op == "<"))
        else:
            low = min(low, stop.bounds[0] + (op == ">"))
        if op in ("<=", ">="):
            one = Value(number(1), types.INT, (1, 1), True)
            stop = self.arithmetic("+" if up else "-", stop, one)
        bounds = (max(low, kind.bounds[0]), min(high, kind.bounds[1]))
        held = named.name if named is not None else self.fresh(variable)
        parts = [start.code, stop.code]
        if not up:
            parts.append(ast.UnaryOp(ast.USub(), step.code) if step.bounds[0] != step.bounds[1]
                         else number(-step.bounds[0]))
        elif step.bounds != (1, 1):
            parts.append(step.code)
        elif start.bounds == (0, 0):
            parts = parts[1:]
        self.scopes[-1][variable] = Scalar(held, kind, bounds)

        def tail() -> None:
            for part in others:
                self.effect(part)

        body = self._body_and_tail(node, tail)
        self.emit(ast.For(ast.Name(held, ast.Store()), call("range", *parts), body, []))
        return True

    def _variable(self, init: Any) -> tuple[str, Number, Any, Scalar | None] | None:
        """A loop's variable: its name, type and first value, and itself if declared before."""
        if isinstance(init, c_ast.DeclList) and len(init.decls) == 1 and init.decls[0].init:
            decl = init.decls[0]
            kind = self.source.type_of(decl.type)
            if isinstance(kind, Number) and kind.is_integer:
                return decl.name, kind, decl.init, None
        if isinstance(init, c_ast.Assignment) and init.op == "=" and isinstance(
                init.lvalue, c_ast.ID):
            named = self.find(init.lvalue)
            if isinstance(named, Scalar) and named.type.is_integer and self._only_loops(
                    init.lvalue.name):
                return init.lvalue.name, named.type, init.rvalue, named
        return None

    def _only_loops(self, variable: str) -> bool:
        """Whether a name is used in loops alone that begin by giving it a value."""
        def uses(node: Any) -> int:
            return sum(isinstance(part, c_ast.ID) and part.name == variable
                       for part in walk(node))

        def in_loops(node: Any) -> int:
            if isinstance(node, c_ast.For) and isinstance(node.init, c_ast.Assignment) and \
                    isinstance(node.init.lvalue, c_ast.ID) and node.init.lvalue.name == variable:
                return uses(node)
            return sum(in_loops(child) for _, child in node.children())

        return uses(self.function.body) == in_loops(self.function.body)

    def _step_of(self, node: Any, variable: str) -> tuple[Any, int] | None:
        """The step and its sign; the step is None for 1."""
        def is_it(at: Any) -> bool:
            return isinstance(at, c_ast.ID) and at.name == variable

        if isinstance(node, c_ast.UnaryOp) and node.op in rules.STEPS and is_it(node.expr):
            return None, 1 if "+" in node.op else -1
        if isinstance(node, c_ast.Assignment) and is_it(node.lvalue):
            if node.op in ("+=", "-="):
                return node.rvalue, 1 if node.op == "+=" else -1
            made = node.rvalue
            if node.op == "=" and isinstance(made, c_ast.BinaryOp) and made.op in ("+", "-"):
                if is_it(made.left):
                    return made.right, 1 if made.op == "+" else -1
                if is_it(made.right) and made.op == "+":
                    return made.left, 1
        return None

    def _steady(self, node: Any, variable: str, bound: Any) -> bool:
        """Whether a loop's body leaves a bound, and the loop's variable, as they are."""
        inside = survey.changed(node)
        names = survey.used(bound)
        if variable in inside or variable in names or names & inside or survey.calls(bound):
            return False
        in_memory = survey.loads(bound) or any(
            isinstance(self.find(c_ast.ID(word)), Cell) for word in names)
        return variable not in self.survey.boxed and not (in_memory and survey.writes(node))

    def do_switch(self, node: Any) -> None:
        """Translate ``switch`` whose cases do not fall through."""
        value = self.keep(self.settled(self.value(node.cond)), "_case")
        assert isinstance(value, Scalar)
        cases: list[tuple[list[Any], list[Any]]] = []
        for part in (node.stmt.block_items or ()):
            labels: list[Any] = []
            while isinstance(part, c_ast.Case | c_ast.Default):
                labels.append(part.expr if isinstance(part, c_ast.Case) else None)
                inner = part.stmts or []
                part = inner[0] if len(inner) == 1 and isinstance(
                    inner[0], c_ast.Case | c_ast.Default) else inner
            if not labels:
                self.no("a statement before the first case", node)
            if cases and not cases[-1][1]:  # `case 1: case 2:`
                labels = cases.pop()[0] + labels
            cases.append((labels, part))
        chain: list[ast.stmt] = []
        for place, (labels, statements) in reversed(list(enumerate(cases))):
            last = statements[-1] if statements else None
            if isinstance(last, c_ast.Compound):
                last = last.block_items[-1] if last.block_items else None
            if place < len(cases) - 1 and not isinstance(
                    last, c_ast.Break | c_ast.Return | c_ast.Continue):
                self.no("a case that falls through into the next is not modelled", node)
            if None in labels and place < len(cases) - 1:
                self.no("default must be the last case", node)
            block = self.body(c_ast.Compound(self._without_break(statements, node)))
            if None in labels:
                chain = block
                continue
            tests = [ast.Compare(name(value.name), [ast.Eq()], [self.convert(
                self.value(label), value.type).code]) for label in labels]
            test: ast.expr = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), list(tests))
            made = ast.If(test, block, chain)
            stamp(made, node.coord.line)
            chain = [made]
        self.out += chain

    def _without_break(self, statements: list[Any], node: Any) -> list[Any]:
        kept = list(statements)
        if kept and isinstance(kept[-1], c_ast.Compound):
            kept[-1] = c_ast.Compound(self._without_break(kept[-1].block_items or [], node))
        elif kept and isinstance(kept[-1], c_ast.Break):
            kept.pop()
        if any(survey.leaves(part, c_ast.Break) for part in kept):
            self.no("break in the middle of a case is not modelled", node)
        return kept


def flat(made: Result) -> ast.expr:
    """A result as one Python value: a number, or a tuple of numbers and arrays."""
    parts = list(parts_of(made))
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


def parts_of(made: Result) -> list[ast.expr]:
    """What a result is passed as."""
    if isinstance(made, Value):
        return [made.code]
    if isinstance(made, Address):
        return [ast.Constant(0) if made.base is None else name(made.base), made.at.code]
    if isinstance(made, Record):
        return [part for inner in made.fields.values() for part in parts_of(inner)]
    assert isinstance(made, Nothing)
    return [made.code]


def names_of(kind: CType, wanted: Callable[[], str]) -> tuple[list[str], Callable[[], Result]]:
    """Names for the parts of a type, and what they make together."""
    if isinstance(kind, Number):
        word = wanted()
        return [word], lambda: Value(name(word), kind, kind.bounds if kind.is_integer else WIDE,
                                     True)
    if isinstance(kind, types.Pointer):
        base, at = wanted(), wanted()
        return [base, at], lambda: Address(base, Value(name(at), types.LONG, WIDE, True), kind)
    assert isinstance(kind, types.Struct)
    inner = {field: names_of(part, wanted) for field, part in kind.fields}
    return [word for words, _ in inner.values() for word in words], lambda: Record(
        kind, {field: make() for field, (_, make) in inner.items()})
