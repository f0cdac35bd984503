"""Variables of a function that runs, and the steps that statements and expressions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Constant, indices_of
from distlearn.kernels.simt import calls, tiles
from distlearn.kernels.simt.access import view
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.loops import IN_PLACE, DependentError, added_up
from distlearn.kernels.simt.numbers import binary, integer, is_real, select, truth
from distlearn.kernels.simt.space import Mask, Sym
from distlearn.kernels.simt.tiles import Fragment

if TYPE_CHECKING:
    from distlearn.kernels.simt.machine import Machine

FLOPS, BRANCHES, DIVERGENT = INDEX["flops"], INDEX["branches"], INDEX["divergent_branches"]


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
                bound is not self.space.full and bound.without(mask) is None):
            self.bound[name] = mask
        else:
            value = select(self.space, mask, value, self.values[name], line)
            self.bound[name] = bound.either(mask)
        self.values[name] = value

    def read(self, name: str, mask: Mask, line: int) -> Any:
        """The value of a name, which must be bound in the threads of the mask."""
        bound = self.bound.get(name)
        if bound is not mask and bound is not self.space.full:
            missing = mask.without(bound)
            if missing is not None:
                raise KernelError("unbound_variable", f"{name} is read by threads that have not "
                                  "assigned it", line=line, **missing.first)
        return self.values[name]


    def add_up(self, name: str, line: int, kind: str, value: Any, mask: Mask) -> None:
        """All iterations of loops add to a name."""
        old, outer, trial = self.read(name, mask, line), self.totals[name], self.machine.trial
        if trial is None or not (is_real(old) and is_real(value)):
            raise DependentError
        trial.add(name, outer)
        loops = len(self.space.trips) - outer
        total = added_up(kind, old, value, tuple(range(loops)), mask)
        self.values[name] = total.reshape(total.shape[loops:])
        flop(self.machine, line, mask)


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
    test = truth(frame.space, value)
    row = frame.machine.tally.row(line)
    row[BRANCHES] += mask.warps
    if not isinstance(test, Mask):
        return (mask, None) if test else (None, mask)
    yes, no = mask.both(test), mask.without(test)
    if yes is not None and no is not None:
        key = ("divergent", yes)
        torn = mask.memo.get(key)
        if torn is None:
            torn = int(np.count_nonzero((yes.lane_bits != 0) & (no.lane_bits != 0)))
            if mask.static and yes.static:
                mask.memo[key] = torn
        row[DIVERGENT] += torn
    return yes, no
