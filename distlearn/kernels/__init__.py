"""GPU kernels on numpy (note 1): numba.cuda's spelling, exact counters, named errors.

``@kernel`` makes a kernel of a function; ``launch(f, grid, block, *arrays)`` or
``f[grid, block](*arrays)`` runs it and gives a `LaunchReport`.
"""

from __future__ import annotations

from distlearn.kernels.counters import NAMES, NSIGHT, Counters
from distlearn.kernels.dialect import (
    bfloat16,
    cuda,
    float16,
    float32,
    float64,
    int32,
    int64,
)
from distlearn.kernels.errors import KINDS, KernelError
from distlearn.kernels.gemm import GEMM
from distlearn.kernels.intrinsics import load2, load4, store2, store4, wmma
from distlearn.kernels.kernel import Kernel, kernel, kernels_from_text
from distlearn.kernels.launch import launch
from distlearn.kernels.report import LaunchReport

__all__ = [
    "GEMM",
    "KINDS",
    "NAMES",
    "NSIGHT",
    "Counters",
    "Kernel",
    "KernelError",
    "LaunchReport",
    "bfloat16",
    "cuda",
    "float16",
    "float32",
    "float64",
    "int32",
    "int64",
    "kernel",
    "kernels_from_text",
    "launch",
    "load2",
    "load4",
    "store2",
    "store4",
    "wmma",
]
