"""Reading the reference values in tests/data/training (README there)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from distlearn.nn import SGD, Adagrad, Adam, AdamW, ModelConfig, Optimizer

FOLDER = Path(__file__).parents[1] / "data" / "training"

Arrays = dict[str, Any]


def records(pattern: str) -> list[str]:
    """Names of the records that match, relative to the folder."""
    names = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob(pattern))
    assert names, f"no reference data {pattern} in {FOLDER}"
    return names


def read(name: str) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and meta data of one record."""
    with np.load(FOLDER / name) as file:
        arrays = {key: file[key] for key in file.files}
    return arrays, json.loads(str(arrays.pop("meta")))


def close(got: Any, want: Any, f64: float = 1e-12, f32: float = 1e-5, absolute: float = 0) -> None:
    """Largest difference, relative to the largest value, within the tolerance of the type."""
    want = np.asarray(want)
    got = np.asarray(got)
    assert got.shape == want.shape
    scale = float(np.abs(want).max(initial=0)) or 1.0
    limit = (f32 if want.dtype == np.float32 else f64) * scale
    worst = float(np.abs(got.astype(np.float64) - want).max(initial=0))
    assert worst <= max(limit, absolute), f"differs by {worst:.3g}, allowed {limit:.3g}"


def config_of(meta: dict[str, Any]) -> ModelConfig:
    """The configuration of a recorded model."""
    c = meta["cfg"]
    sizes = {"layers": c["L"], "hidden": c["d"], "heads": c["H"], "vocab": c["V"]}
    if meta["kind"] == "llama":
        return ModelConfig.llama(**sizes, kv_heads=c["K"], ffn=c["f"])
    return ModelConfig(**sizes, seq=c["T"], tied=c.get("tied", True), bias=c.get("bias", True))


def our_name(name: str) -> str:
    """The record calls a norm's gain ``h.0.n1``; we call it ``h.0.n1.weight``."""
    return name if name.endswith((".weight", ".bias")) else f"{name}.weight"


def part(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays ``prefix:name``, by our name, as copies."""
    start = prefix + ":"
    return {
        our_name(key.removeprefix(start)): value.copy()
        for key, value in arrays.items()
        if key.startswith(start)
    }


def optimizer_of(meta: dict[str, Any]) -> Optimizer:
    """The optimiser of a recorded trajectory."""
    o = meta["opt_defaults"]
    if "momentum" in o:
        return SGD(lr=o["lr"], momentum=o["momentum"], dampening=o["dampening"],
                   nesterov=o["nesterov"], weight_decay=o["weight_decay"])  # fmt: skip
    if "lr_decay" in o:
        return Adagrad(lr=o["lr"], lr_decay=o["lr_decay"], eps=o["eps"],
                       weight_decay=o["weight_decay"],
                       initial_sum=o["initial_accumulator_value"])  # fmt: skip
    rule = AdamW if o["decoupled_weight_decay"] else Adam
    return rule(lr=o["lr"], betas=tuple(o["betas"]), eps=o["eps"],
                weight_decay=o["weight_decay"], amsgrad=o["amsgrad"])  # fmt: skip
