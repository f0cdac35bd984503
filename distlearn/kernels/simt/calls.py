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
from distlearn.kernels.memory import Constant, Global, array_attribute, item, shape_of
from distlearn.kernels.oracle.arithmetic import fused, rounded
from distlearn.kernels.shapes import check_static
from distlearn.kernels.simt import tiles, warp
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
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame

FLOPS = INDEX["flops"]
PAD = 16  # dynamic shared memory of a block is a multiple of the widest access
Call = Callable[["Frame", int, tuple[int, int], list[Any], Mask], Any]


def find(callee: Any, path: str, node: ast.Call, used: bool = True, declared: str = "") -> Call:
    """The function that carries out a call.

    ``used`` tells whether anything reads its result, ``declared`` what a shared array is called.
    """
    if path == "shared.array":
        return lambda frame, line, site, a, mask: _shared(frame, line, node, a, mask, declared)
    if path in SIMPLE:
        return SIMPLE[path]
    if path.startswith("atomic."):
        kind = path.split(".")[1]
        return lambda frame, line, site, a, mask: frame.machine.atomic(
            line, kind, array(a[0], line), a[1], a[2:], mask, used)
    if path in names.BARRIERS:
        return lambda frame, line, site, a, mask: _barrier(frame, line, path, a, mask)
    if path in names.IGNORED:
        return lambda frame, line, site, a, mask: None
    if path in names.SHUFFLES:
        return _among(path, warp.shuffle)
    if path in names.MATCHES:
        return _among(path, warp.match)
    if path.startswith("fp16.") and path[5:] in names.FP16:
        return lambda frame, line, site, a, mask: _fp16(frame, line, path[5:], a, mask)
    if path.startswith("libdevice.") and path[10:] in names.SAME_BITS:
        return lambda frame, line, site, a, mask: names.same_bits(path[10:], numeric(a[0]))
    if path in names.VOTES:
        return _among(path, warp.vote)
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
    name = "cbrt" if path == "cbrt" else names.math_name(callee)
    if name:
        return lambda frame, line, site, a, mask: _math(frame, line, name, a, mask)
    if not path and callee in names.CASTS and len(node.args) == 1:
        kind_ = names.CASTS[callee]
        return lambda frame, line, site, a, mask: cast(frame.space, line, kind_, a[0], mask)
    if callee in names.EXTREMES:
        ufunc = names.EXTREMES[callee]
        return lambda frame, line, site, a, mask: _extreme(frame, line, ufunc, a)
    if callee in BUILTINS:
        return BUILTINS[callee]
    return names.refuse(node, f"{ast.unparse(node.func)}() cannot be called in a kernel")


