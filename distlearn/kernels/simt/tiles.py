"""Matrix products of warps on 16 x 16 fragments, for all warps at once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from ml_dtypes import bfloat16

from distlearn.kernels import names
from distlearn.kernels.counters import INDEX, WARP
from distlearn.kernels.errors import KernelError
from distlearn.kernels.intrinsics import MMA_FLOPS, TILE, Vector, pieces
from distlearn.kernels.oracle.arithmetic import OPERATIONS
from distlearn.kernels.simt.numbers import binary, is_real, numeric
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array
from distlearn.kernels.simt.warp import threads

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame

FLOPS, TENSOR = INDEX["flops"], INDEX["tensor_flops"]


@dataclass(frozen=True, eq=False)
class Fragment:
    """A tile of every warp: ``array`` has shape (warps or 1, 16, 16)."""

    array: Array

    def selected(self, mask: Mask, old: Fragment) -> Fragment:
        """Its own tile in the warps of the mask, ``old`` in the others."""
        return Fragment(np.where(mask.rows[:, :1, None], self.array, old.array))


def find(name: str, node: ast.Call) -> Callable[..., Any]:
    """The function that carries out a call of ``wmma``."""
    made: dict[str, Callable[..., Any]] = {
        "fill_fragment": _fill, "mma_sync": _mma, "store_matrix_sync": _store,
        "load_matrix_sync": _load,
        "load_matrix_sync_transposed": _load_turned}
    if name not in made:
        names.refuse(node, f"wmma has no {name}; it has {', '.join(made)}")

    def run(frame: Frame, line: int, site: Any, a: list[Any], mask: Mask) -> Any:
        torn = mask.rows.any(axis=1) & ~mask.rows.all(axis=1)
        if torn.any():
            raise divergence(line, int(np.flatnonzero(torn)[0]), frame)
        return made[name](frame, line, a, mask)
    return run


def divergence(line: int, row: int, frame: Frame) -> KernelError:
    """The error of a warp of which not all 32 lanes do the same."""
    space = frame.space
    return KernelError(
        "warp_divergence", "all 32 lanes of a warp come to a wmma call, with the same row and "
        f"column; those of warp {row % space.warps_per_block} do not", line=line,
        block=int(space.numbers[row // space.warps_per_block]),
        thread=row % space.warps_per_block * WARP)


def _fill(frame: Frame, line: int, a: list[Any], mask: Mask) -> Fragment:
    return Fragment(np.full((1, TILE, TILE), _uniform(a[0], line), np.float32))


def _uniform(value: Any, line: int) -> Any:
    value = numeric(value)
    if isinstance(value, np.ndarray) and value.size > 1:
        raise KernelError("unsupported", "a fragment takes numbers that are the same for all "
                          "threads", line=line)
    return value.reshape(())[()] if isinstance(value, np.ndarray) else value


def _lanes(space: Space, numbers: tuple[int, ...]) -> Any:
    """A number of each lane as a value of all threads."""
    key = ("lanes", numbers)
    memo = space.full.memo
    if key not in memo:
        block = np.resize(np.array(numbers), space.threads)
        memo[key] = space.opaque(block.reshape(1, 1, 1, *space.shape[3:]))
    return memo[key]


def _corner(frame: Frame, line: int, corner: Any, mask: Mask) -> tuple[Any, Any]:
    if not isinstance(corner, tuple) or len(corner) != 2:
        raise KernelError("unsupported", "a fragment lies at (row, column) of an array of two axes",
                          line=line)
    for number in corner:
        rows = frame.space.rows(np.asarray(numeric(number)), 0)
        torn = (rows != rows[:, :1]).any(axis=1) & mask.rows[:, 0]
        if torn.any():
            raise divergence(line, int(np.flatnonzero(torn)[0]), frame)
    return corner


def _places(frame: Frame, line: int, array: Any, corner: Any, mask: Mask) -> list[tuple[Any, Any]]:
    from distlearn.kernels.simt.calls import array as checked

    item = checked(array, line).dtype.itemsize
    if array.dtype.kind not in "fV" or item > 4:
        raise KernelError("unsupported", f"fragments of {array.dtype}; they are of float16, "
                          "bfloat16 or float32", line=line)
    row, column = _corner(frame, line, corner, mask)
    space = frame.space
    return [(piece, (binary(space, line, "Add", row, _lanes(space, piece.rows), mask),
                     binary(space, line, "Add", column, _lanes(space, piece.columns), mask)))
            for piece in pieces(item)]


def _load_turned(frame: Frame, line: int, a: list[Any], mask: Mask) -> Fragment:
    return Fragment(_load(frame, line, a, mask).array.transpose(0, 2, 1))


def _load(frame: Frame, line: int, a: list[Any], mask: Mask) -> Fragment:
    space, array = frame.space, a[0]
    tile: Any = None
    for piece, index in _places(frame, line, array, a[1], mask):
        values = frame.machine.load(line, array, index, mask, piece.width)
        if tile is None:
            tile = np.zeros((space.blocks * space.warps_per_block, TILE, TILE), array.dtype)
        rows, columns = np.array(piece.rows), np.array(piece.columns)
        for n, value in enumerate(values):
            tile[:, rows, columns + n] = space.rows(np.asarray(numeric(value)), 0)
    return Fragment(tile)


def _store(frame: Frame, line: int, a: list[Any], mask: Mask) -> None:
    space, array, fragment = frame.space, a[0], _fragment(a[2], line)
    whole = np.broadcast_to(fragment.array,
                            (space.blocks * space.warps_per_block, TILE, TILE)).astype(array.dtype)
    for piece, index in _places(frame, line, array, a[1], mask):
        rows, columns = np.array(piece.rows), np.array(piece.columns)
        values = Vector(threads(space, whole[:, rows, columns + n]) for n in range(piece.width))
        frame.machine.store(line, array, index, values, mask, piece.width)


def _fragment(value: Any, line: int) -> Fragment:
    if not isinstance(value, Fragment):
        raise KernelError("unsupported", "a fragment is wanted here", line=line)
    return value


def _mma(frame: Frame, line: int, a: list[Any], mask: Mask) -> Fragment:
    left, right, total = (_fragment(v, line).array for v in a)
    if total.dtype != np.float32 or left.dtype != right.dtype or left.dtype not in (
            np.float16, bfloat16):
        raise KernelError("unsupported", f"mma_sync of {left.dtype}, {right.dtype} and "
                          f"{total.dtype}; it takes float16 or bfloat16, twice, and float32",
                          line=line)
    frame.machine.tally.row(line)[TENSOR] += MMA_FLOPS * mask.warps
    return Fragment(left.astype(np.float32) @ right.astype(np.float32) + total)


def operate(frame: Frame, line: int, kind: str, a: Any, b: Any, mask: Mask) -> Fragment:
    """Add fragments, or multiply one by a number; every lane has 8 elements."""
    both = isinstance(a, Fragment) and isinstance(b, Fragment)
    if kind not in ("Add", "Sub", "Mult") or (kind != "Mult") != both:
        raise KernelError("unsupported", "fragments can be added, subtracted, and multiplied by a "
                          "number", line=line)
    frame.machine.tally.row(line)[FLOPS] += TILE * TILE // WARP * mask.count
    if both:
        return Fragment(OPERATIONS[kind](a.array, b.array))
    tile, number = (a, b) if isinstance(a, Fragment) else (b, a)
    number = _uniform(number, line)
    if not is_real(number):
        number = np.float32(number)
    return Fragment(tile.array * tile.array.dtype.type(number))
