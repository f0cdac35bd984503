"""Routing and mixtures of experts against PyTorch's and DeepSpeed's values, and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.nn import Context, MixtureOfExperts, Router
from distlearn.nn.topk_ties import torch_topk
from tests.nn.training_data import close, read, records


@pytest.mark.parametrize("name", records("moe/topk_*.npz"))
def test_dropless_top_k_with_extra_losses(name: str) -> None:
    arrays, meta = read(name)
    experts, ffn, hidden = arrays["w1"].shape
    router = Router(
        "moe.router", hidden, experts, meta["k"],
        normalise="chosen" if meta["renorm"] else "none",
        aux_coefficient=0.01, z_coefficient=0.001,
    )  # fmt: skip
    moe = MixtureOfExperts("moe", hidden, ffn, router)
    params = {"moe.router.weight": arrays["wr"], "moe.w1": arrays["w1"], "moe.w2": arrays["w2"]}
    routing, _ = router.choose(params, arrays["x"])
    close(routing.probabilities, arrays["probs"])
    assert (routing.expert == arrays["topk_idx"]).all()
    assert (routing.counts == arrays["counts"]).all()
    close(routing.weight, arrays["topk_weight"])
    close(routing.aux_loss, arrays["aux"])
    close(routing.z_loss, arrays["zloss"])
    y, saved = moe.forward(params, arrays["x"])
    close(y, arrays["y"])
    close(saved.total_extra_loss(), 0.01 * arrays["aux"] + 0.001 * arrays["zloss"])
    dx, grads = moe.backward(params, saved, arrays["dout"])
    close(dx, arrays["d_x"])
    for ours, theirs in (("moe.router.weight", "d_wr"), ("moe.w1", "d_w1"), ("moe.w2", "d_w2")):
        close(grads[ours], arrays[theirs])


@pytest.mark.parametrize("name", records("moe/ds_gating_*.npz"))
def test_deepspeed_gating(name: str) -> None:
    arrays, meta = read(name)
    router = Router.deepspeed(
        "r", 1, arrays["logits"].shape[1], meta["k"], meta["capacity_factor"], meta["min_capacity"]
    )
    routing = router.route(arrays["logits"])
    assert (routing.counts == arrays["exp_counts"]).all()
    close(routing.aux_loss, arrays["l_aux"], f64=1e-6)
    close(routing.combine(), arrays["combine"], f32=1e-6)
    assert (routing.dispatch() == arrays["dispatch"]).all()


KEEPS = ("first", "first_choice", "largest", "random", "torch_ties")


@given(
    seed=st.integers(0, 999),
    tokens=st.integers(1, 40),
    experts=st.integers(1, 8),
    k=st.integers(1, 3),
    keep=st.sampled_from(KEEPS),
    normalise=st.sampled_from(["none", "chosen", "kept"]),
)
def test_every_routing(
    seed: int, tokens: int, experts: int, k: int, keep: str, normalise: str
) -> None:
    k = min(k, experts)
    logits = np.random.default_rng(seed).normal(size=(tokens, experts))
    router = Router("r", 1, experts, k, normalise, 1.0, min_capacity=1, keep=keep)
    routing = router.route(logits, Context(seed=seed))
    assert routing.counts.sum() == tokens * k
    for expert in range(experts):
        here = (routing.expert == expert) & routing.kept
        taken = min(routing.counts[expert], routing.capacity)
        assert here.sum() == taken  # full, or nobody turned away
        assert sorted(routing.slot[here]) == list(range(taken))
    assert (routing.slot[~routing.kept] == -1).all()
    assert (routing.weight[~routing.kept] == 0).all()
    at_expert = np.take_along_axis(routing.probabilities, routing.expert, 1)
    assert (np.diff(at_expert, axis=1) <= 0).all()
    sums = routing.weight.sum(1)
    if normalise == "none":
        close(routing.weight, at_expert * routing.kept)
    elif normalise == "kept":
        close(sums, routing.kept.any(1).astype(float))
    close(routing.combine().sum((1, 2)), sums)


def test_who_stays_when_an_expert_is_full() -> None:
    """Three tokens, two experts, room for two tokens each."""
    logits = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    kept = {
        keep: Router("r", 1, 2, 1, "none", 4 / 3, 1, keep).route(logits).kept[:, 0].tolist()
        for keep in ("first", "largest")
    }
    assert kept == {"first": [True, True, False], "largest": [False, True, True]}
    mixed = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])  # expert 0: second, first, first choice
    first = Router("r", 1, 2, 2, "none", 2 / 3, 1, "first").route(mixed)
    choice = Router("r", 1, 2, 2, "none", 2 / 3, 1, "first_choice").route(mixed)
    assert first.capacity == choice.capacity == 2
    assert first.kept.tolist() == [[True, True], [True, True], [False, False]]
    assert choice.kept.tolist() == [[True, False], [True, True], [True, False]]


def test_a_dropped_token_gets_nothing() -> None:
    router = Router("m.router", 4, 2, 1, capacity_factor=0.5, min_capacity=1)
    moe = MixtureOfExperts("m", 4, 8, router)
    params = moe.init(seed=0, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(1, 4))
    y, _ = moe.forward(params, np.repeat(x, 6, axis=0))  # six equal tokens, capacity 2
    assert np.abs(y[:2]).min() > 0
    assert (y[2:] == 0).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=300), st.data())
def test_torch_topk_takes_the_largest(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(values)))
    chosen = torch_topk(np.array(values), k)
    assert len(set(chosen.tolist())) == k
    assert sorted(np.array(values)[chosen]) == sorted(values)[len(values) - k :]


def test_errors_name_the_rule() -> None:
    with pytest.raises(ValueError, match="1 <= k <= experts; got k=3, experts=2"):
        Router("r", 4, 2, 3)
    with pytest.raises(ValueError, match=r"keep must be one of first, .*; got 'best'"):
        Router("r", 4, 2, 1, keep="best")
