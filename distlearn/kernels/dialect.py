"""The names a kernel may use, spelled as in ``numba.cuda``; they have a meaning only in a launch.

``cuda`` is never executed: executors read the kernel's syntax tree and give ``cuda.threadIdx.x``
and the rest their values. Outside a kernel every use is an error that says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

bfloat16 = ml_dtypes.bfloat16
float16 = np.float16
float32 = np.float32
float64 = np.float64
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
intp, boolean = np.int64, np.bool_

NAMES = ("cuda", "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
         "uint8", "uint16", "uint32", "uint64", "intp", "boolean",
         "load2", "load4", "store2", "store4", "wmma")
COORDINATES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
COLLECTIVES = ("syncthreads", "syncwarp")
ATOMICS = ("add", "sub", "max", "min", "nanmax", "nanmin", "exch", "cas", "and_", "or_", "xor",
           "inc", "dec", "compare_and_swap")


def _each(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python's math as one of arrays, in the widest of their types."""
    def run(*values: Any) -> Any:
        kind = np.result_type(*values)
        called = np.vectorize(_total(function), otypes=[np.float64])(*values).astype(kind)
        return called if called.shape else kind.type(called)
    return run


def _total(function: Callable[..., float]) -> Callable[..., float]:
    """What Python refuses is what the device gives: not a number, or infinite."""
    def run(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan if values[0] != 0 and values[0] != -math.inf else math.inf
        except OverflowError:
            return math.inf
    return run


# math functions a kernel may call: name -> (numpy function, floating-point operations counted)
MATH: dict[str, tuple[Callable[..., Any], int]] = {
    **{name: (getattr(np, name), 1) for name in (
        "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "log2", "log10",
        "log1p", "exp2", "expm1", "hypot", "fmod", "degrees", "radians", "cbrt")},
    **{name: (getattr(np, name), 0) for name in (
        "floor", "ceil", "trunc", "copysign", "nextafter", "isnan", "isinf", "isfinite", "frexp",
        "modf", "ldexp")},
    "fabs": (np.abs, 0), "pow": (np.power, 1), "atan2": (np.arctan2, 1),
    "asin": (np.arcsin, 1), "acos": (np.arccos, 1), "atan": (np.arctan, 1),
    "asinh": (np.arcsinh, 1), "acosh": (np.arccosh, 1), "atanh": (np.arctanh, 1),
    "erf": (_each(math.erf), 1), "erfc": (_each(math.erfc), 1), "gamma": (_each(math.gamma), 1),
    "lgamma": (_each(math.lgamma), 1), "remainder": (_each(math.remainder), 1),
}
MATH_OF: dict[Any, str] = {getattr(math, name): name for name in MATH if name != "cbrt"}
# numpy's functions of the same, and those of other names
MATH_OF |= {getattr(np, name): name for name in MATH if isinstance(
    getattr(np, name, None), np.ufunc)}
MATH_OF |= {getattr(np, "arc" + name[1:]): name for name in (
    "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")}


class Name:
    """``cuda.something``: an attribute chain that only executors understand."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self._path}.{name}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Say that this is no place to call it."""
        raise RuntimeError(f"{self._path} has a meaning only inside a kernel that is launched")

    def __repr__(self) -> str:
        return self._path


class Cuda(Name):
    """The ``cuda`` of kernel modules; ``cuda.jit`` decorates as `distlearn.kernels.kernel` does."""

    warpsize = 32

    def __init__(self) -> None:
        super().__init__("cuda")

    @staticmethod
    def jit(function: Any = None, /, **_: Any) -> Any:
        """``@cuda.jit`` and ``@cuda.jit(device=True)``; compiler options go unused."""
        from distlearn.kernels.kernel import Kernel

        return Kernel(function) if callable(function) else Kernel


cuda = Cuda()
load2, load4 = Name("intrinsics.load2"), Name("intrinsics.load4")
store2, store4 = Name("intrinsics.store2"), Name("intrinsics.store4")
wmma = Name("intrinsics.wmma")
