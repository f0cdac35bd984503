"""All iterations of a loop at once, as one more axis of the space.

Tried where the source text lets it (see `carried`). A *trial* notes what the iterations touch, and
ends where that may not be one's own: then all is put back, and the loop runs step by step, as it
does after an error, so that this is the error of the first step that has one. Sums over iterations
are taken in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Global
from distlearn.kernels.oracle.arithmetic import OPERATIONS
from distlearn.kernels.simt.access import Shared, moved
from distlearn.kernels.simt.carried import Nest
from distlearn.kernels.simt.numbers import Whole, integer, numeric
from distlearn.kernels.simt.races import Iterations
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym, part

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame
    from distlearn.kernels.simt.machine import Machine

MOST = 1 << 17  # threads times iterations at once: their arrays stay in cache
MOST_CHANGES = 256  # that a trial keeps in mind
IN_PLACE = {"Add": np.add, "Sub": np.subtract, "Mult": np.multiply}


class DependentError(Exception):
    """Iterations depend on each other, or may."""


class Use(Enum):
    """How the iterations of a loop use an array, or a name that they add to."""

    READ = "they read it"
    OWN = "each reads and writes an element of its own"
    PRIVATE = "each writes all of it before it reads"
    TOTAL = "each adds to the same elements, once"


class Trial:
    """A loop that runs all iterations at once, and such loops in it."""

    def __init__(self, machine: Machine, nest: Nest) -> None:
        self.scopes: list[dict[Any, tuple[Use, Any]]] = []  # of each loop, the outermost first
        self.undo: dict[Any, Callable[[], None]] = {}  # by what was changed first
        rows = [machine.tally.row(line) for line in nest.lines]
        self.rows = [(row, row.copy()) for row in rows]
        self.logs: list[tuple[list[Any], int]] = [(log, len(log)) for log in (
            machine.interval, machine.globals, machine.unwritten)]

    def roll_back(self) -> None:
        """Put back what the trial has changed."""
        for step in reversed(self.undo.values()):
            step()
        for row, old in self.rows:
            row[:] = old
        for log, length in self.logs:
            del log[length:]

    def remember(self, key: Any, undo: Callable[[], Callable[[], None]]) -> None:
        """Something is about to change; ``undo`` gives what puts it back."""
        if key not in self.undo:
            if len(self.undo) == MOST_CHANGES:
                raise DependentError
            self.undo[key] = undo()

    def read(self, thing: Any, key: Any) -> None:
        """An array is read at a place, or at several (None)."""
        for scope in self.scopes:
            use, other = scope.setdefault(thing, (Use.READ, key))
            if use is Use.READ and other != key:
                scope[thing] = (use, None)
            elif use is Use.TOTAL or (use is Use.OWN and other != key):
                raise DependentError

    def write(self, thing: Any, key: Any, uses: list[Use]) -> None:
        """An array is written at a place; how each loop uses it, the outermost first."""
        for scope, use in zip(self.scopes, uses, strict=True):
            old, other = scope.get(thing, (None, key))
            if old is use is Use.PRIVATE:
                continue
            if other != key or (old is not None and (
                    use is not Use.OWN or old not in (Use.READ, Use.OWN))):
                raise DependentError
            scope[thing] = (use, key)

    def write_memory(self, memory: Any, size: int, at: Whole, space: Space) -> None:
        """Elements of global or shared memory are written: each iteration has its own."""
        if isinstance(at, int) or not (at.vec.static and space.separates(at.vec)):
            raise DependentError
        self.write(memory, (at.vec, at.const, size), [Use.OWN] * len(self.scopes))

    def add(self, name: str, outer: int) -> None:
        """All loops but the ``outer`` ones add to a name."""
        for scope in self.scopes[outer:]:
            if name in scope:
                raise DependentError
            scope[name] = (Use.TOTAL, None)

    def leave(self, loops: int) -> None:
        """The innermost loops end."""
        for _ in range(loops):
            for thing, (use, _) in self.scopes.pop().items():
                if use is Use.PRIVATE:
                    thing.leave(len(self.scopes))


def fits(nest: Nest, frame: Frame) -> bool:
    """Whether it has not turned out yet that a nest has to run step by step."""
    return nest not in frame.machine.serial and frame.machine.compiled is None


def at_once(nest: Nest, body: Callable[[Frame, Mask], Any], frame: Frame, mask: Mask,
            bounds: list[tuple[Any, Any, Any]]) -> bool:
    """Run a nest of loops from, to and by these numbers; False if it has to run step by step."""
    machine, outside = frame.machine, frame.space
    if not all(isinstance(n, int) for numbers in bounds for n in numbers):
        return False
    ranges = [range(*numbers) for numbers in bounds]
    if min(map(len, ranges)) < 2 or outside.size * math.prod(map(len, ranges)) > MOST:
        return False
    trial = machine.trial
    outermost = trial is None
    if trial is None:
        trial = machine.trial = Trial(machine, nest)
    values, bound, ways_out = frame.values, frame.bound, (frame.broken, frame.continued)
    logs = [(log, len(log)) for log in (machine.interval, machine.globals)]
    inside, steps, line, here = outside, {}, nest.loops[0].lineno, mask
    for name, trips in zip(nest.variables, ranges, strict=True):
        inside = inside.along(len(trips))
        step = integer(inside, line, "Mult", inside.step, trips.step, here)
        steps[name] = integer(inside, line, "Add", step, trips.start, here)
    depth, here = len(outside.trips), inside.lifted(mask)
    totals = nest.totals - frame.totals.keys()
    try:
        whole = {name: frame.value(name) for name in values}
        machine.space = frame.space = inside
        trial.scopes += [{} for _ in ranges]
        frame.values = {name: inside.lifted(value) if type(value) is Mask else value
                        for name, value in whole.items()} | steps
        frame.bound = {name: inside.lifted(who) for name, who in bound.items()} | dict.fromkeys(
            steps, here)
        frame.totals.update(dict.fromkeys(totals, depth))
        body(frame, here)
        found = frame.values
        kept = {name: last(outside, frame.value(name), len(ranges)) for name in nest.kept}
        trial.leave(len(ranges))
    except (DependentError, KernelError):
        if not outermost:
            raise
        trial.roll_back()
        frame.broken, frame.continued = ways_out
        machine.serial.add(nest)
        return False
    finally:
        machine.space, frame.space, frame.values, frame.bound = outside, outside, values, bound
        for name in totals:
            del frame.totals[name]
        if outermost:
            machine.trial = None
    for log, length in logs:
        if len(log) > length:
            log[length:] = [Iterations(inside, len(ranges), tuple(log[length:]))]
    for name in nest.dropped:
        values.pop(name, None)
        bound.pop(name, None)
    values.update({name: found[name] for name in nest.totals if name in found})
    for name, trips in zip(nest.variables, ranges, strict=True):
        frame.assign(name, trips[-1], mask, line)
    for name, value in kept.items():
        frame.assign(name, value, mask, line)
    return True


def last(outside: Space, value: Any, loops: int) -> Any:
    """What a name holds after the last iteration of so many loops, of which it may depend."""
    steps, depth = (-1,) * loops, len(outside.trips) + loops
    if isinstance(value, np.ndarray):
        return part(value, depth, steps)
    if isinstance(value, Sym):
        return moved(outside, value.vec.at(depth, steps), value.const)
    if isinstance(value, Mask):
        return outside.truth(part(value.array, depth, steps), value.static)
    if isinstance(value, tuple):
        return type(value)([last(outside, item, loops) for item in value])
    if isinstance(value, Global | Shared):
        return replace(value, start=last(outside, value.start, loops))
    return value


def added_up(kind: str, old: Any, value: Any, loops: tuple[int, ...], mask: Mask,
             dtype: np.dtype[Any] | None = None) -> Any:
    """What ``old`` is when, one after another, iterations of these loop axes have added to it.

    The axes stay, with a length of one. Each sum is rounded to ``dtype``.
    """
    trips = mask.space.trips
    whole, active = (array.reshape((1,) * (len(trips) + 6 - array.ndim) + array.shape)
                     for array in (np.asarray(numeric(value)), mask.array))
    varies = any(active.shape[loop] > 1 for loop in loops)
    result, ours, alike = numeric(old), False, False
    for steps in np.ndindex(*(trips[loop] for loop in reversed(loops))):
        index = [slice(None)] * len(trips), [slice(None)] * len(trips)
        for loop, step in zip(reversed(loops), steps, strict=True):
            for at, array in zip(index, (whole, active), strict=True):
                at[loop] = slice(step, step + 1) if array.shape[loop] > 1 else slice(None)
        item = whole[tuple(index[0])]
        if ours and alike and not varies:
            IN_PLACE[kind](result, item, out=result)
            continue
        made = OPERATIONS[kind](result, item)
        if dtype is not None:
            made = made.astype(dtype, copy=False)
        alike = isinstance(result, np.ndarray) and (made.shape, made.dtype, item.dtype) == (
            result.shape, result.dtype, result.dtype)
        result = np.where(active[tuple(index[1])], made, result) if varies else made
        ours = True
    if not varies and mask is not mask.space.full:
        result = np.where(mask.array, result, numeric(old))
    return result


class Plan(NamedTuple):
    """Elements of a local array that an index of the loops means.

    Attributes
    ----------
    key : tuple
        The index: a vector and a constant.
    trips : tuple of int
        Lengths of the loop axes from the first to the last that it depends on, or 1.
    order : slice or ndarray
        The elements in the order of those axes; ``elements`` as a list.
    covers, alone, inner : bool
        They are all of the array; no two are one; it depends on the innermost loops and no others.
    uses, totals : list of Use
        What a write, or an addition, makes of the array in each loop, the outermost first.
    missing : tuple of int
        Loop axes that it does not depend on.
    """

    key: tuple[Any, int]
    trips: tuple[int, ...]
    order: Any
    elements: list[int]
    covers: bool
    alone: bool
    inner: bool
    uses: list[Use]
    totals: list[Use]
    missing: tuple[int, ...]


def plan(at: Whole, size: int, space: Space) -> Plan | None:
    """What an index of an array of so many elements means; None if it depends on threads."""
    if isinstance(at, int):
        vec, const, array = None, at, np.full((1,) * 6, at)
    else:
        vec, const, array = at.vec, at.const, at.array
        if not vec.static or array.shape[-6:] != (1,) * 6:
            return None
    if array.min() < 0 or array.max() >= size:
        raise DependentError
    trips, flat = array.shape[:-6], array.ravel()
    depends = [n > 1 for n in (1,) * (len(space.trips) - len(trips)) + trips]
    alone = len(set(flat.tolist())) == len(flat)
    rising = np.array_equal(flat, np.arange(len(flat)) + flat[0])
    return Plan(
        (vec, const), trips, slice(int(flat[0]), int(flat[0]) + len(flat)) if rising else flat,
        flat.tolist(), alone and len(flat) == size, alone,
        depends == sorted(depends, reverse=True),
        [Use.OWN if own else Use.PRIVATE for own in reversed(depends)],
        [Use.OWN if own else Use.TOTAL for own in reversed(depends)],
        tuple(n for n, own in enumerate(depends) if not own))


def taken(whole: Array, at: Plan) -> Array:
    """Elements of an array that has them along its first axis."""
    lead = at.trips
    chosen: Array = whole[at.order]
    if whole.ndim == 7:
        return chosen.reshape(lead + whole.shape[-6:])
    private = whole.shape[1:-6]
    left = len(lead) - len(private)
    if any(n > 1 for n in lead[max(0, left):]):
        raise DependentError
    return chosen.reshape((lead[:left] if left > 0 else ()) + private + whole.shape[-6:])
