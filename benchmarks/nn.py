"""One training step of a small GPT in numpy, beside PyTorch on the same threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Result

TITLE = "A training step of a 4-layer GPT, width 256, sequence 256, batch 8, float32"
LIMIT_RATIO = 1.5  # of torch's time
STEPS, ROUNDS = 6, 3
BLAS_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # would make numpy's BLAS another one


def results() -> Iterator[Result]:
    """Step times by vocabulary and threads, and how much of ours is matrix products."""
    from benchmarks import torch_gpt

    threads = sorted({1, os.cpu_count() or 1})
    for vocab in (512, 8192):
        for count in threads:
            engines = ["numpy", "torch"] if torch_gpt.available() else ["numpy"]
            best = measure(engines, vocab, count)
            yield from _compared(best, vocab, count)
    if not torch_gpt.available():
        yield Result("beside PyTorch", 0.0, unit="",
                     note="torch is not installed: pip install 'distlearn[torch]'")


def measure(engines: list[str], vocab: int, threads: int) -> dict[str, dict[str, Any]]:
    """The best of a few rounds of each engine, taking turns, in processes of their own."""
    environment = {key: value for key, value in os.environ.items() if key not in BLAS_SETTINGS}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = str(threads)
    best: dict[str, dict[str, Any]] = {}
    for _ in range(ROUNDS):
        for engine in engines:
            command = [sys.executable, "-m", "benchmarks.gpt_step", engine, str(vocab), str(STEPS)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout)
            before = best.get(engine, found)
            wall = min(found["wall_s"], before["wall_s"])
            best[engine] = min(found, before, key=lambda run: run["cpu_s"]) | {"wall_s": wall}
    return best


def _compared(best: dict[str, dict[str, Any]], vocab: int, threads: int) -> Iterator[Result]:
    # One thread: CPU seconds, which other programs disturb least. More: wall seconds.
    key, unit = ("cpu_s", "CPU s") if threads == 1 else ("wall_s", "s")
    ours, torch = best["numpy"], best.get("torch")
    name = f"step, vocabulary {vocab}, {threads} thread{'s' if threads > 1 else ''}"
    if torch is None:
        yield Result(name, ours[key], unit=unit)
    else:
        apart = max(abs(a - b) for a, b in zip(ours["losses"], torch["losses"], strict=True))
        yield Result(name, ours[key], "PyTorch", torch[key], LIMIT_RATIO * torch[key], unit,
                     note=f"losses of {len(ours['losses'])} steps agree to {apart:.0e}")
    if threads == 1:
        yield Result("its matrix products", ours["gemm_rate"] / 1e9, "numpy, 1024 x 1024",
                     ours["gemm_peak"] / 1e9, unit="GFLOP/s",
                     note=f"{ours['gemm_share']:.0%} of the step's time")