def _among(path: str, function: Callable[[Frame, str, list[Any], Mask], Any]) -> Call:
    """A call of lanes that name each other."""
    def run(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
        if a:
            warp.check_members(frame, line, path, a[0], mask)
        return function(frame, path, a, mask)
    return run


def array(value: Any, line: int) -> Global | Shared:
    """A value that must be an array of global or shared memory."""
    if not isinstance(value, Global | Shared):
        raise KernelError("unsupported", "an element is taken of what is no array", line=line)
    return value


def attribute(value: Any, name: str, line: int) -> Any:
    """``array.shape``, ``.ndim``, ``.size``, ``.dtype``."""
    if isinstance(value, Vector) and name in "xyzw"[:len(value)]:
        return value["xyzw".index(name)]
    if isinstance(value, Global | Shared | Local):
        return array_attribute(value, name, line)
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


def pick(space: Space, line: int, items: tuple[Any, ...], at: Any, mask: Mask) -> Any:
    """An item of a tuple; each thread its own where the index differs and the items are numbers."""
    if isinstance(at, bool):
        at = int(at)
    if not isinstance(at, Sym | np.ndarray) or is_real(at):
        return item(items, at, line)
    lanes = np.broadcast_to(numeric(at), space.shape)
    outside = space.mask(((lanes < -len(items)) | (lanes >= len(items))) & mask.array, False)
    if outside is not None:
        first = int(lanes.flat[outside.index[0]])
        raise KernelError("out_of_bounds", f"index {first} of a tuple of {len(items)}", line=line,
                          **outside.first)
    result = items[0]
    for n, value in enumerate(items[1:], 1):
        here = space.truth(lanes % len(items) == n, False)
        if here is True:
            return value
        if isinstance(here, Mask):
            result = select(space, here, value, result, line)
    return result


def _grid(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    names.check_axes(a[0], line)
    p, space = frame.machine.places, frame.space
    at = tuple(binary(space, line, "Add", binary(
        space, line, "Mult", p["blockIdx." + d], p["blockDim." + d], mask),
        p["threadIdx." + d], mask) for d in "xyz")
    return at[0] if a[0] == 1 else at[:a[0]]


def _gridsize(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    names.check_axes(a[0], line)
    p, space = frame.machine.places, frame.space
    sizes = tuple(binary(space, line, "Mult", p["gridDim." + d], p["blockDim." + d], mask)
                  for d in "xyz")
    return sizes[0] if a[0] == 1 else sizes[:a[0]]


def _selp(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    test = truth(frame.space, a[0])
    if not isinstance(test, Mask):
        return a[1] if test else a[2]
    return select(frame.space, test, a[1], a[2], line)


def _shared(frame: Frame, line: int, node: ast.Call, a: list[Any], mask: Mask, declared: str
            ) -> Shared:
    machine, kind = frame.machine, np.dtype(names.element_type(a[1], line))
    arrays = machine.shared
    if a[0] == 0:
        if "dynamic" not in arrays:
            size = -(-machine.dynamic_bytes // PAD) * PAD // machine.granule
            arrays["dynamic"] = Storage(frame.space, len(arrays), size, machine.granule)
        return Shared.over(arrays["dynamic"], kind, (machine.dynamic_bytes // kind.itemsize,))
    shape = shape_of(a[0], line, "shared.array")
    if node not in arrays:  # one for each declaration, however often it is called
        arrays[node] = Storage(frame.space, len(arrays), math.prod(shape), kind.itemsize,
                               declared, shape)
        check_static(sum(array.size * array.granule for key, array in arrays.items()
                         if key != "dynamic"), machine.dynamic_bytes, line)
    return Shared.over(arrays[node], kind, shape)


def _local(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Local:
    return Local(frame.machine, shape_of(a[0], line, "local.array"), names.element_type(a[1], line))


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


def bits(name: str, known: int) -> Call:
    """``cuda.popc`` and its like, of an integer of the bits that `names.width_of` has found."""
    def run(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
        value, width = a[0], names.width(known, a[1:])
        if isinstance(value, int):
            return names.bits(name, int(value), width)
        if is_real(value):
            raise KernelError("unsupported", f"cuda.{name} takes an integer", line=line)
        whole = np.asarray(numeric(value)).astype(np.int64)
        if width < 64:
            whole = whole & ((1 << width) - 1)
        if name == "popc":
            return _ones(whole)
        if name == "ffs":  # all bits up to the lowest that is set
            return _ones(np.where(whole == 0, 0, whole ^ (whole - 1)))
        if name == "clz":
            for step in (1, 2, 4, 8, 16, 32):
                whole = whole | (whole.view(np.uint64) >> np.uint64(step)).view(np.int64)
            return width - _ones(whole)
        turned = np.zeros_like(whole)
        for bit in range(width):
            turned |= ((whole >> bit) & 1) << (width - 1 - bit)
        return turned
    return run


def _ones(whole: Array) -> Array:
    return np.bitwise_count(whole.view(np.uint64)).astype(np.int64)


def _lanemask_lt(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    lane = special(frame, "laneid", line)
    return (np.int64(1) << numeric(lane)) - 1


def _fma(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    frame.machine.tally.row(line)[FLOPS] += 2 * mask.count
    return fused(*(v if is_real(v) else np.float64(numeric(v)) for v in a))


def _fp16(frame: Frame, line: int, name: str, a: list[Any], mask: Mask) -> Any:
    function, flops = names.FP16[name]
    frame.machine.tally.row(line)[FLOPS] += flops * mask.count
    result = np.asarray(function(*(np.asarray(numeric(v)).astype(np.float16) for v in a)))
    if result.dtype.kind == "b":
        return frame.space.truth(result, False)
    result = result.astype(np.float16)
    return result if result.shape else np.float16(result)


def _constant(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Constant:
    if not isinstance(a[0], Constant):
        raise KernelError("unsupported", "const.array_like takes a numpy array known before the "
                          "launch", line=line)
    return a[0]


def _len(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> int:
    if not isinstance(a[0], tuple | Global | Shared | Local):
        raise KernelError("unsupported", "len takes an array or a tuple", line=line)
    return len(a[0]) if isinstance(a[0], tuple) else int(a[0].shape[0])


def _abs(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    if is_real(a[0]):
        return abs(a[0])
    return _extreme(frame, line, np.maximum, [a[0], binary(
        frame.space, line, "Sub", 0, a[0], mask)])


def _round(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    value, digits = a[0], a[1] if len(a) > 1 else None
    if not isinstance(value, np.ndarray) and not isinstance(digits, Sym | np.ndarray):
        return value if isinstance(value, Sym) else rounded(value, digits, line)
    if digits is None:
        bad = frame.space.mask(~np.isfinite(value) & mask.array, False)
        if bad is not None and is_real(value):
            raise KernelError("unsupported", "round of what is not finite is no integer",
                              line=line, **bad.first)
        return np.rint(value).astype(np.int64) if is_real(value) else value
    if is_real(digits):
        raise KernelError("unsupported", "round takes an integer number of digits", line=line)
    scale = np.float64(10) ** numeric(digits)
    return (np.rint(value * scale) / scale).astype(value.dtype) if is_real(value) else value


def _divmod(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
    from distlearn.kernels.simt.frame import operate

    return tuple(operate(frame, line, kind, a[0], a[1], mask) for kind in ("FloorDiv", "Mod"))


BUILTINS: dict[Any, Call] = {abs: _abs, np.abs: _abs, len: _len, round: _round, divmod: _divmod}


def _syncwarp(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> None:
    if a:
        warp.check_members(frame, line, "syncwarp", a[0], mask)
    frame.machine.syncwarps.append(mask)


SIMPLE: dict[str, Call] = {
    "grid": _grid, "gridsize": _gridsize, "selp": _selp,
    "local.array": _local, "syncwarp": _syncwarp, "lanemask_lt": _lanemask_lt, "fma": _fma,
    "const.array_like": _constant,
}


def _math(frame: Frame, line: int, name: str, a: list[Any], mask: Mask) -> Any:
    function, flops = MATH[name]
    frame.machine.tally.row(line)[FLOPS] += flops * mask.count
    values = [v if is_real(v) else np.float64(numeric(v)) for v in a]
    if name == "ldexp":
        values[1] = np.asarray(numeric(a[1])).astype(np.int32)
    result = function(*values)
    return tuple(_plain(frame, part) for part in result) if isinstance(
        result, tuple) else _plain(frame, result)


def _plain(frame: Frame, value: Any) -> Any:
    """What numpy has computed as a value of all threads."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "b":
            return frame.space.truth(value, False)
        return value.astype(np.int64) if value.dtype.kind in "iu" else value
    if isinstance(value, np.bool_):
        return bool(value)
    return int(value) if isinstance(value, np.integer) else value


def _extreme(frame: Frame, line: int, function: Any, items: list[Any]) -> Any:
    if any(isinstance(value, tuple | Global | Shared | Local) for value in items):
        raise KernelError("unsupported", "min and max take numbers", line=line)
    result, sign = items[0], "Lt" if function in (np.minimum, np.fmin) else "Gt"
    for value in items[1:]:
        if is_real(result) or is_real(value) or isinstance(result, np.ndarray) or isinstance(
                value, np.ndarray):
            result = function(numeric(result), numeric(value))
            continue
        least = compare(frame.space, line, sign, value, result)
        if isinstance(least, Mask):
            result = select(frame.space, least, value, result, line)
        else:
            result = value if least else result
    return int(result) if isinstance(result, np.integer) else result
