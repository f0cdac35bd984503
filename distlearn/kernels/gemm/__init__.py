"""The GEMM ladder: one matrix product, written better and better, a file a rung."""

from __future__ import annotations

from distlearn.kernels.gemm.ladder import GEMM
from distlearn.kernels.gemm.rung import Gemm

__all__ = ["GEMM", "Gemm"]
