"""A launch in chunks of blocks: shared memory, barriers, intervals, counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from distlearn.kernels.atomics import check
from distlearn.kernels.counters import INDEX, Flow, Tally
from distlearn.kernels.errors import EXITED, KernelError
from distlearn.kernels.intrinsics import Vector
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import Constant, Global, Memory, writable
from distlearn.kernels.oracle.arithmetic import wide
from distlearn.kernels.simt import atomics
from distlearn.kernels.simt.access import (
    Shared,
    Storage,
    count,
    gather,
    granules,
    in_block,
    moved,
    placed,
    position,
    scatter,
    to_store,
)
from distlearn.kernels.simt.branches import Branches
from distlearn.kernels.simt.carried import Nest
from distlearn.kernels.simt.compiled import Compiled
from distlearn.kernels.simt.frame import Frame
from distlearn.kernels.simt.frozen import codes_of
from distlearn.kernels.simt.global_races import GlobalRaces
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.loops import DependentError, Trial
from distlearn.kernels.simt.numbers import Whole, numeric
from distlearn.kernels.simt.races import Access, plain, shared_race
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym

CHUNK = 65536  # threads at once: their arrays stay in cache
Dim3 = tuple[int, int, int]


class Machine:
    """One chunk of blocks that runs."""

    def __init__(self, space: Space, origin: Dim3, grid: Dim3, block: Dim3, tally: Tally,
                 races: GlobalRaces, clean: set[Any], written: set[Memory],
                 dynamic: tuple[int, int], serial: set[Nest], flow: Flow | None = None) -> None:
        self.space, self.tally, self.races, self.clean = space, tally, races, clean
        self.compiled = Compiled(space, tally, flow) if flow is not None else None
        self.written, self.branches = written, Branches(space)
        self.dynamic_bytes, self.granule = dynamic
        self.shared: dict[Any, Storage] = {}
        self.interval: list[Any] = []  # of `Access`, or of `Iterations` of some
        self.globals: list[Any] = []
        self.unwritten: list[tuple[Mask, int]] = []
        self.syncwarps: list[Mask] = []
        self.changes: Counter[Any] = Counter()  # of a memory, or a local array
        self.trial: Trial | None = None
        self.serial = serial  # loops that have to run step by step
        self.watching = 0  # loops that may wait for a change
        self.places: dict[str, Whole] = {"warpsize": 32}
        for number, axis in enumerate("xyz"):
            at = space.axis("g" + axis)
            start = origin[number]
            self.places["blockIdx." + axis] = (
                Sym(at.vec, start) if isinstance(at, Sym) else start)
            self.places["threadIdx." + axis] = space.axis("b" + axis)
            self.places["blockDim." + axis] = block[number]
            self.places["gridDim." + axis] = grid[number]
        x, y, z = (np.arange(n) + start for n, start in
                   zip(space.shape[2::-1], origin, strict=True))
        space.numbers = ((z[:, None, None] * grid[1] + y[:, None]) * grid[0] + x).ravel()

    def load(self, line: int, array: Global | Shared, index: Any, mask: Mask, width: int = 1
             ) -> Any:
        """Read an element, or a `Vector` of ``width``, in every active thread."""
        at = position(self.space, line, array, index, mask, width)
        row, size = self.tally.row(line), array.dtype.itemsize
        if isinstance(array, Global):
            memory = array.memory
            count(self.space, row, "load", False, size, at, mask, width)
            if self.compiled is not None:
                self.compiled.load_global(mask)
            if memory in self.written:
                if self.trial is not None:
                    self.trial.read(memory, place_key(at, size))
                self.globals += [Access("R", memory, where, mask, line, len(self.syncwarps))
                                 for where in granules(self.space, array, at, width)]
            flat = memory.flat
        else:
            storage = array.memory
            if self.trial is not None:
                self.trial.read(storage, place_key(at, size))
            if self.compiled is None:
                count(self.space, row, "load", True, size, at, mask, width)
            else:
                self.compiled.load_shared(line, storage, size, at, mask, width)
            for where in granules(self.space, array, at, width):
                self.interval.append(Access("R", storage, where, mask, line, len(self.syncwarps)))
                if not storage.complete:
                    self._check_written(
                        storage, in_block(self.space, storage.base, where), mask, line)
            at, flat = in_block(self.space, array.base, at), array.flat
        if width == 1:
            return self._value(gather(flat, at), line, mask)
        return Vector(self._value(gather(flat, moved(self.space, at, n)), line, mask)
                      for n in range(width))

    def constant(self, line: int, array: Constant, index: Any, mask: Mask) -> Any:
        """Read an element of constant memory."""
        at = position(self.space, line, array, index, mask)
        return self._value(gather(array.memory.flat, at), line, mask)

    def _value(self, value: Any, line: int, mask: Mask) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "b":
                return self.space.truth(value, False)
            if value.dtype == np.uint64 and (value >> 63).any():
                bad = self.space.mask(np.asarray((value >> 63 > 0) & mask.array), False)
                if bad is not None:
                    lanes = np.broadcast_to(value, self.space.shape).ravel()
                    error = wide(line, int(lanes[bad.index[0]]))
                    error.block, error.thread = bad.first["block"], bad.first["thread"]
                    raise error
            return value.astype(np.int64) if value.dtype.kind in "iu" else value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.uint64) and value >> 63:
            raise wide(line, int(value))
        return int(value) if isinstance(value, np.integer) else value

    def _check_written(self, array: Storage, whole: Whole, mask: Mask, line: int) -> None:
        key = (whole if isinstance(whole, int) else (whole.vec, whole.const), mask)
        if key in array.read_safely:
            return
        missing = ~gather(array.written, whole) & mask.array
        if missing.any():
            if self.trial is not None:
                raise DependentError
            bad = self.space.mask(np.asarray(missing), False)
            assert bad is not None
            self.unwritten.append((bad, line))
        elif mask.static and (isinstance(whole, int) or whole.vec.static):
            array.read_safely.add(key)

    def store(self, line: int, array: Global | Shared, index: Any, value: Any, mask: Mask,
              width: int = 1) -> None:
        """Write an element, or ``width`` of them, in every active thread."""
        space = self.space
        writable(array, line)
        at = position(space, line, array, index, mask, width)
        values = [to_store(line, array.dtype, v, mask)
                  for v in (value if width > 1 else (value,))]
        row, size = self.tally.row(line), array.dtype.itemsize
        if self.trial is not None:
            self.trial.write_memory(array.memory, size, at, space)
        if isinstance(array, Global):
            count(space, row, "store", False, size, at, mask, width)
            self.globals += [Access("W", array.memory, where, mask, line, len(self.syncwarps))
                             for where in granules(space, array, at, width)]
            flat = array.memory.flat
        else:
            storage = array.memory
            if self.compiled is not None:
                self.compiled.store_shared(mask)
            count(space, row, "store", True, size, at, mask, width)
            for where in granules(space, array, at, width):
                self.interval.append(Access("W", storage, where, mask, line, len(self.syncwarps)))
                self._mark_written(storage, where, mask)
            at, flat = in_block(space, array.base, at), array.flat
        for n, item in enumerate(values):
            places = placed(space, moved(space, at, n), mask)
            before = flat[places] if self.watching else None
            if self.trial is not None:
                self.trial.remember((array.memory, place_key(at, size), n, mask), partial(
                    kept, flat, places))
            scatter(space, flat, places, item, mask)
            if before is not None:
                self.changes[array.memory] += bool((flat[places] != before).any())

    def state(self, value: Any) -> Any:
        """A variable's value, or how often what an array holds has changed."""
        if isinstance(value, Global | Shared):
            return self.changes[value.memory]
        return self.changes[value] if isinstance(value, Local) else value

    def _mark_written(self, storage: Storage, where: Whole, mask: Mask) -> None:
        if not storage.complete:
            at = in_block(self.space, storage.base, where)
            places = placed(self.space, at, mask)
            if self.trial is not None:
                self.trial.remember((storage, "written", place_key(where, 0), mask), partial(
                    storage.marks, places))
            storage.written[places] = True
            storage.complete = bool(storage.written.all())

    def atomic(self, line: int, kind: str, array: Global | Shared, index: Any,
               values: list[Any], mask: Mask, used: bool = True) -> Any:
        """Active threads one after another, in their order; the old values if they are used."""
        check(kind, array, line)
        space, at = self.space, position(self.space, line, array, index, mask)
        local = placed(space, at, mask)
        if isinstance(array, Global):
            store, where = array.memory.flat, local
            self.globals.append(Access("A", array.memory, at, mask, line, len(self.syncwarps)))
        else:
            store, where = array.flat, placed(space, in_block(space, array.base, at), mask)
            for granule in granules(space, array, at, 1):
                self.interval.append(
                    Access("A", array.memory, granule, mask, line, len(self.syncwarps)))
                if not array.memory.complete:
                    self._check_written(
                        array.memory, in_block(space, array.memory.base, granule), mask, line)
        row, lanes = self.tally.row(line), mask.index
        requests, conflicts = atomics.cost(space, local, lanes)
        row[INDEX["atomic_requests"]] += requests
        row[INDEX["atomic_conflicts"]] += conflicts
        arguments = [np.broadcast_to(numeric(v), space.shape).ravel()[lanes] for v in values]
        old, changed = atomics.apply(line, kind, store, where, arguments, mask, used)
        self.changes[array.memory] += changed
        if isinstance(array, Shared):
            for granule in granules(space, array, at, 1):
                self._mark_written(array.memory, granule, mask)
        if old is None:
            return 0
        result = np.zeros(space.size, np.int64 if array.dtype.kind in "iub" else array.dtype)
        result[lanes] = old
        return result.reshape(space.shape)

    def barrier(self, line: int, mask: Mask) -> None:
        """All threads of a block, or none, come to a barrier; its interval ends.

        Raises
        ------
        KernelError
            "barrier_divergence", or what the interval's accesses do wrong.
        """
        space = self.space
        if mask is not space.full:
            here = mask.flat.reshape(space.blocks, space.threads).sum(axis=1)
            torn = np.flatnonzero((here > 0) & (here < space.threads))
            if torn.size:
                block = int(torn[0])
                raise KernelError(
                    "barrier_divergence", f"{here[block]} of {space.threads} threads of block "
                    f"{space.numbers[block]} reach this barrier{EXITED}", line=line,
                    block=int(space.numbers[block]))
        self.tally.row(line)[INDEX["barrier_warps"]] += mask.warps
        if self.compiled is not None:
            self.compiled.barrier(mask)
        self.end_interval(mask)

    def end_interval(self, mask: Mask) -> None:
        """Check the accesses that these blocks made since their last barrier."""
        mine, rest = _split(self.interval, mask)
        space = self.space
        error = shared_race(space, mine, self.clean, self.syncwarps) if mine else None
        mine_global, rest_global = _split(self.globals, mask)
        if mine_global:
            error = error or self.races.interval(space, mine_global, self.syncwarps)
        if error is not None:
            raise error
        for bad, line in self.unwritten:
            here = bad.both(mask)
            if here is not None:
                at = here.first
                raise KernelError(
                    "uninitialised_shared_read", f"thread {at['thread']} of block {at['block']} "
                    "reads a shared element that no thread has written", line=line, **at)
        self.interval, self.globals = rest, rest_global
        if not rest and not rest_global:
            self.syncwarps = []


