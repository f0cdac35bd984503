"""How much work a kernel is: the FLOP it does and the bytes it has to move at least.

The counts are floors: each operand is read from the device memory once, each result written once.
"""

from __future__ import annotations

from typing import NamedTuple

from distlearn.hardware.devices import Unit
from distlearn.hardware.dtypes import dtype_name, itemsize


class Work(NamedTuple):
    """A kernel's work.

    Attributes
    ----------
    name : str
    flops : float
        FLOP of the whole kernel.
    bytes : float
        Bytes of device memory traffic.
    dtype : str
        Number format of the arithmetic.
    unit : "vector" or "matrix"
        The unit that does it.
    """

    name: str
    flops: float
    bytes: float
    dtype: str
    unit: Unit


def gemm(m: int, n: int, k: int, dtype: object = "float16") -> Work:
    """C (m, n) = A (m, k) @ B (k, n): ``2 m n k`` FLOP; A and B read, C written.

    Examples
    --------
    >>> gemm(1024, 1024, 1024).flops / gemm(1024, 1024, 1024).bytes
    341.3333333333333
    """
    _check(m=m, n=n, k=k)
    moved = (m * k + k * n + m * n) * itemsize(dtype)
    shape = f"{m}" if m == n == k else f"{m}×{n}×{k}"
    return Work(f"GEMM {shape}", 2.0 * m * n * k, float(moved), dtype_name(dtype), "matrix")


def layer_norm(rows: int, features: int, dtype: object = "float16") -> Work:
    """LayerNorm forward over the last axis of (rows, features).

    7 FLOP an element, in float32: sum, centre, square and sum, times 1/σ, times γ, plus β.
    ``dtype`` is how the input (read once), the output (written once), γ and β are stored.
    """
    _check(rows=rows, features=features)
    moved = (2 * rows * features + 2 * features) * itemsize(dtype)
    return Work("LayerNorm", 7.0 * rows * features, float(moved), "float32", "vector")


def adam_step(parameters: int) -> Work:
    """One Adam step in float32 (Kingma and Ba, ICLR 2015, algorithm 1 in its efficient order).

    12 FLOP a parameter: 3 for the first moment, 4 for the second, 5 for the step. 28 bytes a
    parameter: weight, gradient and both moments read, all but the gradient written.
    """
    _check(parameters=parameters)
    return Work("Adam step", 12.0 * parameters, 28.0 * parameters, "float32", "vector")


def _check(**sizes: int) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ValueError(f"{name} must be an integer >= 1; got {name}={size!r}")
