"""The cube core of an Ascend: its formats, pipes and flags, a GEMM on it, and the tiling search."""

from __future__ import annotations

from distlearn.kernels.ascend.core import CubeCore
from distlearn.kernels.ascend.errors import AscendError, BufferOverflowError
from distlearn.kernels.ascend.formats import fractal_bytes, from_fractals, to_fractals
from distlearn.kernels.ascend.gemm import GemmReport, gemm, gemm_program
from distlearn.kernels.ascend.queues import Queue
from distlearn.kernels.ascend.tensors import LocalTensor
from distlearn.kernels.ascend.tiling import Prediction, Tiling, predict, search
from distlearn.kernels.ascend.timeline import Event, Timeline

__all__ = [
    "AscendError",
    "BufferOverflowError",
    "CubeCore",
    "Event",
    "GemmReport",
    "LocalTensor",
    "Prediction",
    "Queue",
    "Tiling",
    "Timeline",
    "fractal_bytes",
    "from_fractals",
    "gemm",
    "gemm_program",
    "predict",
    "search",
    "to_fractals",
]
