"""One training step of a small GPT by one engine, timed in a process of its own.

``python -m benchmarks.gpt_step numpy|torch VOCAB STEPS`` prints one JSON object. A process of its
own because BLAS reads its number of threads from the environment when it is loaded.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from distlearn.nn import AdamW, ModelConfig, build, keep_freed_memory, train_step

BATCH = 8
Step = Callable[[], float]


def config(vocab: int) -> ModelConfig:
    """GPT-2 style: 4 layers, width 256, 4 heads, sequence 256."""
    return ModelConfig(layers=4, hidden=256, heads=4, vocab=vocab, seq=256)


def batch(vocab: int) -> tuple[Any, Any]:
    """Token ids and targets, the same for every engine."""
    tokens = np.random.default_rng(0).integers(0, vocab, (BATCH, 257))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def numpy_step(vocab: int) -> Step:
    """Ours: forward, backward, clipping, AdamW, in float32."""
    keep_freed_memory()
    model, rule = build(config(vocab)), AdamW(lr=1e-3)
    params = model.init(seed=0)
    state = rule.init(params)
    ids, targets = batch(vocab)
    return lambda: train_step(model, params, rule, state, ids, targets, max_norm=1.0).loss


def torch_step(vocab: int) -> Step:
    """The same from the same weights, with torch's modules, fused attention and AdamW."""
    from benchmarks import torch_gpt

    model = build(config(vocab))
    return torch_gpt.step(config(vocab), model.init(seed=0), *batch(vocab))


def gemm_meter() -> dict[str, float]:
    """Count FLOP and CPU seconds of every matrix product from now on."""
    from distlearn.nn import arrays, attention, linear

    meter = {"flop": 0.0, "seconds": 0.0}
    plain = arrays.matmul

    def counted(a: Any, b: Any, bias: Any = None) -> Any:
        start = time.process_time()
        y = plain(a, b, bias)
        meter["seconds"] += time.process_time() - start
        meter["flop"] += 2.0 * y.size * a.shape[-1]
        return y

    for module in (attention, linear):
        module.matmul = counted  # type: ignore[attr-defined]
    return meter


def gemm_peak(n: int = 1024, repeats: int = 12) -> float:
    """Most FLOP per CPU second of numpy's own float32 product of n x n matrices."""
    a = np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        a @ a
        best = min(best, time.process_time() - start)
    return 2 * n**3 / best


def main(engine: str, vocab: int, steps: int) -> dict[str, Any]:
    """Least CPU and wall seconds of a step, after one to warm up, and the losses."""
    step = {"numpy": numpy_step, "torch": torch_step}[engine](vocab)
    cpu, wall, losses = math.inf, math.inf, [step()]
    for _ in range(steps):
        start_wall, start = time.perf_counter(), time.process_time()
        losses.append(step())
        cpu = min(cpu, time.process_time() - start)
        wall = min(wall, time.perf_counter() - start_wall)
    found: dict[str, Any] = {"cpu_s": cpu, "wall_s": wall, "losses": losses}
    if engine == "numpy":
        meter, start = gemm_meter(), time.process_time()
        step()
        found["gemm_share"] = meter["seconds"] / (time.process_time() - start)
        found["gemm_rate"] = meter["flop"] / meter["seconds"]
        found["gemm_flop"] = meter["flop"]
        found["gemm_peak"] = gemm_peak()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