def place_key(at: Whole, size: int) -> tuple[Any, int, int]:
    """A place of an array, the same for the same expression."""
    return (None, at, size) if isinstance(at, int) else (at.vec, at.const, size)


def kept(flat: Array, places: Array) -> Callable[[], None]:
    """What puts elements back as they are."""
    return partial(flat.__setitem__, places, flat[places])


def _split(accesses: list[Any], mask: Mask) -> tuple[list[Any], list[Any]]:
    if mask is mask.space.full:
        return accesses, []
    mine, rest = [], []
    for access in plain(accesses):
        here = access.mask.space.narrowed(mask)
        inside = None if here is None else access.mask.both(here)
        outside = access.mask.without(here)
        if inside is not None:
            mine.append(access._replace(mask=inside))
        if outside is not None:
            rest.append(access._replace(mask=outside))
    return mine, rest


def chunks(grid: Dim3, threads: int) -> Iterator[tuple[Dim3, Dim3]]:
    """Rectangles of blocks of about `CHUNK` threads: (origin, extent), x fastest."""
    most = max(1, CHUNK // threads)
    nx = min(grid[0], most)
    ny = min(grid[1], most // nx) if nx == grid[0] else 1
    nz = min(grid[2], most // (nx * ny)) if (nx, ny) == grid[:2] else 1
    for z in range(0, grid[2], nz):
        for y in range(0, grid[1], ny):
            for x in range(0, grid[0], nx):
                yield (x, y, z), (min(nx, grid[0] - x), min(ny, grid[1] - y),
                                  min(nz, grid[2] - z))


def run(kernel: Kernel, grid: Dim3, block: Dim3, arguments: list[Any],
        shared_bytes: int = 0, flow: Flow | None = None) -> Tally:
    """Run a launch, chunk after chunk; ``shared_bytes`` of dynamic shared memory a block.

    With a ``flow``, it is filled, and loads of shared memory count as they are when compiled: see
    `distlearn.kernels.simt.compiled`.

    Raises
    ------
    KernelError
        The first error that the threads of a chunk, in lockstep, come to.
    """
    tally, threads = Tally(), block[0] * block[1] * block[2]
    races = GlobalRaces(math.prod(grid), threads)
    codes = codes_of(kernel, arguments)
    code = codes[kernel]
    names = code.stored if all(c is code or not c.stored for c in codes.values()) else None
    written = {a.memory for name, a in zip(kernel.parameters, arguments, strict=True)
               if isinstance(a, Global) and (names is None or name in names)}
    granule = min((size for c in codes.values() for size in c.dynamic), default=1)
    spaces: dict[Dim3, tuple[Space, set[Any]]] = {}
    serial: set[Nest] = set()
    with np.errstate(all="ignore"):
        for origin, extent in chunks(grid, threads):
            if extent not in spaces:
                spaces[extent] = (Space(extent[::-1], block[::-1]), set())
            space, clean = spaces[extent]
            machine = Machine(space, origin, grid, block, tally, races, clean, written,
                              (shared_bytes, granule), serial, flow)
            frame = Frame(machine, dict(zip(kernel.parameters, arguments, strict=True)))
            code.body(frame, space.full)
            machine.end_interval(space.full)
            machine.branches.flush()
            if machine.compiled is not None:
                machine.compiled.finish()
        races.finish()
    return tally

