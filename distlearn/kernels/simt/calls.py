"""What a kernel may call, for all threads at once."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.counters import INDEX, WARP
from distlearn.kernels.dialect import MATH
from distlearn.kernels.errors import KernelError
from distlearn.kernels.intrinsics import VECTORS, WIDTHS, Vector, flattened, vector_of
from distlearn.kernels.memory import Global, shape_of
from distlearn.kernels.simt import tiles
from distlearn.kernels.simt.access import Shared, Storage
from distlearn.kernels.simt.local import Local
from distlearn.kernels.simt.numbers import (
    binary,
    cast,
    compare,
    is_real,
    numeric,
    select,
    truth,
)
from distlearn.kernels.simt.space import Mask

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame

FLOPS = INDEX["flops"]
PAD = 16  # dynamic shared memory of a block is a multiple of the widest access
Call = Callable[["Frame", int, tuple[int, int], list[Any], Mask], Any]


def find(callee: Any, path: str, node: ast.Call, used: bool = True) -> Call:
    """The function that carries out a call; ``used`` tells whether anything reads its result."""
    if path in SIMPLE:
        return SIMPLE[path]
    if path.startswith("atomic."):
        kind = path.split(".")[1]
        return lambda frame, line, site, a, mask: frame.machine.atomic(
            line, kind, array(a[0], line), a[1], a[2:], mask, used)
    if path in names.BARRIERS:
        return lambda frame, line, site, a, mask: _barrier(frame, line, path, a, mask)
    if path in names.FENCES:
        return lambda frame, line, site, a, mask: None
    if path in names.BITS:
        return lambda frame, line, site, a, mask: _bits(path, a[0])
    if path in names.SHUFFLES:
        return lambda frame, line, site, a, mask: _shuffle(frame, path, a, mask)
    if path in names.VOTES:
        return lambda frame, line, site, a, mask: _vote(frame, path, a, mask)
    if path.startswith("intrinsics.wmma."):
        return tiles.find(path.split(".")[-1], node)
    if path.startswith("intrinsics."):
        width = WIDTHS[path.split(".")[1]]
        if "load" in path:
            return lambda frame, line, site, a, mask: frame.machine.load(
                line, array(a[0], line), a[1], mask, width)
        return lambda frame, line, site, a, mask: frame.machine.store(
            line, array(a[0], line), a[1], vector_of(a[2], width, line), mask, width)
    if path in VECTORS:
        of, parts = VECTORS[path]
        return lambda frame, line, site, a, mask: vector_of(Vector(
            cast(frame.space, line, of, v, mask) for v in flattened(a)), parts, line)
    name = names.math_name(callee)
    if name:
        return lambda frame, line, site, a, mask: _math(frame, line, name, a, mask)
    if not path and callee in names.CASTS and len(node.args) == 1:
        kind_ = names.CASTS[callee]
        return lambda frame, line, site, a, mask: cast(frame.space, line, kind_, a[0], mask)
    if callee in (min, max):
        ufunc = np.minimum if callee is min else np.maximum
        return lambda frame, line, site, a, mask: _extreme(frame, line, ufunc, a)
    if callee is abs:
        return lambda frame, line, site, a, mask: _extreme(
            frame, line, np.maximum, [a[0], binary(frame.space, line, "Sub", 0, a[0], mask)]
        ) if not is_real(a[0]) else abs(a[0])
    if callee is len:
        return lambda frame, line, site, a, mask: (
            len(a[0]) if isinstance(a[0], tuple) else int(a[0].shape[0]))
    return names.refuse(node, f"{ast.unparse(node.func)}() cannot be called in a kernel")


def array(value: Any, line: int) -> Global | Shared:
    """A value that must be an array of global or shared memory."""
    if not isinstance(value, Global | Shared):
        raise KernelError("unsupported", "an element is taken of what is no array", line=line)
    return value


def attribute(value: Any, name: str, line: int) -> Any:
    """``array.shape``, ``.ndim``, ``.size``, ``.dtype``."""
    if isinstance(value, Vector) and name in "xyzw"[:len(value)]:
        return value["xyzw".index(name)]
    if isinstance(value, Global | Shared | Local) and name in ("shape", "ndim", "size", "dtype"):
        found = {"shape": value.shape, "ndim": len(value.shape), "dtype": value.dtype.type,
                 "size": math.prod(value.shape)}
        return found[name]
    raise KernelError("unsupported", f"values have no .{name} in a kernel", line=line)


def special(frame: Frame, path: str, line: int) -> Any:
    """``cuda.threadIdx.x`` and its like."""
    places = frame.machine.places
    if path == "laneid":
        return binary(frame.space, line, "Mod", _linear(frame, line), WARP, frame.space.full)
    if path not in places:
        raise KernelError("unsupported", f"cuda.{path} is not modelled", line=line)
    return places[path]


def _linear(frame: Frame, line: int) -> Any:
    """A thread's number in its block, x fastest."""
    result: Any = 0
    for axis in "zyx":
        places = frame.machine.places
        result = binary(frame.space, line, "Mult", result, places["blockDim." + axis],
                        frame.space.full)
        result = binary(frame.space, line, "Add", result, places["threadIdx." + axis],
                        frame.space.full)
    return result


