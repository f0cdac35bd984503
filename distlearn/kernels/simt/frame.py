"""Variables of a function that runs, and the steps that statements and expressions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Constant, indices_of
from distlearn.kernels.simt import calls, tiles
from distlearn.kernels.simt.access import view
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.loops import IN_PLACE, DependentError, added_up
from distlearn.kernels.simt.numbers import binary, integer, is_real, select, truth
from distlearn.kernels.simt.space import Mask
from distlearn.kernels.simt.tiles import Fragment
from distlearn.kernels.simt.vectors import Sym

if TYPE_CHECKING:
    from distlearn.kernels.simt.machine import Machine

FLOPS = INDEX["flops"]
WHOLE = (int, Sym)


class Frame:
    """Variables of a function that runs: values, and in which threads they are bound."""

    def __init__(self, machine: Machine, arguments: dict[str, Any], path: tuple[int, ...] = ()
                 ) -> None:
        self.machine, self.space = machine, machine.space
        self.values = arguments
        self.bound: dict[str, Mask] = dict.fromkeys(arguments, machine.space.full)
        self.path = path
        self.returned: Mask | None = None
        self.result: Any = None
        self.broken: Mask | None = None
        self.continued: Mask | None = None
        self.totals: dict[str, int] = {}  # names that loops at once add to; loops around those

    def assign(self, name: str, value: Any, mask: Mask, line: int) -> None:
        """Bind a name in the threads of the mask."""
        bound = self.bound.get(name)
        if bound is None or bound is mask or mask is self.space.full or (
                not mask.within(bound) and bound.without(mask) is None):
            self.bound[name] = mask
        else:
            old = self.values[name]
            if not mask.within(bound):
                value = select(self.space, mask, value, self.value(name), line)
                self.bound[name] = bound.either(mask)
            elif type(old) is Later and old.mask is mask:
                value = Later(mask, value, old.old, line)
            elif type(old) is Later and mask.parent is bound and mask.beside(old.mask):
                value = Later(mask, value, old.new, line)
            else:
                value = Later(mask, value, self.value(name), line)
        self.values[name] = value

    def read(self, name: str, mask: Mask, line: int) -> Any:
        """The value of a name, which must be bound in the threads of the mask."""
        bound = self.bound.get(name)
        if bound is not mask and (bound is None or not mask.within(bound)):
            missing = mask.without(bound)
            if missing is not None:
                raise KernelError("unbound_variable", f"{name} is read by threads that have not "
                                  "assigned it", line=line, **missing.first)
        value = self.values[name]
        if type(value) is Later:
            return value.new if value.mask is mask else (
                value.old if mask.beside(value.mask) else self.value(name))
        return value

    def value(self, name: str) -> Any:
        """A name's value in all threads that have it; None without any."""
        value = self.values.get(name)
        if type(value) is Later:
            value = self.values[name] = select(
                self.space, value.mask, value.new, value.old, value.line)
        return value

    def add_up(self, name: str, line: int, kind: str, value: Any, mask: Mask) -> None:
        """All iterations of loops add to a name."""
        self.read(name, mask, line)
        old, outer, trial = self.value(name), self.totals[name], self.machine.trial
        if trial is None or not (is_real(old) and is_real(value)):
            raise DependentError
        trial.add(name, outer)
        loops = len(self.space.trips) - outer
        total = added_up(kind, old, value, tuple(range(loops)), mask)
        self.values[name] = total.reshape(total.shape[loops:])
        flop(self.machine, line, mask)


class Later(NamedTuple):
    """A value in the threads of a mask, another in others, put together if they are to be read."""

    mask: Mask
    new: Any
    old: Any
    line: int


def load(frame: Frame, line: int, base: Any, at: Any, mask: Mask) -> Any:
    """An element of an array, or an item of a tuple."""
    if type(base) is Local:
        return base.load(line, at, mask)
    if isinstance(base, tuple):
        return calls.pick(frame.space, line, base, at, mask)
    array = calls.array(base, line)
    if type(at) is tuple or len(array.shape) > 1 or isinstance(at, slice):
        indices, part = indices_of(at, len(array.shape), line)
        if part:
            return view(frame.space, line, array, indices, mask)
    if type(array) is Constant:
        return frame.machine.constant(line, array, at, mask)
    return frame.machine.load(line, array, at, mask)


def operate(frame: Frame, line: int, kind: str, a: Any, b: Any, mask: Mask,
            fresh: bool = False) -> Any:
    """A binary operation, and its floating-point operations counted.

    The result may lie where ``b`` did if that is ``fresh``: nothing else has its array.
    """
    if type(a) in WHOLE and type(b) in WHOLE:
        result = integer(frame.space, line, kind, a, b, mask)
        if type(result) not in WHOLE:
            flop(frame.machine, line, mask)
        return result
    if fresh and type(a) is type(b) is np.ndarray and kind in IN_PLACE and (
            a.shape == b.shape and a.dtype == b.dtype and a.dtype.kind == "f"):
        flop(frame.machine, line, mask)
        return IN_PLACE[kind](a, b, out=b)
    if type(a) is Fragment or type(b) is Fragment:
        return tiles.operate(frame, line, kind, a, b, mask)
    result = binary(frame.space, line, kind, a, b, mask)
    if is_real(result):
        flop(frame.machine, line, mask)
    return result


def flop(machine: Machine, line: int, mask: Mask) -> None:
    """Count one floating-point operation of every active thread."""
    machine.tally.row(line)[FLOPS] += mask.count
    if machine.compiled is not None:
        machine.compiled.done[mask] += 1


def branch(frame: Frame, line: int, value: Any, mask: Mask) -> tuple[Mask | None, Mask | None]:
    """Count a test, and split the active threads by it."""
    test = value if type(value) is Mask else truth(frame.space, value)
    machine = frame.machine
    row = machine.tally.row(line)
    if not isinstance(test, Mask):
        machine.branches.count(row, mask)
        return (mask, None) if test else (None, mask)
    yes, no = mask.split(test)
    machine.branches.count(row, mask, yes if no is not None else None)
    return yes, no
