"""16-bit rounding, loss scaling and master weights against PyTorch's and DeepSpeed's records."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from distlearn.nn import (
    SGD,
    AdamW,
    Context,
    LossScale,
    MeanSquaredError,
    MixedPrecision,
    ModelConfig,
    accumulate,
    bfloat16,
    build,
    cast,
    clip_by_norm,
    float16,
    mlp,
    narrow,
    overflowed,
)
from tests.nn.training_data import FOLDER, close, part, read, records


@pytest.mark.parametrize("name", records("precision/rounding_*.npz"))
def test_rounding_bits(name: str) -> None:
    arrays, _ = read(name)
    for dtype, key in ((bfloat16, "bf16"), (float16, "fp16")):
        low = narrow(arrays["x"], dtype)
        number = ~np.isnan(arrays["x"])  # a NaN has many bit patterns
        assert (low.view(np.uint16)[number] == arrays[f"{key}_bits"][number]).all()
        back = low.astype(np.float32)
        assert np.array_equal(back, arrays[f"{key}_back"], equal_nan=True)


@pytest.mark.parametrize("name", records("precision/gradscaler_*.npz"))
def test_torch_gradscaler(name: str) -> None:
    arrays, meta = read(name)
    scale = LossScale.torch(meta["init"], meta["growth"], meta["backoff"], meta["growth_interval"])
    for overflow, wanted in zip(arrays["overflow"], arrays["scale"], strict=True):
        scale = scale.after_step(bool(overflow))
        assert scale.scale == wanted
    assert (arrays["stepped"] == ~arrays["overflow"]).all()


def test_deepspeed_loss_scaler() -> None:
    for trace in json.loads((FOLDER / "ds_loss_scaler.json").read_text()):
        c = trace["cfg"]
        scale = LossScale.deepspeed(
            c["init_scale"], c["scale_factor"], c["scale_window"], c["min_scale"],
            c["delayed_shift"], c["consecutive_hysteresis"], c["raise_error_at_min_scale"],
        )  # fmt: skip
        history = []
        for overflow in trace["overflow"]:
            scale = scale.after_step(overflow)
            history.append([scale.scale, scale.left])
        assert history == trace["scale_and_hysteresis"]


def test_overflow_at_the_smallest_scale_is_an_error_if_wanted() -> None:
    scale = LossScale.deepspeed(initial=2.0, window=1, minimum=1.0).after_step(True)
    assert scale.scale == 1.0
    with pytest.raises(FloatingPointError, match=r"smallest loss scale allowed, 1\.0"):
        scale.after_step(True)


@pytest.mark.parametrize("name", records("precision/clip_*.npz"))
def test_clipping(name: str) -> None:
    arrays, _ = read(name)
    cases = [key.split("_")[1:] for key in arrays if key.startswith("norm_")]
    for order, limit in cases:
        grads = {f"g{i}": arrays[f"in{i}"].copy() for i in range(3)}
        norm = clip_by_norm(grads, float(limit), float(order))
        close(norm, arrays[f"norm_{order}_{limit}"], 1e-14)
        for key, value in grads.items():
            close(value, arrays[f"{key}_{order}_{limit}"], 1e-14)


@pytest.mark.parametrize("name", records("precision/bf16_master_*.npz"))
def test_bf16_with_master_weights(name: str) -> None:
    """The order of rounding inside bf16 operations is not specified: compared at bf16's 2^-8."""
    arrays, meta = read(name)
    start = part(arrays, "w0")
    sizes = [start["l.0.weight"].shape[1]] + [len(start[f"l.{i}.bias"]) for i in range(2)]
    model = mlp(sizes)
    rule = AdamW(lr=meta["lr"], weight_decay=meta["wd"])
    mixed = MixedPrecision.start(start, rule, bfloat16)
    for x, target, wanted in zip(arrays["X"], arrays["Y"], arrays["loss"], strict=True):
        y, saved = model.forward(mixed.params, x.astype(bfloat16))
        loss, saved_loss = MeanSquaredError().forward(y.astype(np.float32), target)
        assert abs(loss - wanted) <= 0.02 * wanted
        d = MeanSquaredError().backward(saved_loss, dtype=bfloat16)
        _, grads = model.backward(mixed.params, saved, d)
        assert all(g.dtype == bfloat16 for g in grads.values())
        mixed.step(grads)
    for key, value in part(arrays, "wT").items():
        assert np.abs(mixed.master[key] - value).max() < 0.02


def tiny() -> tuple[Any, dict[str, Any], Any, Any]:
    model = build(ModelConfig(2, 16, 2, vocab=13, seq=8))
    ids = np.random.default_rng(1).integers(0, 13, (4, 9))
    return model, model.init(seed=3), ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_gradients_in_16_bits_are_those_in_32(dtype: Any) -> None:
    model, params, ids, targets = tiny()
    loss, grads = model.loss_and_gradients(params, ids, targets)
    context = Context(loss_scale=256.0)
    low, rough = accumulate(model, cast(params, dtype), ids, targets, context=context)
    assert abs(low - loss) < 0.01 * loss
    for name, gradient in grads.items():
        if name.endswith("qkv.bias"):
            continue  # a third of it is 0, and rounding noise here
        error = np.linalg.norm(rough[name].astype(np.float32) / 256 - gradient)
        assert error < 0.1 * np.linalg.norm(gradient), name


def test_a_step_that_overflows_is_skipped_and_the_scale_falls() -> None:
    model, params, ids, targets = tiny()
    scale = LossScale.torch(initial=2.0**40)
    mixed = MixedPrecision.start(params, SGD(lr=0.1), float16, scale)
    losses = []
    for _ in range(40):
        context = Context(loss_scale=mixed.scale)
        loss, grads = accumulate(model, mixed.params, ids, targets, context=context)
        before = {name: value.copy() for name, value in mixed.master.items()}
        report = mixed.step(grads, max_norm=1.0)
        assert report.skipped == overflowed(grads)
        same = all((before[name] == value).all() for name, value in mixed.master.items())
        assert same == report.skipped
        losses.append(loss)
    assert mixed.scale < 2.0**40
    assert losses[-1] < 0.9 * losses[0]


def test_overflow_without_a_scale_is_an_error() -> None:
    mixed = MixedPrecision.start({"w": np.ones(2, np.float32)}, SGD(lr=1.0), bfloat16)
    with pytest.raises(FloatingPointError, match="no loss scale"):
        mixed.step({"w": np.array([np.inf, 0.0])})


def test_bytes_per_parameter_are_those_of_the_zero_paper() -> None:
    _, params, _, _ = tiny()
    mixed = MixedPrecision.start(params, AdamW(), float16)
    count = sum(value.size for value in params.values())
    low = sum(value.nbytes for value in mixed.params.values())
    master = sum(value.nbytes for value in mixed.master.values())
    assert low == 2 * count
    assert master + mixed.state.nbytes == 12 * count


def test_16_bit_weights_are_not_updated_in_place() -> None:
    rule, params = SGD(lr=1.0), {"w": np.ones(2, float16)}
    with pytest.raises(ValueError, match=r"'w' is float16: .* master copy"):
        rule.update(params, {"w": np.ones(2)}, rule.init(params))
