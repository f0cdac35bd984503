"""What a GPU has and ``numba.cuda`` cannot spell: vector loads and warp matrix products.

``numba.cuda`` has the types ``cuda.float32x4(x, y, z, w)`` with ``.x`` ... ``.w``, but neither
arrays of them nor ``array.view(cuda.float32x4)``, so no spelling of it becomes one 16-byte load.
Hence these names; import them where a kernel is written:

``load2(array, index)``, ``load4(array, index)``
    The element at ``index`` and those after it along the last axis, by one instruction: what
    ``reinterpret_cast<float4 *>(&array[row][column])[0]`` does in CUDA C. The first element's
    address must be a multiple of the bytes that are moved.
``store2(array, index, vector)``, ``store4(array, index, vector)``
    The way back.
``wmma.fill_fragment(value)``
    A 16 x 16 accumulator (float32), one per warp, every element ``value``.
``wmma.load_matrix_sync(array, (row, column))``, ``wmma.load_matrix_sync_transposed(...)``
    The 16 x 16 tile that begins there, or its transpose ("col_major" in CUDA C++). The row and
    column are the same for all lanes of a warp.
``wmma.mma_sync(a, b, c)``
    ``a @ b + c``: float16 or bfloat16 in, products and sums in float32.
``wmma.store_matrix_sync(array, (row, column), fragment)``
    Write a tile. An accumulator is rounded to the array's type.

Fragments can be added, and multiplied by a uniform number. All 32 lanes of a warp must come to a
``wmma`` call, else the error is "warp_divergence" (CUDA C++ Programming Guide, "Warp Matrix
Functions": anything else hangs or is undefined).

CUDA leaves open which lane holds which element. Counted here is the mapping of the instructions
that compute capability 8.0 compiles it to: a float16 tile moves as 16 bytes a lane (``ldmatrix``:
lane l has row l % 16 and the half l // 16 of its columns), a float32 tile as four pieces of 8 bytes
a lane (``mma.m16n8k16``: lane l has row l // 4 and columns 2 (l % 4) and the next, of each
quarter).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels.dialect import load2, load4, store2, store4, wmma
from distlearn.kernels.errors import KernelError

__all__ = ["load2", "load4", "store2", "store4", "wmma"]

TILE = 16
MMA_FLOPS = 2 * TILE**3
BYTES = 16  # the widest access of a lane


class Vector(tuple[Any, ...]):
    """The value of ``cuda.float32x4`` and its like: one number a component."""

    __slots__ = ()


def flattened(items: Any) -> list[Any]:
    """Components of numbers and vectors: ``float32x4(xy, z, w)`` may join them."""
    return [part for item in items for part in (item if isinstance(item, Vector) else (item,))]


def vector_of(value: Any, width: int, line: int) -> Vector:
    """A value that must be a vector of ``width`` components."""
    if not isinstance(value, Vector) or len(value) != width:
        raise KernelError("unsupported", f"a vector of {width} components is wanted here",
                          line=line)
    return value


class Piece(NamedTuple):
    """The part of a 16 x 16 tile that one request moves: lanes' rows and columns, and its width."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    width: int


def pieces(itemsize: int) -> tuple[Piece, ...]:
    """The requests that move a tile of 2- or 4-byte elements, by lane.

    >>> [piece.width for piece in pieces(4)]
    [2, 2, 2, 2]
    """
    lanes = range(32)
    if itemsize == 2:
        return (Piece(tuple(n % TILE for n in lanes), tuple(8 * (n // TILE) for n in lanes), 8),)
    return tuple(Piece(tuple(n // 4 + down for n in lanes), tuple(2 * (n % 4) + right
                                                                  for n in lanes), 2)
                 for down in (0, 8) for right in (0, 8))


VECTORS: dict[str, tuple[Any, int]] = {
    name.format(n): (kind, n)
    for short, long, kind in (("float", "float32x", np.float32), ("double", "float64x", np.float64),
                              ("int", "int32x", np.int32))
    for n in (2, 3, 4) for name in (short + "{}", long + "{}")
}
WIDTHS = {"load2": 2, "load4": 4, "store2": 2, "store4": 4}
