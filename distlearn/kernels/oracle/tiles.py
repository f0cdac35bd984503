"""Matrix products of one warp on 16 x 16 fragments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from distlearn.kernels.counters import INDEX
from distlearn.kernels.errors import KernelError
from distlearn.kernels.intrinsics import MMA_FLOPS, TILE, Vector, pieces
from distlearn.kernels.oracle.arithmetic import OPERATIONS

if TYPE_CHECKING:
    from distlearn.kernels.oracle.block import Block
    from distlearn.kernels.oracle.thread import Meeting

CALLS = ("fill_fragment", "load_matrix_sync", "load_matrix_sync_transposed", "mma_sync",
         "store_matrix_sync")


@dataclass(frozen=True, eq=False)
class Tile:
    """A fragment of a warp, whole."""

    array: NDArray[Any]


def operate(line: int, kind: str, a: Any, b: Any) -> Tile:
    """Add fragments, or multiply one by a number."""
    both = isinstance(a, Tile) and isinstance(b, Tile)
    if kind not in ("Add", "Sub", "Mult") or (kind != "Mult") != both:
        raise KernelError("unsupported", "fragments can be added, subtracted, and multiplied by a "
                          "number", line=line)
    if both:
        return Tile(OPERATIONS[kind](a.array, b.array))
    tile, number = (a, b) if isinstance(a, Tile) else (b, a)
    return Tile(tile.array * tile.array.dtype.type(number))


def collective(block: Block, met: dict[int, Meeting]) -> Any:
    """What the lanes of one warp get from a call of ``wmma`` to which they came together.

    Site by site, each lane makes its own loads and stores.
    """
    lanes, first = sorted(met), next(iter(met.values()))
    line, name = first.line, first.what.removeprefix("wmma.")
    if name not in CALLS:
        raise KernelError("unsupported", f"wmma has no {name}", line=line)
    if len(lanes) < 32:
        raise _divergence(line, lanes)
    arguments, site = first.arguments, first.key[-1]
    if name == "fill_fragment":
        return Tile(np.full((TILE, TILE), arguments[0], np.float32))
    if name == "mma_sync":
        return _mma(block, line, arguments)
    array, corner = arguments[:2]
    if any(met[lane].arguments[1] != corner for lane in lanes):
        raise _divergence(line, lanes)
    if (array.dtype != bfloat16 and array.dtype.kind != "f") or array.dtype.itemsize > 4:
        raise KernelError("unsupported", f"fragments of {array.dtype}", line=line)
    made = np.zeros((TILE, TILE), array.dtype)
    if name == "store_matrix_sync":
        made = arguments[2].array.astype(array.dtype)
    for number, piece in enumerate(pieces(array.dtype.itemsize)):
        for lane in lanes:
            thread = block.threads[lane]
            row, column = piece.rows[lane % 32], piece.columns[lane % 32]
            index = (corner[0] + row, corner[1] + column)
            part = made[row, column:column + piece.width]
            try:
                if name == "store_matrix_sync":
                    thread.store_wide(site, piece.width, array, index, Vector(part), number)
                else:
                    part[:] = thread.load_wide(site, piece.width, array, index, number)
            except KernelError as error:
                error.thread = lane
                raise
    return Tile(made.T if name.endswith("transposed") else made)


def _divergence(line: int, lanes: list[int]) -> KernelError:
    return KernelError("warp_divergence", "all 32 lanes of a warp come to a wmma call, with the "
                       f"same row and column; those of warp {lanes[0] // 32} do not", line=line,
                       thread=lanes[0] // 32 * 32)


def _mma(block: Block, line: int, arguments: tuple[Any, ...]) -> Tile:
    a, b, c = (tile.array for tile in arguments)
    if c.dtype != np.float32 or a.dtype != b.dtype or a.dtype not in (np.float16, bfloat16):
        raise KernelError("unsupported", f"mma_sync of {a.dtype}, {b.dtype} and {c.dtype}",
                          line=line)
    block.grid.tally.row(line)[INDEX["tensor_flops"]] += MMA_FLOPS
    return Tile(a.astype(np.float32) @ b.astype(np.float32) + c)
