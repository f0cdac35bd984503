"""Update rules against PyTorch's, step by step, and the laws they obey."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.nn import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    Optimizer,
    clip_by_norm,
    combine_norms,
    global_norm,
)
from tests.nn.training_data import FOLDER, close

RECORD = json.loads((FOLDER / "torch_optimizers.json").read_text())
RULES: dict[str, type[Optimizer]] = {
    "SGD": SGD, "Adam": Adam, "AdamW": AdamW, "Adagrad": Adagrad,
}  # fmt: skip


@pytest.mark.parametrize("run", RECORD["runs"], ids=lambda r: f"{r['optimizer']} {r['options']}")
def test_torch(run: dict[str, Any]) -> None:
    options = dict(run["options"])
    if "initial_accumulator_value" in options:
        options["initial_sum"] = options.pop("initial_accumulator_value")
    rule = RULES[run["optimizer"]](**options)
    params = {"w": np.array(RECORD["first"])}
    state = rule.init(params)
    for gradient, weights in zip(RECORD["gradients"], run["weights"], strict=True):
        rule.update(params, {"w": np.array(gradient)}, state)
        close(params["w"], weights, 1e-14)


EVERY_RULE = [
    SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    Adam(lr=0.1, amsgrad=True),
    AdamW(lr=0.1, weight_decay=0.1),
    Adagrad(lr=0.1, lr_decay=0.1),
]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda r: type(r).__name__)
@given(seed=st.integers(0, 99), size=st.integers(1, 50), data=st.data())
def test_a_shard_is_updated_as_the_whole_is(
    rule: Optimizer, seed: int, size: int, data: st.DataObject
) -> None:
    """What ZeRO's partitioning of optimiser states rests on, bit for bit."""
    cut = data.draw(st.integers(0, size))
    rng = np.random.default_rng(seed)
    whole = {"w": rng.normal(size=size)}
    parts = {"a": whole["w"][:cut].copy(), "b": whole["w"][cut:].copy()}
    state, states = rule.init(whole), rule.init(parts)
    for _ in range(3):
        g = rng.normal(size=size)
        rule.update(whole, {"w": g}, state)
        rule.update(parts, {"a": g[:cut], "b": g[cut:]}, states)
    assert (np.concatenate([parts["a"], parts["b"]]) == whole["w"]).all()


def test_parameters_spared_from_decay() -> None:
    params = {"w": np.ones(3), "b": np.ones(3)}
    rule = AdamW(lr=0.1, weight_decay=0.5, no_decay=frozenset({"b"}))
    rule.update(params, {"w": np.zeros(3), "b": np.zeros(3)}, rule.init(params))
    assert params["w"].tolist() == [0.95] * 3
    assert params["b"].tolist() == [1.0] * 3


@given(
    seed=st.integers(0, 99),
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    order=st.sampled_from([1.0, 2.0, 3.0, np.inf]),
    limit=st.floats(0.01, 100),
)
def test_norms_and_clipping(seed: int, sizes: list[int], order: float, limit: float) -> None:
    rng = np.random.default_rng(seed)
    grads = {str(i): rng.normal(size=n) for i, n in enumerate(sizes)}
    joined = np.concatenate(list(grads.values()))
    norm = np.linalg.norm(joined, order) if joined.size else 0.0
    assert global_norm(grads, order) == pytest.approx(norm, rel=1e-12)
    each = [global_norm({"g": g}, order) for g in grads.values()]
    assert combine_norms(each, order) == pytest.approx(norm, rel=1e-12)
    assert clip_by_norm(grads, limit, order) == pytest.approx(norm, rel=1e-12)
    assert global_norm(grads, order) <= limit * (1 + 1e-12)
    close(np.concatenate(list(grads.values())), joined * min(1.0, limit / (norm + 1e-6)), 1e-12)


def test_large_float32_gradients_do_not_overflow_their_norm() -> None:
    assert global_norm({"g": np.full(4, 1e30, np.float32)}) == pytest.approx(2e30)


def test_errors_name_the_rule() -> None:
    with pytest.raises(ValueError, match=r"nesterov needs momentum > 0 .* momentum=0\.0"):
        SGD(lr=0.1, nesterov=True)
    with pytest.raises(ValueError, match="lr must be a number >= 0; got -1"):
        Adam(lr=-1)
    with pytest.raises(ValueError, match=r"betas must lie in \[0, 1\)"):
        Adam(betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="max_norm must be > 0; got 0"):
        clip_by_norm({}, 0.0)
    params, rule = {"w": np.ones(3)}, SGD(lr=0.1)
    state = rule.init(params)
    with pytest.raises(ValueError, match="'w' has no gradient"):
        rule.update(params, {}, state)
    with pytest.raises(ValueError, match=r"gradient of 'w' must have shape \(3,\); got \(2,\)"):
        rule.update(params, {"w": np.ones(2)}, state)
    with pytest.raises(ValueError, match="'v' is not in the optimiser's state"):
        rule.update({"v": np.ones(1)}, {"v": np.ones(1)}, state)
