"""What cases of kernels share: wanted values, what a mistake writes, the fewest sectors."""

from __future__ import annotations

from typing import Any

import numpy as np


def wants(out: Any, **most: int) -> dict[str, Any]:
    """The wanted value of a case, as `distlearn.grading.kernel_answer` describes it.

    Examples
    --------
    >>> wants([4.0], barriers=7)
    {'out': [4.0], 'most': {'barriers': 7}}
    """
    return {"out": out, "most": most}


def wrote(out: Any) -> dict[str, Any]:
    """What a mistake writes, as a run."""
    return {"out": out, "counters": {}, "lines": []}


def numbers(count: int, step: int = 3, most: int = 11) -> list[float]:
    """Small halves of both signs, in no simple order: no whole numbers, and exact in float16.

    Examples
    --------
    >>> numbers(6)
    [-2.5, -1.0, 0.5, 2.0, -2.0, -0.5]
    """
    return [(k * step % most - most // 2) / 2 for k in range(count)]


def matrix(rows: int, columns: int, step: int = 3) -> list[list[float]]:
    """The same in rows."""
    flat = numbers(rows * columns, step)
    return [flat[r * columns:(r + 1) * columns] for r in range(rows)]


def product(A: list[list[float]], B: list[list[float]]) -> list[list[float]]:
    """The matrix product of two lists of rows.

    Examples
    --------
    >>> product([[1.0, 2.0]], [[3.0], [4.0]])
    [[11.0]]
    """
    made: list[list[float]] = (np.array(A) @ np.array(B)).tolist()
    return made


def sectors(count: int) -> int:
    """32-byte sectors of so many float32 in a row, from the start of an array."""
    return -(-count // 8)


def row_sectors(rows: int, columns: int, width: int = 32) -> int:
    """Sectors of a matrix in row-major order, if each warp takes ``width`` columns of one row."""
    total = 0
    for r in range(rows):
        for start in range(0, columns, width):
            first, last = r * columns + start, r * columns + min(start + width, columns) - 1
            total += last // 8 - first // 8 + 1
    return total


def tenth_more(count: int) -> int:
    """1.1 times as many, rounded down."""
    return count * 11 // 10
