"""The few threads that are still in a loop go on without the others: lane compaction.

What they hold is gathered into a `Gathered` space, which has their lanes and no others; counters
still see the warps that the lanes are of. At the end of the loop it is put back.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.counters import WARP
from distlearn.kernels.errors import Place
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import Global
from distlearn.kernels.simt.access import Shared
from distlearn.kernels.simt.branches import Branches
from distlearn.kernels.simt.carried import meets
from distlearn.kernels.simt.frame import Frame
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.numbers import select
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.tiles import Fragment
from distlearn.kernels.simt.vectors import Array, Sym

if TYPE_CHECKING:
    from distlearn.kernels.simt.expressions import Expressions
    from distlearn.kernels.simt.leaving import Loop

LEAST = 2048  # threads of a space that is worth leaving
SHARE = 4  # of which at most one in so many is left
TURNS = 4  # of the loop, which take about as long as gathering


class Gathered(Space):
    """Some lanes of another space, in their order."""

    lasting = False

    def __init__(self, mask: Mask) -> None:
        self.origin, self.lanes = mask.space, mask.index
        super().__init__((1, 1, 1), (1, 1, len(self.lanes)))
        places = self.origin.slots[self.lanes]
        warps = places // WARP
        row = np.concatenate(([0], (warps[1:] != warps[:-1]).cumsum()))
        self.slots = row * WARP + places % WARP
        self.warps_per_block = int(row[-1]) + 1

    def where(self, lane: int) -> Place:
        """Block of the grid and thread of the block that a lane is."""
        return self.origin.where(int(self.lanes[lane]))

    def among_all(self, lanes: Array) -> Array:
        """Lanes of this space by their numbers among all threads."""
        return self.origin.among_all(self.lanes[lanes])

    def narrowed(self, mask: Mask) -> Mask | None:
        """Which threads of this space are in a mask of all threads."""
        outer = self.origin.narrowed(mask)
        return None if outer is None else self.mask(self._taken(outer.array), False)

    def spread(self, blocks: Array, fill: Any) -> Array:
        """Rows of these lanes with ``fill`` where their warps have others."""
        made = np.full((len(blocks), self.warps_per_block * WARP), fill, blocks.dtype)
        made[:, self.slots] = blocks
        return made

    def gather(self, value: Any) -> Any:
        """What these threads have of a value of all threads."""
        if isinstance(value, Sym):
            return value.vec.lanes(self.origin)[self.lanes].reshape(self.shape) + value.const
        if isinstance(value, Mask):
            return self.truth(self._taken(value.array), False)
        if isinstance(value, np.ndarray):
            return self._taken(value)
        if isinstance(value, tuple):
            return type(value)([self.gather(item) for item in value])
        if isinstance(value, Global) and not isinstance(value.start, int):
            return replace(value, start=Sym(self.dynamic(self.gather(value.start)), 0))
        return value

    def _taken(self, array: Array) -> Array:
        whole = array if array.shape == self.origin.shape else np.broadcast_to(
            array, self.origin.shape)
        return whole.reshape(-1)[self.lanes].reshape(self.shape)

    def bound(self, mask: Mask, here: Mask) -> Mask | None:
        """Which of these threads, those of ``here``, are in a mask of all threads."""
        return self.full if here.within(mask) else self.mask(self._taken(mask.array), False)

    def scatter(self, value: Any) -> Any:
        """A value of all threads that is theirs where they are, and anything elsewhere."""
        if isinstance(value, Mask):
            return self.origin.truth(self._placed(value.array), False)
        if isinstance(value, Sym | np.ndarray):
            return self._placed(value.array if isinstance(value, Sym) else value)
        if isinstance(value, tuple):
            return type(value)([self.scatter(item) for item in value])
        if isinstance(value, Global) and not isinstance(value.start, int):
            return replace(value, start=Sym(self.origin.dynamic(self.scatter(value.start)), 0))
        return value

    def _placed(self, array: Array) -> Array:
        whole = np.zeros(self.origin.size, array.dtype)
        whole[self.lanes] = np.broadcast_to(array, self.shape).reshape(-1)
        return whole.reshape(self.origin.shape)

    def whole(self, mask: Mask, here: Mask) -> Mask:
        """A mask of these threads, those of ``here``, as one of all threads."""
        if mask is self.full:
            return here
        made = self.origin.mask(self._placed(mask.array), False)
        assert made is not None
        made.parent = here
        return made


def independent(tree: ast.AST, code: Expressions) -> bool:
    """Whether threads that run these statements neither meet nor have arrays of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            callee = names.resolve(code.kernel, code.local, node.func)
            if isinstance(callee, Kernel):
                if not code.codes[callee].independent:
                    return False
            elif meets(callee) and not names.path_of(callee).startswith("atomic."):
                return False
    return True


def pays(frame: Frame, loop: Loop, mask: Mask, turn: int) -> bool:
    """Whether few enough threads are left in a loop, and all that they hold can be gathered."""
    space, machine = mask.space, frame.machine
    return (mask.count * SHARE <= space.size and space.size >= LEAST and turn >= TURNS
            and not mask.static and machine.trial is None and machine.compiled is None
            and all(_moves(frame.value(name)) for name in loop.mentioned))


def _moves(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_moves, value))
    return not isinstance(value, Local | Shared | Fragment)


def go_on(frame: Frame, loop: Loop, mask: Mask, rest: Callable[..., Mask | None],
          *numbers: Any) -> Mask | None:
    """Let the threads of a mask run the ``rest`` of a loop; who of them goes on behind it.

    ``rest`` takes a frame, its mask, and these numbers.
    """
    machine, outer, space = frame.machine, frame.space, Gathered(mask)
    before = machine.space, machine.places, machine.branches
    machine.space, machine.branches = space, Branches(space)
    machine.places = {name: space.gather(value) for name, value in machine.places.items()}
    inner = Frame(machine, {}, frame.path)
    for name in loop.mentioned:
        bound = frame.bound.get(name)
        here = None if bound is None else space.bound(bound, mask)
        if here is not None:
            inner.bound[name], inner.values[name] = here, space.gather(frame.value(name))
    after = rest(inner, space.full, *map(space.gather, numbers))
    machine.branches.flush()
    machine.space, machine.places, machine.branches = before
    for name in loop.assigned:
        bound = inner.bound.get(name) if name in loop.kept else None
        if bound is None:
            frame.bound.pop(name, None)
            frame.values.pop(name, None)
        else:
            frame.bound[name] = space.whole(bound, mask)
            frame.values[name] = space.scatter(inner.value(name))
    if inner.returned is not None:
        gone = space.whole(inner.returned, mask)
        if inner.result is not None:
            result = space.scatter(inner.result)
            frame.result = result if frame.returned is None else select(
                outer, gone, result, frame.result, loop.line)
        frame.returned = gone if frame.returned is None else frame.returned.either(gone)
    return None if after is None else space.whole(after, mask)
