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
int32 = np.int32
int64 = np.int64

NAMES = ("cuda", "bfloat16", "float16", "float32", "float64", "int32", "int64",
         "load2", "load4", "store2", "store4", "wmma")
COORDINATES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
COLLECTIVES = ("syncthreads", "syncwarp")
ATOMICS = ("add", "sub", "max", "min", "exch", "cas", "and_", "or_", "xor")

# math functions a kernel may call: name -> (numpy function, floating-point operations counted)
MATH: dict[str, tuple[Callable[..., Any], int]] = {
    "sqrt": (np.sqrt, 1), "exp": (np.exp, 1), "log": (np.log, 1), "sin": (np.sin, 1),
    "cos": (np.cos, 1), "tan": (np.tan, 1), "tanh": (np.tanh, 1), "fabs": (np.abs, 0),
    "floor": (np.floor, 0), "ceil": (np.ceil, 0), "pow": (np.power, 1), "atan2": (np.arctan2, 1),
    "log2": (np.log2, 1), "exp2": (np.exp2, 1), "isnan": (np.isnan, 0), "isinf": (np.isinf, 0),
}
MATH_OF = {getattr(math, name): name for name in MATH}


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
