"""Axes and masks.

Every value is uniform (a Python or numpy scalar), a `Sym`, or an array that broadcasts to the axes
(gz, gy, gx, bz, by, bx). A `Sym` is a constant plus a `Vec`: multiples of basis vectors. Equal
expressions give the same `Vec` object, so what was found out about one (its least and greatest
value, the sectors it touches) is looked up the next time, by identity.

Iterations of a loop that do not depend on each other run at once: `Space.along` has one axis more,
in front of the others, so that values of the space without it broadcast (see `loops`).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from distlearn.kernels.counters import WARP
from distlearn.kernels.errors import Place
from distlearn.kernels.simt.vectors import Array, Sym, Vec, part, sym

AXES = {"gz": 0, "gy": 1, "gx": 2, "bz": 3, "by": 4, "bx": 5}


class Mask:
    """Which threads take part: some, never none (that is None) and rarely all (`Space.full`)."""

    def __init__(self, space: Space, array: Array, static: bool, count: int) -> None:
        self.space, self.array, self.static = space, array, static
        self.count = count * (space.size // array.size)  # active threads
        self.parent: Mask | None = None  # one that has all of these threads and more
        self.pair: object = None  # the same of two that make up their parent
        self.memo: dict[Any, Any] = {}

    def at(self, steps: tuple[int, ...]) -> Mask | None:
        """The threads of a space without loops that take part in one iteration of them all."""
        root = self.space.root
        key = ("at", steps if self.array.ndim > 6 else ())
        if key not in self.memo:
            array = part(self.array, len(self.space.trips), steps)
            self.memo[key] = root.full if self is self.space.full else root.mask(
                array, self.static)
        found: Mask | None = self.memo[key]
        return found

    @property
    def always(self) -> Mask | None:
        """The threads of a space without loops that take part; None if that differs in loops."""
        return self.at(()) if self.array.ndim == 6 else None

    @property
    def first(self) -> Place:
        """Block and thread of the first active lane."""
        return self.space.place(int(self.index[0]))

    @cached_property
    def warps(self) -> int:
        """Warps with active threads."""
        return int(np.count_nonzero(self.lane_bits))

    @cached_property
    def lane_bits(self) -> Array:
        """One number a warp: a bit for each active lane."""
        return np.packbits(self.rows, axis=None, bitorder="little").view(np.uint32)

    @cached_property
    def rows(self) -> Array:
        """One row a warp, 32 wide, False where a warp has no thread."""
        return self.space.rows(self.array, False)

    @cached_property
    def flat(self) -> Array:
        """True or False for every thread."""
        array, shape = self.array, self.space.shape
        return (array if array.shape == shape else np.broadcast_to(array, shape)).ravel()

    @cached_property
    def index(self) -> Array:
        """Numbers of the active threads."""
        array = self.array if self.array.shape == self.space.shape else self.flat
        return array.reshape(-1).nonzero()[0]

    @property
    def lanes(self) -> Array:
        """The same without loops and with all threads in the space."""
        root = self.space.root
        return root.among_all(self.index % root.size if self.space.trips else self.index)

    def _known(self, key: Any, array: Any, static: bool) -> Mask | None:
        if not static:
            return self.space.mask(array(), False)
        if key not in self.memo:
            self.memo[key] = self.space.mask(array(), True)
        found: Mask | None = self.memo[key]
        return found

    def part(self, array: Array) -> Mask | None:
        """The threads of this one where data say so: itself if they are all."""
        array = self.array & array
        count = int(np.count_nonzero(array))
        if not count:
            return None
        made = Mask(self.space, array, False, count)
        if made.count == self.count:
            return self
        made.parent = self
        return made

    def beside(self, other: Mask) -> bool:
        """Whether the two are known to have no thread in common, and to make up their parent."""
        return self.pair is not None and self.pair is other.pair and self is not other

    def within(self, other: Mask) -> bool:
        """Whether it is known to be a part of the other, or the same."""
        if other is self.space.full:
            return True
        mask: Mask | None = self
        while mask is not None:
            if mask is other:
                return True
            mask = mask.parent
        return False

    def both(self, other: Mask) -> Mask | None:
        """Threads of both."""
        full = self.space.full
        if other is self or other is full:
            return self
        if self is full:
            return other
        if not (self.static and other.static):
            return self.part(other.array)
        return self._known(("and", other), lambda: self.array & other.array, True)

    def without(self, other: Mask | None) -> Mask | None:
        """Threads of this one that are not of the other."""
        if other is None or other is self:
            return self if other is None else None
        if not (self.static and other.static):
            return self.part(~other.array)
        return self._known(("not", other), lambda: self.array & ~other.array, True)

    def split(self, test: Mask) -> tuple[Mask | None, Mask | None]:
        """Threads of both, and those of this one alone."""
        if self.static and test.static:
            return self.both(test), self.without(test)
        yes = test if self is self.space.full else self.part(test.array)
        if yes is None or yes is self:
            return yes, None if yes is self else self
        no = Mask(self.space, self.array ^ yes.array, False, 0)
        no.count, no.parent = self.count - yes.count, self
        if yes.parent is self:
            no.pair = yes.pair = object()
        return yes, no

    def either(self, other: Mask | None) -> Mask:
        """Threads of either."""
        if other is None or other is self or self is self.space.full:
            return self
        if other is self.space.full:
            return other
        if self.within(other):
            return other
        if other.within(self):
            return self
        made = self._known(("or", other), lambda: self.array | other.array,
                           self.static and other.static)
        return made or self


class Space:
    """The threads of a rectangle of blocks; interns vectors and masks.

    ``numbers`` are the numbers in the grid of the blocks that run now: a space serves one chunk of
    a launch after another.
    """

    lasting = True  # what has been found out about its masks is looked up again

    def __init__(self, blocks: tuple[int, int, int], threads: tuple[int, int, int],
                 trips: tuple[int, ...] = (), root: Space | None = None) -> None:
        self.shape: tuple[int, ...] = (*trips, *blocks, *threads)  # z, y, x each
        self.trips, self.grid, self.block = trips, blocks, threads
        self.size, self.blocks = math.prod(self.shape), math.prod(trips) * math.prod(blocks)
        self.threads = math.prod(threads)
        self.warps_per_block: int = (
            -(-self.threads // WARP) if root is None else root.warps_per_block)
        self._masks: dict[tuple[Any, ...], Mask] = {}
        self.full = Mask(self, np.ones((1,) * 6, bool), True, 1)
        self._along: dict[int, Space] = {}
        self.root = root or self
        self.bases: list[Array] = [] if root is None else root.bases
        self.reaches: list[int] = [] if root is None else root.reaches
        self._vecs: dict[tuple[tuple[int, int], ...], Vec] = {} if root is None else root._vecs
        self._parts: dict[Any, Sym | int] = {} if root is None else root._parts
        for axis in range(6 if root is None else 1):
            shape = [1] * len(self.shape)
            shape[axis] = self.shape[axis]
            basis = self._new_basis(np.arange(shape[axis], dtype=np.int64).reshape(shape))
        self._loop = basis
        self.numbers: Array = np.arange(self.blocks)

    def along(self, trips: int) -> Space:
        """The threads of so many iterations of a loop; see `step`."""
        if trips not in self._along:
            self._along[trips] = Space(self.grid, self.block, (trips, *self.trips), self.root)
        return self._along[trips]

    @property
    def step(self) -> Sym | int:
        """The number of the iteration along the first axis."""
        return sym(self.vec({self._loop: 1}), 0)

    def lifted(self, mask: Mask) -> Mask:
        """The threads of a space with fewer loops, in every iteration."""
        if mask.space is self:
            return mask
        if mask is mask.space.full:
            return self.full
        key = ("in", self)
        if key not in mask.memo:
            mask.memo[key] = made = Mask(
                self, mask.array, mask.static, int(np.count_nonzero(mask.array)))
            if not mask.space.trips:
                made.memo["at", ()] = mask
        found: Mask = mask.memo[key]
        return found

    def basis_at(self, basis: int, depth: int, steps: tuple[int, ...]) -> Sym | int:
        """A basis vector's part: see `Vec.at`."""
        key = (basis, depth, steps)
        if key not in self._parts:
            self._parts[key] = self.opaque(part(self.bases[basis], depth, steps))
        return self._parts[key]

    def separates(self, vec: Vec) -> bool:
        """Whether a thread's elements all differ between the iterations."""
        key = ("separates", self.trips)
        if key not in vec.memo:
            steps = np.sort(vec.array.reshape(-1, *vec.array.shape[-6:]), axis=0)
            vec.memo[key] = vec.array.shape[:-6] == self.trips and np.diff(steps, axis=0).all()
        return bool(vec.memo[key])

    def place(self, lane: int) -> Place:
        """Block of the grid and thread of the block that a lane is, for errors."""
        return self.root.where(lane % self.root.size)

    def where(self, lane: int) -> Place:
        """The same of a space without loops."""
        return {"block": int(self.numbers[lane // self.threads]), "thread": lane % self.threads}

    def among_all(self, lanes: Array) -> Array:
        """Lanes of this space by their numbers among all threads."""
        return lanes

    def narrowed(self, mask: Mask) -> Mask | None:
        """Which threads of this space are in a mask of all threads."""
        return mask

    @cached_property
    def slots(self) -> Array:
        """Where the lanes of a space without loops lie in rows of a warp each."""
        block, thread = np.divmod(np.arange(self.size), self.threads)
        found: Array = block * self.warps_per_block * WARP + thread
        return found

    @cached_property
    def warps(self) -> Array:
        """The number of the warp that each lane is of."""
        rows = self.root.slots // WARP
        loops = np.arange(math.prod(self.trips))[:, None]
        found: Array = (loops * (int(rows[-1]) + 1) + rows).ravel()
        return found

    def axis(self, name: str) -> Sym | int:
        """A thread's coordinate along an axis; 0 along an axis of one."""
        number = AXES[name]
        return sym(self.vec({number: 1}) if self.shape[number] > 1 else None, 0)

    def vec(self, terms: dict[int, int]) -> Vec | None:
        """The vector of these multiples; None for none."""
        key = tuple(sorted((b, m) for b, m in terms.items() if m))
        if not key:
            return None
        found = self._vecs.get(key)
        if found is None:
            found = self._vecs[key] = Vec(self, key)
        return found

    def opaque(self, array: Array) -> Sym | int:
        """A new basis vector of a non-affine expression of static ones."""
        if array.size == 1 or (array == array.flat[0]).all():
            return int(array.flat[0])
        return sym(self.vec({self._new_basis(array.astype(np.int64, copy=False)): 1}), 0)

    def _new_basis(self, array: Array) -> int:
        self.bases.append(array)
        self.reaches.append(max(abs(int(array.min())), abs(int(array.max()))))
        return len(self.bases) - 1

    def dynamic(self, array: Array) -> Vec:
        """A vector that depends on data: nothing about it is remembered."""
        return Vec(self, (), array)

    def mask(self, array: Array, static: bool) -> Mask | None:
        """A mask of a boolean array: None if all False, `full` if all True, equal ones the same."""
        count = int(np.count_nonzero(array))
        if not count:
            return None
        if count == array.size:
            return self.full
        if not static:
            return Mask(self, array, False, count)
        key = (array.shape, array.tobytes())
        if key not in self._masks:
            self._masks[key] = Mask(self, array, True, count)
        return self._masks[key]

    def truth(self, array: Array, static: bool) -> Mask | bool:
        """A boolean array as a value: True, False, or a mask."""
        made = self.mask(array, static)
        return False if made is None else True if made is self.full else made

    def either(self, a: Mask | bool, b: Mask | bool) -> Mask | bool:
        """Where one of two truths holds."""
        if a is True or b is True or not isinstance(a, Mask):
            return True if a is True else b
        made = a.either(b) if isinstance(b, Mask) else a
        return True if made is self.full else made

    def opposite(self, test: Mask | bool) -> Mask | bool:
        """Where a truth does not hold."""
        return self.truth(~test.array, test.static) if isinstance(test, Mask) else not test

    def rows(self, array: Array, fill: Any, lead: tuple[int, ...] = ()) -> Array:
        """An array over the axes as one row a warp; absent threads have ``fill``.

        With ``lead`` it is of these iterations and blocks alone, which stand for all.
        """
        shape = (*lead, *self.block) if lead else self.shape
        if array.shape != shape:
            array = np.broadcast_to(array, shape)
        return self.root.spread(array.reshape(-1, self.threads), fill).reshape(-1, WARP)

    def spread(self, blocks: Array, fill: Any) -> Array:
        """Rows of the threads of a block with ``fill`` where its warps have none."""
        width = self.warps_per_block * WARP
        if width == self.threads:
            return blocks
        made = np.full((len(blocks), width), fill, blocks.dtype)
        made[:, :self.threads] = blocks
        return made
