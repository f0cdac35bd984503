"""GEMM kernels in the SIMT executor, everything counted and race checks on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Result, cpu_seconds
from distlearn.kernels import Kernel, kernels_from_text, launch

TITLE = "SIMT executor"
TEXT = Path(__file__).parents[1] / "tests" / "data" / "gpu" / "kernels.txt"
TILE = 16
# (kernel, n, most CPU seconds)
LIMITS = (
    ("gemm_naive", 64, 0.01),
    ("gemm_tiled", 64, 0.03),
    ("gemm_tiled", 128, 0.1),
    ("gemm_tiled", 256, 0.15),
    ("gemm_tiled", 512, 0.5),
    ("gemm_tiled", 1024, 4.0),
)
FLOOR = "numpy's A @ B"


def results() -> Iterator[Result]:
    """Naive and tiled GEMM of several sizes, beside numpy's own product."""
    kernels = kernels_from_text(TEXT.read_text(encoding="utf-8"), str(TEXT))
    for name, n, limit in LIMITS:
        seconds, floor = _gemm(kernels[name], n)
        yield Result(f"{name} {n}x{n}x{n}", seconds, FLOOR, floor, limit=limit)


def _gemm(kernel: Kernel, n: int) -> tuple[float, float]:
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    c = np.zeros_like(a)
    grid, block = (n // TILE, n // TILE), (TILE, TILE)
    repeats = 1 if n > 512 else 3
    seconds, _ = cpu_seconds(lambda: launch(kernel, grid, block, c, a, b, n, n, n), repeats)
    floor, product = cpu_seconds(lambda: a @ b)
    np.testing.assert_allclose(c, product, rtol=1e-4)
    return seconds, floor
