"""One simulated thread: everything that a rewritten kernel calls."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distlearn.kernels import atomics
from distlearn.kernels.errors import KernelError
from distlearn.kernels.intrinsics import BYTES, VECTORS, Vector, flattened, vector_of
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import (
    Constant,
    Global,
    array_attribute,
    indices_of,
    item,
    no_number,
    shape_of,
    slice_axis,
    writable,
)
from distlearn.kernels.names import check_axes, element_type
from distlearn.kernels.oracle.arithmetic import (
    REAL,
    cast,
    narrow,
    plain,
)
from distlearn.kernels.oracle.arrays import Small, memory_of
from distlearn.kernels.oracle.computing import Computing
from distlearn.kernels.oracle.tiles import Tile
from distlearn.kernels.shapes import check_static
from distlearn.kernels.spinning import WAITS

if TYPE_CHECKING:
    from distlearn.kernels.oracle.block import Block

Key = tuple[int, ...]
DYNAMIC: Key = (-1,)  # of the block's dynamic shared memory


class Meeting(NamedTuple):
    """A thread waits for others: at a barrier, a syncwarp, a shuffle, a vote or an atomic."""

    what: str
    key: Key
    line: int
    arguments: tuple[Any, ...]


class Thread(Computing):
    """State of a thread: where it is, how deep in loops, its results come back by `meet`."""

    def __init__(self, block: Block, number: int, place: dict[str, int]) -> None:
        self.block, self.number, self.warp = block, number, number // 32
        self.place = {**place, "laneid": number % 32, "warpsize": 32}
        self.stack: list[int] = []
        self.lines = block.grid.lines
        self.joined: list[int] = []  # the syncwarps of this interval that it took part in
        self.seen: dict[int, Any] = {}

    def key(self, site: int) -> Key:
        """The dynamic instruction: iteration numbers of the enclosing loops, then the site."""
        return (*self.stack, site)

    # ---- control

    def enter(self, site: int) -> int:
        """Begin a loop; gives the depth to come back to."""
        depth = len(self.stack)
        self.stack += (site, -1)
        return depth

    def tick(self) -> None:
        """Begin the next iteration."""
        self.stack[-1] += 1

    def again(self, variables: dict[str, Any], *decisive: str) -> None:
        """Begin an iteration of ``while``, if anything has changed that its end depends on.

        That may be with the block's other threads, where a barrier in the loop lets them run: two
        iterations in which none of them has changed anything are one that waits.
        """
        self.stack[-1] += 1
        depth, changes = len(self.stack), self.block.grid.changes
        state = [changes[memory_of(v)] if isinstance(v, Small | Global) else v
                 for v in map(variables.get, decisive)]
        before, count = self.seen.get(depth, (None, None))
        moves, loop = self.block.moves, (depth, self.stack[-2])
        if self.stack[-1] < 2 or not _same(before, state):
            moves[loop] += self.stack[-1] > 1
            count = None
        else:
            if count == moves[loop]:
                raise KernelError("spin_wait", WAITS, line=self.line_of(self.stack[-2]))
            count = moves[loop]
        self.seen[depth] = state, count

    def leave(self, depth: int) -> None:
        """End a loop."""
        del self.stack[depth:]

    def line_of(self, site: int) -> int:
        """Source line of a site of the function that runs."""
        return self.lines[site]

    def branch(self, site: int, test: Any) -> bool:
        """Count the test of an ``if`` or ``while``."""
        truth = bool(test)
        self.block.tests[self.warp, self.key(site), self.line_of(site)].append(truth)
        return truth

    def call(self, site: int, function: Kernel, *arguments: Any) -> Generator[Any, Any, Any]:
        """Run a device function: its sites come under the site of the call."""
        depth, lines = len(self.stack), self.lines
        self.stack.append(site)
        code, self.lines = self.block.grid.code(function)
        result = yield from code(self, *arguments)
        del self.stack[depth:]
        self.lines = lines
        return result

    def meet(self, what: str, site: int, *arguments: Any) -> Meeting:
        """Ask the block to wait for the others."""
        return Meeting(what, self.key(site), self.line_of(site), arguments)

    # ---- places

    def special(self, line: int, path: str) -> int:
        """``cuda.threadIdx.x`` and its like."""
        if path not in self.place:
            raise KernelError("unsupported", f"cuda.{path} is not modelled", line=line)
        return self.place[path]

    def lanemask_lt(self, line: int) -> int:
        """``cuda.lanemask_lt()``."""
        return (1 << self.place["laneid"]) - 1

    def grid(self, line: int, ndim: int) -> Any:
        """``cuda.grid(ndim)``."""
        check_axes(ndim, line)
        p = self.place
        at = tuple(p[f"blockIdx.{d}"] * p[f"blockDim.{d}"] + p[f"threadIdx.{d}"] for d in "xyz")
        return at[0] if ndim == 1 else at[:ndim]

    def gridsize(self, line: int, ndim: int) -> Any:
        """``cuda.gridsize(ndim)``."""
        check_axes(ndim, line)
        sizes = tuple(self.place[f"gridDim.{d}"] * self.place[f"blockDim.{d}"] for d in "xyz")
        return sizes[0] if ndim == 1 else sizes[:ndim]

    def attribute(self, line: int, value: Any, name: str) -> Any:
        """``array.shape``, ``.ndim``, ``.size``, ``.dtype``; ``.x`` of a vector."""
        if isinstance(value, Vector) and name in "xyzw"[:len(value)]:
            return value["xyzw".index(name)]
        if isinstance(value, Global | Small):
            return array_attribute(value, name, line)
        raise KernelError("unsupported", f"values have no .{name} in a kernel", line=line)

    # ---- memory

    def shared(self, site: int, name: str, shape: Any, dtype: Any) -> Small:
        """The block's array of this declaration."""
        if shape == 0:
            return self.block.dynamic(element_type(dtype, self.line_of(site)))
        line = self.line_of(site)
        made = self.block.shared((id(self.lines), site), shape_of(shape, line, "shared.array"),
                                 element_type(dtype, line), name)
        check_static(sum(array.flat.nbytes for key, array in self.block.arrays.items()
                         if key != DYNAMIC), self.block.grid.shared_bytes, line)
        return made

    def local(self, site: int, shape: Any, dtype: Any) -> Small:
        """An array of this thread alone."""
        line = self.line_of(site)
        return Small.new("local", 0, shape_of(shape, line, "local.array"),
                         element_type(dtype, line))

    def element(self, site: int, array: Any, index: Any) -> int:
        """Position in the flat memory, after the check of every index against its extent."""
        indices = index if isinstance(index, tuple) else (index,)
        line = self.line_of(site)
        if not isinstance(array, Global | Small) or len(indices) != len(array.shape):
            raise KernelError("unsupported", "an element needs one index per axis of an array",
                              line=line)
        flat: int = array.start
        for i, n, stride in zip(indices, array.shape, array.strides, strict=True):
            if type(i) is not int or not 0 <= i < n:
                i = self.inside(line, array, indices.index(i), i, n)
            flat += i * stride
        return flat

    def inside(self, line: int, array: Global | Small, axis: int, i: Any, n: int) -> int:
        """An index of an axis with ``n`` elements."""
        if not isinstance(i, int):
            raise KernelError("unsupported", "an index is no integer", line=line)
        if not 0 <= i < n:
            name = array.name if isinstance(array, Global) else f"the {array.space} array"
            raise KernelError("out_of_bounds", f"index {int(i)} on axis {axis} of {name}, which"
                              f" has {n} elements there", line=line)
        return int(i)

    def slice(self, *bounds: Any) -> slice:
        """``a[start:stop:step]``."""
        return slice(*bounds)

    def view(self, site: int, array: Any, index: Any) -> Any:
        """The part of an array that an index with slices means; None for one element."""
        if not isinstance(array, Global | Small) or (
                type(index) is tuple and len(index) == len(array.shape) and slice not in map(
                    type, index)):
            return None
        line = self.line_of(site)
        indices, part = indices_of(index, len(array.shape), line)
        if not part:
            return None
        if isinstance(array, Small) and array.space == "local":
            raise KernelError("unsupported", "parts of local arrays are not modelled", line=line)
        start, shape, strides = array.start, [], []
        for axis, (i, n, stride) in enumerate(zip(indices, array.shape, array.strides,
                                                  strict=True)):
            if isinstance(i, slice):
                first, count, step = slice_axis(i, n, line)
                start += first * stride
                shape.append(count)
                strides.append(stride * step)
            else:
                start += self.inside(line, array, axis, i, n) * stride
        return replace(array, start=start, shape=tuple(shape), strides=tuple(strides))

    def load(self, site: int, array: Any, index: Any) -> Any:
        """Read an element, or an item of a tuple."""
        if isinstance(array, tuple):
            return item(array, index, self.line_of(site))
        if isinstance(array, Constant) and self.view(site, array, index) is None:
            return plain(array.memory.flat[self.element(site, array, index)], self.line_of(site))
        if type(index) is not int or len(array.shape) > 1:
            part = self.view(site, array, index)
            if part is not None:
                return part
        flat = self.element(site, array, index)
        if isinstance(array, Small) and array.space == "local":
            if flat not in array.written:
                raise KernelError("unbound_variable", "an element of a local array is read before "
                                  "it is written", line=self.line_of(site))
            return plain(array.flat[flat])
        self.block.touch(self, "R", site, array, flat)
        return plain((array.memory if isinstance(array, Global) else array).flat[flat],
                     self.line_of(site))

    def store(self, site: int, array: Any, index: Any, value: Any) -> None:
        """Write an element."""
        writable(array, self.line_of(site))
        flat = self.element(site, array, index)
        if isinstance(array, Small) and array.space == "local":
            array.flat[flat] = self.stored(site, array, value)
            array.written.add(flat)
            self.block.grid.changes[memory_of(array)] += 1
        else:
            self.put(site, array, flat, (value,))

    def stored(self, site: int, array: Global | Small, value: Any) -> Any:
        """A value as the array takes it."""
        if not isinstance(value, (int, np.bool_, *REAL)):
            no_number(value, self.line_of(site))
        return narrow(self.line_of(site), array.dtype, int(value)) if (
            array.dtype.kind in "iu") else value

    def put(self, site: int, array: Global | Small, flat: int, values: tuple[Any, ...],
            piece: int = 0) -> None:
        """Write values side by side."""
        store = array.memory.flat if isinstance(array, Global) else array.flat
        values = tuple(self.stored(site, array, value) for value in values)
        self.block.touch(self, "W", site, array, flat, len(values), piece)
        for n, value in enumerate(values):
            before = store[flat + n]
            store[flat + n] = value
            self.block.grid.changes[memory_of(array)] += bool(store[flat + n] != before)

    def wide(self, site: int, array: Any, index: Any, width: int) -> int:
        """The first of ``width`` elements that one instruction moves."""
        flat, line = self.element(site, array, index), self.line_of(site)
        size = array.dtype.itemsize
        if array.strides[-1] != 1 or size * width > BYTES:
            raise KernelError("unsupported", f"{width} elements of {size} bytes, "
                              f"{array.strides[-1]} apart, are no vector load", line=line)
        last = (index if isinstance(index, tuple) else (index,))[-1]
        self.inside(line, array, len(array.shape) - 1, last + width - 1, array.shape[-1])
        if flat % width:
            raise KernelError("misaligned_address", f"{width} elements from element {flat} do not "
                              f"begin at a multiple of their {size * width} bytes", line=line)
        return flat

    def load_wide(self, site: int, width: int, array: Any, index: Any, piece: int = 0) -> Vector:
        """``load2`` and ``load4``."""
        flat = self.wide(site, array, index, width)
        self.block.touch(self, "R", site, array, flat, width, piece)
        store = array.memory.flat if isinstance(array, Global) else array.flat
        return Vector(plain(store[flat + n]) for n in range(width))

    def store_wide(self, site: int, width: int, array: Any, index: Any, value: Any,
                   piece: int = 0) -> None:
        """``store2`` and ``store4``."""
        flat = self.wide(site, array, index, width)
        self.put(site, array, flat, vector_of(value, width, self.line_of(site)), piece)

    def vector(self, line: int, name: str, *items: Any) -> Vector:
        """``cuda.float32x4(...)``."""
        kind, parts = VECTORS[name]
        return vector_of(Vector(plain(np.dtype(kind).type(cast(line, kind, v)))
                                for v in flattened(items)), parts, line)

    def atomic(self, site: int, kind: str, array: Any, index: Any, *values: Any) -> Any:
        """Read, change and write an element in one step; gives the old value."""
        line = self.line_of(site)
        atomics.check(kind, array, line)
        flat = self.element(site, array, index)
        store = array.memory.flat if isinstance(array, Global) else array.flat
        self.block.touch(self, "A", site, array, flat)
        old = plain(store[flat], line)
        new = atomics.changed(kind, old, tuple(
            atomics.operand(array.dtype, value, line) for value in values))
        if array.dtype.kind in "iu":
            new = narrow(line, array.dtype, int(new))
        store[flat] = new
        self.block.grid.changes[memory_of(array)] += bool(store[flat] != old)
        return old


def _same(a: Any, b: Any) -> bool:
    return a is not None and len(a) == len(b) and all(
        v is w or (not isinstance(v, Tile) and type(v) is type(w) and v == w)
        for v, w in zip(a, b, strict=True))
