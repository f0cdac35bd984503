"""CUDA C on the same executors: the subset that teaching kernels use, hosts and all.

``load(text)["kernel"][grid, block](*arrays)`` launches a kernel, ``load(text).run()`` runs
``main``.
"""

from __future__ import annotations

from distlearn.kernels.cuda_c.errors import HostError, SourceError
from distlearn.kernels.cuda_c.kernel import CudaKernel
from distlearn.kernels.cuda_c.program import Program, Run, load

__all__ = ["CudaKernel", "HostError", "Program", "Run", "SourceError", "load"]
