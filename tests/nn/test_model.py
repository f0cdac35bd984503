"""Models: recomputation, microbatches, stages, first values, and errors that name the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.nn import (
    AdamW,
    Attention,
    Context,
    CrossEntropy,
    Grads,
    Linear,
    ModelConfig,
    PositionEmbedding,
    Rope,
    Sequential,
    SwiGLU,
    TokenEmbedding,
    accumulate,
    add_gradients,
    build,
    mlp,
    train_step,
)
from distlearn.nn.block import block
from distlearn.nn.erf import erf
from tests.nn.training_data import close

GPT = ModelConfig(3, 16, 4, vocab=19, seq=8, dropout=0.1, attention_dropout=0.1)
LLAMA = ModelConfig.llama(layers=2, hidden=16, heads=4, kv_heads=2, ffn=24, vocab=19, seq=8)
EXPERTS = replace(GPT, experts=4, aux_coefficient=0.1, z_coefficient=0.01, capacity_factor=1.0)
CONFIGS = {"gpt": GPT, "llama": LLAMA, "experts": EXPERTS}
CONTEXT = Context(seed=4, step=2)


def setting(name: str, dtype: Any = np.float64) -> tuple[ModelConfig, dict[str, Any], Any, Any]:
    config = CONFIGS[name]
    ids = np.random.default_rng(0).integers(0, config.vocab, (4, config.seq + 1))
    return config, build(config).init(seed=1, dtype=dtype), ids[:, :-1], ids[:, 1:]


def same(a: Grads, b: Grads) -> bool:
    return list(a) == list(b) and all((a[name] == b[name]).all() for name in a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONFIGS)
def test_recomputation_gives_the_same_bits(name: str, dtype: Any) -> None:
    config, params, ids, targets = setting(name, dtype)
    loss, grads = build(config).loss_and_gradients(params, ids, targets, CONTEXT)
    for policy in ("selective", "full"):
        again, more = build(config, policy).loss_and_gradients(params, ids, targets, CONTEXT)
        assert again == loss
        assert same(more, grads)


def test_recomputing_early_changes_nothing() -> None:
    """R as an action of its own, before I."""
    config, params, ids, _ = setting("gpt")
    module = build(config, "full")
    y, saved = module.forward(params, ids, CONTEXT)
    late = module.backward(params, saved, y)[1]
    _, saved = module.forward(params, ids, CONTEXT)
    kept = saved.nbytes
    module.recompute(params, saved)
    assert saved.nbytes > kept
    assert same(module.backward(params, saved, y)[1], late)


@pytest.mark.parametrize("name", CONFIGS)
def test_stages_do_what_the_model_does(name: str) -> None:
    """Pipeline stages by hand: F down the stages; I, then W, back up. Bit for bit."""
    config, params, ids, targets = setting(name)
    model = build(config)
    loss, grads = model.loss_and_gradients(params, ids, targets, CONTEXT)
    for cut in (1, 2, [0, config.layers], [config.layers, 0]):
        stages = model.split(cut)
        x, saved = ids, []
        for stage in stages:
            held = {key: params[key] for key in stage.shapes()}  # a stage needs only its own
            x, kept = stage.forward(held, x, CONTEXT)
            saved.append(kept)
        value, saved_loss = model.loss.forward(x, targets)
        assert value + sum(s.total_extra_loss() for s in saved) == pytest.approx(loss, rel=1e-14)
        dy, total = model.loss.backward(saved_loss), Grads()
        for stage, kept in zip(reversed(stages), reversed(saved), strict=True):
            dy = stage.backward_input(params, kept, dy)
            add_gradients(total, stage.backward_weight(kept))
        assert same({key: total[key] for key in grads}, grads)


def test_even_split_gives_earlier_stages_what_is_over() -> None:
    stages = build(replace(GPT, layers=8)).split(3)
    assert [len(stage.modules) for stage in stages] == [1 + 3, 3, 2 + 1]


def test_tied_weights_get_both_gradients() -> None:
    _, params, ids, targets = setting("gpt")
    tied, loose = build(GPT), build(replace(GPT, tied=False))
    apart = {**params, "head.weight": params["wte.weight"]}
    _, grads = tied.loss_and_gradients(params, ids, targets, CONTEXT)
    _, parts = loose.loss_and_gradients(apart, ids, targets, CONTEXT)
    close(grads["wte.weight"], parts["wte.weight"] + parts["head.weight"], 1e-14)


@settings(max_examples=10)
@given(parts=st.sampled_from([1, 2, 4]), seed=st.integers(0, 99))
def test_microbatches_weighted_by_targets_are_one_batch(parts: int, seed: int) -> None:
    config, params, ids, targets = setting("llama")
    targets = np.where(np.random.default_rng(seed).random(targets.shape) < 0.6, -100, targets)
    targets[0, 0], targets[3] = 1, -100
    model = build(config)
    loss, grads = accumulate(model, params, ids, targets)
    again, more = accumulate(model, params, ids, targets, parts, weighting="targets")
    assert again == pytest.approx(loss, rel=1e-13)
    for name in grads:
        close(more[name], grads[name], 1e-12, absolute=1e-15)
    sums = build(config, loss=CrossEntropy(reduction="sum"))
    total, whole = accumulate(sums, params, ids, targets, parts)
    assert total == pytest.approx(loss * (targets != -100).sum(), rel=1e-13)
    close(whole["nf.weight"], grads["nf.weight"] * (targets != -100).sum(), 1e-12)


def test_loss_scale_multiplies_every_gradient() -> None:
    config, params, ids, targets = setting("experts")
    model = build(config)
    _, grads = model.loss_and_gradients(params, ids, targets, CONTEXT)
    _, scaled = model.loss_and_gradients(params, ids, targets, replace(CONTEXT, loss_scale=8.0))
    for name in grads:
        close(scaled[name], 8 * grads[name], 1e-13, absolute=1e-16)


def test_positions_of_a_part_of_the_sequence() -> None:
    """The second half of a sequence, told where it stands, gets the places it has in the whole."""
    rng = np.random.default_rng(0)
    half = Context(positions=(4, 5, 6, 7))
    for module, width in ((Rope(2, 1, 4), 16), (PositionEmbedding("p", 8, 3), 3)):
        params = module.init(seed=0, dtype=np.float64)
        x = rng.normal(size=(2, 8, width))
        whole, _ = module.forward(params, x)
        part, saved = module.forward(params, x[:, 4:], half)
        assert (part == whole[:, 4:]).all()
        dx, grads = module.backward(params, saved, part)
        assert dx.shape == part.shape
        assert all((g[:4] == 0).all() for g in grads.values())


def test_attention_sees_nothing_of_the_future() -> None:
    module = Attention("a", 2, 1, 4)
    x = np.random.default_rng(0).normal(size=(1, 150, 16))  # longer than two blocks of rows
    y, _ = module.forward({}, x)
    x[:, 100:] = 9.0
    moved, _ = module.forward({}, x)
    assert (moved[:, :100] == y[:, :100]).all()
    assert (moved[:, 100:] != y[:, 100:]).any()


def test_first_values_depend_on_seed_and_name_only() -> None:
    model = build(GPT)
    params = model.init(seed=5)
    assert params["h.1.fc.weight"].dtype == np.float32
    alone = block(GPT, 1).init(seed=5)
    assert all((alone[name] == params[name]).all() for name in alone)
    assert (model.init(seed=6)["wte.weight"] != params["wte.weight"]).any()
    assert params["h.0.fc.weight"].std() == pytest.approx(0.02, rel=0.1)
    assert params["h.0.out.weight"].std() == pytest.approx(0.02 / np.sqrt(6), rel=0.1)
    assert (params["h.0.ln1.weight"] == 1).all()
    assert (params["h.0.fc.bias"] == 0).all()
    untrained = model.loss_and_gradients(params, np.zeros((1, 8), int), np.zeros((1, 8), int))[0]
    assert untrained == pytest.approx(np.log(19), rel=0.1)


def test_it_learns() -> None:
    config = ModelConfig.llama(layers=2, hidden=32, heads=4, kv_heads=2, vocab=16, seq=16)
    model, rule = build(config), AdamW(lr=0.01)
    params = model.init(seed=0)
    state = rule.init(params)
    text = np.tile(np.arange(16), 3)
    rng = np.random.default_rng(0)
    for _ in range(30):
        starts = rng.integers(0, 16, 8)
        rows = np.stack([text[s : s + 17] for s in starts])
        step = train_step(model, params, rule, state, rows[:, :-1], rows[:, 1:], max_norm=1.0)
    assert step.loss < 0.1


def test_erf_against_the_standard_library() -> None:
    import math

    x = np.concatenate([np.linspace(-7, 7, 20_001), [0.0, -0.0, 1e-300, 1.0, -1.0, 6.0, 50.0]])
    assert np.abs(erf(x) - [math.erf(v) for v in x]).max() < 4e-16
    assert erf(np.array([1e-9]))[0] == pytest.approx(math.erf(1e-9), rel=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 10, "heads": 4}, "hidden must be a multiple of heads.*hidden=10, heads=4"),
        ({"kv_heads": 3}, "heads must be a multiple of kv_heads; got heads=4, kv_heads=3"),
        ({"layers": 0}, "layers must be a whole number >= 1; got layers=0"),
        ({"vocab": 2.5}, "vocab must be a whole number >= 1; got vocab=2.5"),
        ({"norm": "batch"}, "norm must be one of layernorm, rmsnorm; got 'batch'"),
        ({"activation": "gelu"}, "activation must be one of gelu_tanh, .*; got 'gelu'"),
        ({"experts": 2, "top_k": 3}, "top_k must lie between 1 and experts=2; got top_k=3"),
        ({"experts": -1}, "experts must be a whole number >= 1; got experts=-1"),
        ({"experts": 4, "top_k": 1.5}, "top_k must be a whole number >= 1; got top_k=1.5"),
        ({"capacity_factor": -1}, "capacity_factor must be a finite number > 0; got .*=-1"),
        ({"norm_eps": float("nan")}, "norm_eps must be a finite number >= 0; got norm_eps=nan"),
        ({"rope_theta": 0}, "rope_theta must be a finite number > 0; got rope_theta=0"),
    ],
)
def test_config_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**{"layers": 2, "hidden": 16, "heads": 4, **options})


def test_layer_errors() -> None:
    x = np.zeros((2, 3))
    cases: list[tuple[Any, str]] = [
        (lambda: Linear("fc", 4, 2).forward({}, x), r"'fc' needs .* \(\.\.\., 4\); got \(2, 3\)"),
        (lambda: SwiGLU().forward({}, x), r"even last axis; got shape \(2, 3\)"),
        (lambda: Attention("a", 4, 3, 8), "multiple of kv_heads; got heads=4, kv_heads=3"),
        (lambda: Rope(2, 2, 3), "even head_dim; got head_dim=3"),
        (lambda: Rope(2, 2, 4, style="up"), "one of half, interleaved; got 'up'"),
        (
            lambda: TokenEmbedding("t", 5, 2).forward({}, np.array([[7]])),
            "0 <= id < vocab=5; got ids from 7 to 7",
        ),
        (lambda: TokenEmbedding("t", 5, 2).forward({}, x), "integer type; got float64"),
        (lambda: CrossEntropy().forward(x, np.zeros(2)), "of an integer type; got float64"),
        (
            lambda: build(GPT).logits(build(GPT).init(0), np.zeros((1, 9), int)),
            "9 positions below seq=8",
        ),
        (lambda: CrossEntropy(reduction="max"), "one of mean, sum; got 'max'"),
        (
            lambda: CrossEntropy().forward(np.zeros((1, 4)), np.array([4])),
            "classes 0 to 3 or ignore_index=-100; got 4 to 4",
        ),
        (
            lambda: CrossEntropy().forward(np.zeros((1, 4)), np.array([-100])),
            "every target is ignore_index=-100",
        ),
        (
            lambda: CrossEntropy().forward(np.zeros((1, 4)), np.array([1, 2])),
            r"need targets \(1,\); got \(2,\)",
        ),
        (lambda: build(GPT, "some"), "one of none, selective, full; got 'some'"),
        (lambda: build(GPT).split(4), "between 1 and 3 blocks; got 4"),
        (lambda: build(GPT).split([1, 1]), r"share out 3 blocks; got \[1, 1\]"),
        (lambda: mlp([3]), r"an input and an output width; got \[3\]"),
        (
            lambda: accumulate(build(GPT), {}, np.zeros((4, 2), int), np.zeros((4, 2), int), 3),
            "batch of 4 does not divide into 3",
        ),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_causal_query_needs_a_key() -> None:
    from distlearn.nn import attention_forward

    q, k = np.zeros((1, 1, 3, 2)), np.zeros((1, 1, 2, 2))
    with pytest.raises(ValueError, match="got 3 queries, 2 keys"):
        attention_forward(q, k, k, np.empty_like(q))


def test_modules_print_what_they_are() -> None:
    assert repr(Sequential(Linear("fc", 3, 2))) == (
        "Sequential(modules=(Linear(name='fc', inputs=3, outputs=2, bias=True, deviation=0.02),))"
    )
