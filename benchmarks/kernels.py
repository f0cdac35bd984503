"""Kernels in the SIMT executor, everything counted and race checks on, beside numba's simulator."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Result, cpu_seconds, growth_exponent

TITLE = "SIMT executor"
TEXT = Path(__file__).parents[1] / "tests" / "data" / "gpu" / "kernels.txt"
# Kernel, tile and threads of a block, sizes, most CPU seconds at each, and whether numba's
# simulator takes less than half a minute.
GEMMS: tuple[tuple[str, int, tuple[int, ...], tuple[tuple[int, float | None, bool], ...]], ...] = (
    ("gemm_naive", 16, (16, 16), ((64, 0.01, True), (128, None, True))),
    ("gemm_naive_uncoalesced", 16, (16, 16), ((64, None, True),)),
    ("gemm_tiled", 16, (16, 16), ((64, 0.03, True), (128, 0.1, False), (256, 0.15, False),
                                  (512, 0.5, False), (1024, 4.0, False))),
    ("gemm_tiled32", 32, (32, 32), ((64, None, True),)),
    ("gemm_regtile_2d", 32, (64,), ((64, None, True), (128, None, True))),
)
COLLATZ = 4096
FASTER = 100  # than numba's simulator
FLOOR, PEER = "numpy's A @ B", "numba's simulator"


def arguments(name: str, n: int) -> tuple[Any, ...]:
    """What a kernel of the file is launched on, the result first."""
    if name == "collatz":
        return np.zeros(n, np.int64), np.arange(1, n + 1), n
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    return np.zeros_like(a), a, b, n, n, n


def results() -> Iterator[Result]:
    """GEMMs and a loop that depends on data; then how the cost of a GEMM grows."""
    # The process that times the simulator imports this module too, without the package's needs.
    from distlearn.kernels import kernels_from_text, launch

    kernels = kernels_from_text(TEXT.read_text(encoding="utf-8"), str(TEXT))
    peer = importlib.util.find_spec("numba") is not None and (
        importlib.util.find_spec("numba.cuda") is not None)
    seconds: dict[int, float] = {}
    for name, tile, block, sizes in GEMMS:
        for n, limit, simulated in sizes:
            given = arguments(name, n)
            grid = (n // tile, n // tile)
            run = _launched(launch, kernels[name], grid, block, given)
            taken, _ = cpu_seconds(run, 3 if n > 512 else 5 if n > 128 else 20)
            floor, product = cpu_seconds(lambda given=given: given[1] @ given[2])
            np.testing.assert_allclose(given[0], product, rtol=1e-4)
            what = f"{name} {n}x{n}x{n}"
            yield Result(what, taken, FLOOR, floor, limit=limit)
            if peer and simulated:
                yield from _against(what, taken, name, grid, block, n)
            if name == "gemm_tiled":
                seconds[n] = taken
    given = arguments("collatz", COLLATZ)
    grid, block = (COLLATZ // 128,), (128,)
    taken, _ = cpu_seconds(_launched(launch, kernels["collatz"], grid, block, given), 20)
    yield Result(f"collatz {COLLATZ}", taken, note="a loop that depends on data")
    if peer:
        yield from _against(f"collatz {COLLATZ}", taken, "collatz", grid, block, COLLATZ)
    large = [n for n in seconds if n >= 256]
    yield Result("gemm_tiled, growth from 256 to 1024",
                 growth_exponent(large, [seconds[n] for n in large]), limit=3.1,
                 unit="power of n", note="its multiply-adds grow with the third power")


def _launched(launch: Callable[..., Any], kernel: Any, grid: tuple[int, ...],
              block: tuple[int, ...], given: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: launch(kernel, grid, block, *given)


def _against(what: str, taken: float, name: str, grid: tuple[int, ...], block: tuple[int, ...],
             n: int) -> Iterator[Result]:
    """The simulator's time, in a process of its own: it is chosen when numba is imported."""
    job = json.dumps({"name": name, "grid": grid, "block": block, "n": n})
    done = [subprocess.run([sys.executable, "-m", "benchmarks.kernels", job], check=True,
                           capture_output=True, text=True, cwd=Path(__file__).parents[1],
                           env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}) for _ in range(2)]
    simulated = min(float(run.stdout) for run in done)  # its threads make it vary by two
    yield Result(f"{what}, of the simulator's time", taken / simulated, PEER, 1.0,
                 limit=1 / FASTER, unit="", note=f"the simulator takes {simulated:.3g} CPU s")


def _simulate(name: str, grid: list[int], block: list[int], n: int) -> float:
    from numba import cuda, float32

    space: dict[str, Any] = {"cuda": cuda, "float32": float32}
    exec(compile(TEXT.read_text(encoding="utf-8"), str(TEXT), "exec"), space)
    given = arguments(name, n)
    kernel = cuda.jit(space[name])
    start = time.process_time()
    kernel[tuple(grid), tuple(block)](*given)
    return time.process_time() - start


if __name__ == "__main__":
    print(_simulate(**json.loads(sys.argv[1])))
