"""Array types, 16-bit arithmetic and cache-sized pieces: what every layer is computed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

from distlearn.nn.threads import blas_threads, share

Array = NDArray[Any]
Params = Mapping[str, Array]
"""Parameter arrays by full name, such as ``h.0.fc.weight``."""
Grads = dict[str, Array]
"""Gradients by the name of their parameter."""

bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
float16: np.dtype[Any] = np.dtype(np.float16)

# 262,144 float32 values are 1 MiB: a few temporaries of that size stay in a core's cache, and
# threads are busy in them for long enough not to wait for Python's lock.
PIECE = 262_144
LEAST_ROWS, MOST_ROWS = 128, 512  # of a matrix product, for one thread at a time


def wide(x: Array) -> Array:
    """The array to compute with: 16-bit values in float32, all others as they are.

    Tensor cores do the same: 16-bit operands, sums in float32, one rounding at the end.

    Examples
    --------
    >>> wide(np.ones(2, np.float16)).dtype, wide(np.ones(2)).dtype
    (dtype('float32'), dtype('float64'))
    """
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def narrow(x: Array, dtype: DTypeLike) -> Array:
    """Round to ``dtype`` (to nearest, ties to even); the same array if it has that type already.

    A finite value beyond the range of ``dtype`` becomes infinite, without a warning: that is the
    overflow which loss scaling looks for.
    """
    if x.dtype == dtype:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)


def matmul(a: Array, b: Array, bias: Array | None = None) -> Array:
    """``a @ b + bias`` with 16-bit operands summed in float32; the result is float32 or wider.

    numpy's own 16-bit matmul rounds at every step and uses no BLAS.
    """
    a, b = wide(a), wide(b)
    if a.ndim != 2 or b.ndim > 2:
        with blas_threads(1):
            product: Array = np.matmul(a, b)
        return product if bias is None else product + wide(bias)
    out = np.empty((len(a), *b.shape[1:]), np.result_type(a, b))
    # The same cuts for any number of threads: BLAS may sum a smaller product in another order.
    # Across the longer side of the result: a factor is read once a run, better the smaller one.
    wide_result = b.ndim == 2 and b.shape[1] > len(a)
    length = b.shape[1] if wide_result else len(a)
    added = None if bias is None else wide(bias)
    step = min(MOST_ROWS, max(LEAST_ROWS, length // 4))

    def multiply(run: slice) -> None:
        if wide_result:
            part = np.matmul(a, b[:, run], out=out[:, run])
        else:
            part = np.matmul(a[run], b, out=out[run])
        if added is not None:  # while the product is still in cache
            part += added[run] if wide_result else added

    share(multiply, [slice(start, start + step) for start in range(0, length, step)])
    return out


def pieces(rows: int, width: int) -> list[slice]:
    """Cut ``rows`` rows of ``width`` values into runs that fit in cache, for `share`.

    Examples
    --------
    >>> [(s.start, s.stop) for s in pieces(10, PIECE // 4)]
    [(0, 4), (4, 8), (8, 10)]
    """
    step = max(1, PIECE // max(1, width))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def pointwise(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of single values to arrays of one shape, piece by piece.

    A formula of ten numpy calls would read and write main memory ten times; a piece stays in
    cache. 16-bit values are computed in float32 and rounded once.

    Parameters
    ----------
    function : callable
        Takes one piece of each array, of equal length, and returns one piece.
    *arrays : array
        Of one shape; the result has the shape and type of the first.
    """
    first = arrays[0]
    flat = [x.reshape(-1) for x in arrays]
    out = np.empty(first.size, first.dtype)

    def compute(part: slice) -> None:
        out[part] = narrow(function(*(wide(x[part]) for x in flat)), first.dtype)

    share(compute, pieces(first.size, 1))
    return out.reshape(first.shape)


def rows_of(x: Array) -> Array:
    """``x`` as a matrix: all axes but the last joined."""
    return x.reshape(-1, x.shape[-1])


def add_gradients(total: Grads, more: Params) -> None:
    """Add gradients, by name, into ``total``; a name that is new there keeps its array.

    Examples
    --------
    >>> total = {"a": np.ones(1)}
    >>> add_gradients(total, {"a": np.ones(1), "b": np.ones(1)})
    >>> total
    {'a': array([2.]), 'b': array([1.])}
    """
    for name, gradient in more.items():
        if name in total:
            total[name] = narrow(wide(total[name]) + wide(gradient), total[name].dtype)
        else:
            total[name] = gradient
