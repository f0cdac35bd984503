"""How matrices lie in the memories of a cube core: ND, Nz, Zz and Zn.

A matrix is cut into fractals of r by c elements, padded with zeros. In L1, L0A and L0B these are
16 rows of 32 bytes (16 x 16 float16, 16 x 32 int8; 512 bytes), in L0C 16 x 16 elements of whatever
type (float32: 1,024 bytes). The capital letter says how the fractals follow each other, the small
one how the elements do within a fractal: ``z`` row after row, ``n`` column after column.

======  ===================  =============  ==========================
name    used in              fractals       array here
======  ===================  =============  ==========================
ND      global memory        none           (rows, columns)
Nz      L1, L0C              column-major   (columns/c, rows/r, r, c)
Zz      L0A                  row-major      (rows/r, columns/c, r, c)
Zn      L0B                  row-major      (rows/c, columns/r, r, c)
======  ===================  =============  ==========================

In Zn a fractal is turned: its r = 16 lie along the columns of the matrix and its 32 bytes along the
rows, so that the cube unit reads both operands along the axis that it sums over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Fractal = tuple[int, int]

FORMATS = ("Nz", "Zz", "Zn")

# ``format`` is the vendor's word for it, and the public name: it may hide the builtin here (A002).


def to_fractals(matrix: Array, format: str, fractal: Fractal) -> Array:  # noqa: A002
    """A matrix (ND) in another format, padded with zeros to whole fractals.

    Parameters
    ----------
    matrix : array, shape (rows, columns)
    format : "Nz", "Zz" or "Zn"
    fractal : (int, int)
        Rows r and columns c of a fractal.

    Returns
    -------
    array, four axes, contiguous
        As in the table above: its memory is what lies in the buffer.

    Raises
    ------
    ValueError
        For another format, or an array that is no matrix.

    Examples
    --------
    Fractals of 2 x 2 for a short example:

    >>> m = np.arange(16).reshape(4, 4)
    >>> {name: to_fractals(m, name, (2, 2)).ravel().tolist()[:8] for name in FORMATS}
    {'Nz': [0, 1, 4, 5, 8, 9, 12, 13], 'Zz': [0, 1, 4, 5, 2, 3, 6, 7], \
'Zn': [0, 4, 1, 5, 2, 6, 3, 7]}
    """
    _check(format)
    if matrix.ndim != 2:
        raise ValueError(f"matrix must have two axes; got shape {matrix.shape}")
    rows, columns = matrix.shape
    high, wide = _steps(format, fractal)
    shape = -(-rows // high) * high, -(-columns // wide) * wide
    padded = matrix
    if shape != matrix.shape:
        padded = np.zeros(shape, matrix.dtype)
        padded[:rows, :columns] = matrix
    blocks = padded.reshape(shape[0] // high, high, shape[1] // wide, wide)
    order = {"Nz": (2, 0, 1, 3), "Zz": (0, 2, 1, 3), "Zn": (0, 2, 3, 1)}[format]
    return np.ascontiguousarray(blocks.transpose(order))


def from_fractals(fractals: Array, format: str, shape: tuple[int, int]) -> Array:  # noqa: A002
    """The matrix (ND) of this shape that lies in fractals; what was padded is left out.

    Raises
    ------
    ValueError
        For another format, or fewer fractals than the shape needs.
    """
    _check(format)
    if fractals.ndim != 4:
        raise ValueError(f"fractals must have four axes; got shape {fractals.shape}")
    order = {"Nz": (1, 2, 0, 3), "Zz": (0, 2, 1, 3), "Zn": (0, 3, 1, 2)}[format]
    blocks = fractals.transpose(order)
    rows, columns = blocks.shape[0] * blocks.shape[1], blocks.shape[2] * blocks.shape[3]
    if shape[0] > rows or shape[1] > columns:
        raise ValueError(f"shape {shape} is larger than the {rows} x {columns} that the fractals "
                         "hold")
    return blocks.reshape(rows, columns)[:shape[0], :shape[1]]


def fractal_bytes(shape: tuple[int, int], format: str, fractal: Fractal,  # noqa: A002
                  itemsize: int) -> int:
    """Bytes of a matrix of this shape in a format, with its padding.

    Examples
    --------
    >>> fractal_bytes((100, 30), "Nz", (16, 16), 2)   # 7 x 2 fractals of 512 bytes
    7168
    """
    _check(format)
    high, wide = _steps(format, fractal)
    return -(-shape[0] // high) * -(-shape[1] // wide) * high * wide * itemsize


def _steps(name: str, fractal: Fractal) -> Fractal:
    """Rows and columns of the matrix that one fractal covers."""
    r, c = fractal
    return (c, r) if name == "Zn" else (r, c)


def _check(name: str) -> None:
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {name!r}")
