"""Several optimiser steps in a row, against PyTorch's: weights, losses, gradient norms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from distlearn.nn import (
    AdamW,
    Grads,
    MeanSquaredError,
    ModelConfig,
    accumulate,
    add_gradients,
    build,
    clip_by_norm,
    global_norm,
    mlp,
    train_step,
)
from tests.nn.training_data import FOLDER, close, config_of, optimizer_of, part, read, records

TRAJECTORY = {"f64": 1e-9, "f32": 1e-4}
# The gradient of the key bias is exactly 0; what is computed is rounding noise (README there) that
# Adam divides by itself. In float64 it moves the bias by 1e-11, in float32 by up to the rate.
NOISE = 1e-9


def check_weights(params: dict[str, Any], arrays: dict[str, Any], farthest: float) -> None:
    for key, value in part(arrays, "wT").items():
        got = params[key]
        if value.dtype == np.float32 and key.endswith("qkv.bias"):
            third = len(value) // 3
            keys = slice(third, 2 * third)
            assert np.abs(got[keys] - value[keys]).max() <= farthest
            got, value = (np.delete(x, keys) for x in (got, value))
        close(got, value, **TRAJECTORY, absolute=NOISE)


def checksum(params: dict[str, Any]) -> list[float]:
    total = [float(value.astype(np.float64).sum()) for value in params.values()]
    return [*total, global_norm(params)]


@pytest.mark.parametrize("name", records("traj/*_gpt_*.npz") + records("traj/*_llama_*.npz"))
def test_transformer(name: str) -> None:
    arrays, meta = read(name)
    model, rule, parts = build(config_of(meta)), optimizer_of(meta), meta["accum"]
    params = part(arrays, "w0")
    state = rule.init(params)
    single = params["wte.weight"].dtype == np.float32
    for step in range(meta["steps"]):
        rows = slice(step * parts, (step + 1) * parts)
        ids, targets = (np.concatenate(arrays[key][rows]) for key in ("ids", "tgt"))
        loss, grads = accumulate(model, params, ids, targets, parts)
        norm = clip_by_norm(grads, meta["clip"]) if meta["clip"] else global_norm(grads)
        close(loss, arrays["loss"][step], 1e-4 if single else 1e-9)
        close(norm, arrays["gnorm"][step], 1e-4 if single else 1e-9)
        for moment, key in ((0, "g0"), (meta["steps"] - 1, "gT")):
            if step == moment:
                for gradient, value in part(arrays, key).items():
                    noise = 1e-4 if single else NOISE
                    close(grads[gradient], value, **TRAJECTORY, absolute=noise)
        rule.update(params, grads, state, float(arrays["lr"][step]))
        if not single:
            close(checksum(params)[-1], arrays[f"wsum{step + 1}"][-1], 1e-9)
    check_weights(params, arrays, farthest=2 * rule.lr * meta["steps"])


@pytest.mark.parametrize("name", records("traj/mlp_*.npz"))
def test_mlp(name: str) -> None:
    arrays, meta = read(name)
    model, rule, parts = mlp(meta["sizes"]), optimizer_of(meta), meta["accum"]
    params = part(arrays, "w0")
    state = rule.init(params)
    tolerance = 1e-4 if params["l.0.weight"].dtype == np.float32 else 1e-9
    for step in range(meta["steps"]):
        grads: Grads = {}
        losses = []
        for micro in range(step * parts, (step + 1) * parts):
            y, saved = model.forward(params, arrays["X"][micro])
            loss, saved_loss = MeanSquaredError().forward(y, arrays["Y"][micro])
            d = MeanSquaredError().backward(saved_loss, 1 / parts)
            add_gradients(grads, model.backward(params, saved, d)[1])
            losses.append(loss)
        close(losses, arrays["micro_loss"][step * parts : (step + 1) * parts], tolerance)
        norm = clip_by_norm(grads, meta["clip"]) if meta["clip"] else global_norm(grads)
        close(norm, arrays["gnorm"][step], tolerance)
        rule.update(params, grads, state)
        close(checksum(params), arrays[f"wsum{step + 1}"], tolerance)
    check_weights(params, arrays, farthest=0)


@pytest.mark.parametrize("name", records("torch_gpt_P*.json"))
def test_single_process_of_the_distributed_runs(name: str) -> None:
    record = json.loads((FOLDER / name).read_text())
    c = record["cfg"]
    model = build(ModelConfig(c["L"], c["d"], c["H"], vocab=c["V"], seq=c["T"]))
    params = {
        key: np.array(record["w0"][key]).reshape(shape) for key, shape in model.shapes().items()
    }
    rule = AdamW(lr=1e-2, weight_decay=0.1)
    state = rule.init(params)
    run = next(run for run in record["runs"] if run["kind"] == "single")
    for step in range(record["steps"]):
        done = train_step(
            model, params, rule, state, np.array(record["ids"][step]),
            np.array(record["tgt"][step]), max_norm=record["clip"],
        )  # fmt: skip
        close(done.loss, run["loss"][step], 1e-10)
        close(done.norm, run["grad_norm"][step], 1e-10)
    close(global_norm(params), run["wnorm"], 1e-10)
    for key, value in run["wsum"].items():
        close(params[key].sum(), value, 1e-9, absolute=1e-9)
