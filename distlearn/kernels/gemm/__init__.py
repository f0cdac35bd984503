"""The GEMM ladder: one matrix product, written better and better, a file a rung.

Rungs repeat each other's lines on purpose: each is read alone, and what a step changes is the
difference of two files.
"""

from __future__ import annotations

from distlearn.kernels.gemm.ladder import GEMM
from distlearn.kernels.gemm.rung import Gemm

__all__ = ["GEMM", "Gemm"]