def _grid(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    p, space = frame.machine.places, frame.space
    at = tuple(binary(space, line, "Add", binary(
        space, line, "Mult", p["blockIdx." + d], p["blockDim." + d], mask),
        p["threadIdx." + d], mask) for d in "xyz")
    return at[0] if a[0] == 1 else at[:a[0]]


def _gridsize(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    p, space = frame.machine.places, frame.space
    sizes = tuple(binary(space, line, "Mult", p["gridDim." + d], p["blockDim." + d], mask)
                  for d in "xyz")
    return sizes[0] if a[0] == 1 else sizes[:a[0]]


def _selp(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    test = truth(frame.space, a[0])
    if not isinstance(test, Mask):
        return a[1] if test else a[2]
    return select(frame.space, test, a[1], a[2], line)


def _shared(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Shared:
    machine, kind = frame.machine, np.dtype(names.CASTS[a[1]])
    arrays = machine.shared
    if a[0] == 0:
        if "dynamic" not in arrays:
            size = -(-machine.dynamic_bytes // PAD) * PAD // machine.granule
            arrays["dynamic"] = Storage(frame.space, len(arrays), size, machine.granule)
        return Shared.over(arrays["dynamic"], kind, (machine.dynamic_bytes // kind.itemsize,))
    key, shape = (*frame.path, *site), shape_of(a[0], line, "shared.array")
    if key not in arrays:
        arrays[key] = Storage(frame.space, len(arrays), math.prod(shape), kind.itemsize)
    return Shared.over(arrays[key], kind, shape)


def _local(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Local:
    return Local(frame.machine, shape_of(a[0], line, "local.array"), names.CASTS[a[1]])


def _barrier(frame: Frame, line: int, what: str, a: list[Any], mask: Mask) -> Any:
    frame.machine.barrier(line, mask)
    if what == "syncthreads":
        return None
    space, test = frame.space, truth(frame.space, a[0])
    true = (test.flat if isinstance(test, Mask) else np.full(space.size, test)) & mask.flat
    count = true.reshape(space.blocks, space.threads).sum(axis=1)
    found = {"syncthreads_count": count, "syncthreads_and": (count == space.threads).astype(int),
             "syncthreads_or": (count > 0).astype(int)}[what]
    return found.astype(np.int64).reshape(*space.shape[:3], 1, 1, 1)


def _bits(what: str, value: Any) -> Any:
    if isinstance(value, int):
        return names.bits(what, value)
    whole = np.asarray(numeric(value)).astype(np.int64)
    if what == "ffs":  # all bits up to the lowest that is set
        whole = np.where(whole == 0, 0, whole ^ (whole - 1))
    return np.bitwise_count(whole.view(np.uint64)).astype(np.int64)


def _syncwarp(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> None:
    frame.machine.syncwarps.append(mask)


SIMPLE: dict[str, Call] = {
    "grid": _grid, "gridsize": _gridsize, "selp": _selp, "shared.array": _shared,
    "local.array": _local, "syncwarp": _syncwarp,
}


def _math(frame: Frame, line: int, name: str, a: list[Any], mask: Mask) -> Any:
    function, flops = MATH[name]
    frame.machine.tally.row(line)[FLOPS] += flops * mask.count
    result = function(*(v if is_real(v) else np.float64(numeric(v)) for v in a))
    if isinstance(result, np.ndarray) and result.dtype.kind == "b":
        return frame.space.truth(result, False)
    return bool(result) if isinstance(result, np.bool_) else result


def _extreme(frame: Frame, line: int, function: Any, items: list[Any]) -> Any:
    result = items[0]
    for item in items[1:]:
        if is_real(result) or is_real(item) or isinstance(result, np.ndarray) or isinstance(
                item, np.ndarray):
            result = function(numeric(result), numeric(item))
            continue
        least = compare(frame.space, line, "Lt" if function is np.minimum else "Gt", item, result)
        if isinstance(least, Mask):
            result = select(frame.space, least, item, result, line)
        else:
            result = item if least else result
    return int(result) if isinstance(result, np.integer) else result


def _shuffle(frame: Frame, what: str, a: list[Any], mask: Mask) -> Any:
    space = frame.space
    own = space.rows(np.asarray(numeric(a[1])), 0)
    offset, lane = space.rows(np.asarray(numeric(a[2])), 0), np.arange(WARP)
    source = {"shfl_sync": offset % WARP, "shfl_up_sync": lane - offset,
              "shfl_down_sync": lane + offset, "shfl_xor_sync": lane ^ offset}[what]
    inside = (source >= 0) & (source < WARP)
    source = np.where(inside, source, lane)
    there = np.take_along_axis(mask.rows, source, axis=1)
    return threads(space, np.where(there & inside, np.take_along_axis(own, source, axis=1), own))


def _vote(frame: Frame, what: str, a: list[Any], mask: Mask) -> Any:
    space = frame.space
    test = what == "activemask" or truth(space, a[1])
    rows = mask.rows & (test.rows if isinstance(test, Mask) else test)
    if what in ("ballot_sync", "activemask"):
        result = (rows.astype(np.int64) << np.arange(WARP)).sum(axis=1, keepdims=True)
    elif what == "all_sync":
        result = (rows == mask.rows).all(axis=1, keepdims=True)
    else:
        result = rows.any(axis=1, keepdims=True)
    made = threads(space, np.broadcast_to(result, rows.shape))
    return space.truth(made, False) if made.dtype.kind == "b" else made


def threads(space: Any, rows: Any) -> Any:
    """Rows of warps back as an array over the axes."""
    lanes = rows.reshape(space.blocks, -1)[:, :space.threads]
    return np.ascontiguousarray(lanes).reshape(space.shape)
