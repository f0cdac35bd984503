"""What is kept between forward and backward, to the byte: the papers' formulas, and the heap."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from distlearn.nn import Context, Linear, ModelConfig, Saved, bfloat16, build
from distlearn.nn.block import block

S, B, H, A = 24, 3, 32, 4  # the papers' letters: sequence, batch, hidden, heads
CONFIG = ModelConfig(2, H, A, vocab=17, seq=S, dropout=0.1, attention_dropout=0.1)
SBH = S * B * H
STATISTICS = 2 * 2 * 4 * S * B  # float32 mean and scale of two norms; the papers leave them out
CONTEXT = Context(seed=1)


def run_block(recompute: str = "none", config: ModelConfig = CONFIG) -> tuple[Saved, int, int]:
    """Bytes kept after F, and after I, by one GPT block in bfloat16."""
    module = block(config, 0, recompute)
    params = module.init(seed=0, dtype=bfloat16)
    x = np.random.default_rng(0).normal(size=(B, S, H)).astype(bfloat16)
    y, saved = module.forward(params, x, CONTEXT)
    after_forward = saved.nbytes
    module.backward_input(params, saved, y)
    return saved, after_forward, saved.nbytes


def test_activations_of_a_block_are_those_of_korthikanti() -> None:
    """Korthikanti et al. 2022, equation 1: sbh (34 + 5 a s / h) bytes."""
    _, kept, _ = run_block()
    assert kept == 34 * SBH + 5 * A * S * S * B + STATISTICS


def test_selective_recomputation_keeps_34_sbh_and_full_keeps_2_sbh() -> None:
    """Korthikanti et al. 2022, table 2."""
    assert run_block("selective")[1] == 34 * SBH + STATISTICS
    assert run_block("full")[1] == 2 * SBH


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_between_input_and_weight_gradient_32_sbh_are_kept(recompute: str) -> None:
    """Qi et al. 2024 (Zero Bubble), table 1: M_W = 32 sbh; ours adds four gradients of norms."""
    _, _, kept = run_block(recompute)
    assert kept == 32 * SBH + 4 * H * 2


def test_llama_block() -> None:
    """By hand, values per token: see the comments."""
    kv, f = 2, 40
    config = ModelConfig.llama(layers=1, hidden=H, heads=A, kv_heads=kv, ffn=f, vocab=9, seq=S)
    _, kept, _ = run_block(config=config)
    qkv = H + 2 * kv * H // A
    per_token = H + H + qkv + A * S + H  # norm, q k v, attention, probabilities, o
    per_token += H + H + 2 * f + f  # norm, gate and up, [gate | up], down
    assert kept == 2 * per_token * S * B + 2 * 4 * S * B  # and a float32 a norm and token


@pytest.mark.parametrize("name", ["gpt", "llama", "experts"])
def test_the_heap_shrinks_by_what_is_said_to_be_freed(name: str) -> None:
    """tracemalloc sees every numpy buffer: F, I and W change it by the bytes we count."""
    config = {
        "gpt": CONFIG,
        "llama": ModelConfig.llama(layers=1, hidden=H, heads=A, kv_heads=2, vocab=9, seq=S),
        "experts": replace(CONFIG, experts=4, dropout=0.0),
    }[name]
    module = block(config, 0)
    params = module.init(seed=0, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(B, S, H))
    dy = np.random.default_rng(1).normal(size=(B, S, H))

    def heap() -> int:
        return tracemalloc.get_traced_memory()[0]

    warm = module.forward(params, x, CONTEXT)  # imports and caches are none of our business
    module.backward(params, warm[1], dy)
    del warm
    tracemalloc.start()
    try:
        start = heap()
        y, saved = module.forward(params, x, CONTEXT)
        after_f, kept_f = heap(), saved.nbytes
        dx = module.backward_input(params, saved, dy)
        after_i, kept_i = heap(), saved.nbytes
        dy_kept = dy.nbytes if any(a is dy for a in saved.arrays()) else 0
        grads = module.backward_weight(saved)
        after_w = heap()
    finally:
        tracemalloc.stop()
    slack = 16_384  # Python objects
    made_i, made_w = dx.nbytes, sum(g.nbytes for g in grads.values())
    assert abs((after_f - start) - (kept_f - x.nbytes + y.nbytes)) < slack
    assert abs((after_i - after_f) - (kept_i - dy_kept - (kept_f - x.nbytes) + made_i)) < slack
    assert abs((after_w - after_i) - (made_w - (kept_i - dy_kept))) < slack
    assert saved.nbytes == 0


def test_a_buffer_kept_twice_counts_once() -> None:
    x = np.zeros((4, 8))
    a, b = Linear("a", 8, 2), Linear("b", 8, 2)
    parts = [module.forward(module.init(0, np.float64), x)[1] for module in (a, b)]
    assert Saved(parts=parts).nbytes == x.nbytes


def test_a_saved_state_serves_one_backward_pass() -> None:
    model = build(CONFIG)
    params = model.init(seed=0)
    ids = np.zeros((1, S), int)
    y, saved = model.forward(params, ids)
    model.backward(params, saved, y)
    with pytest.raises(RuntimeError, match="not in the saved state: backward_input ran already"):
        model.backward_input(params, saved, y)
    _, saved = model.forward(params, ids)
    with pytest.raises(RuntimeError, match="backward_weight: backward_input"):
        model.backward_weight(saved)
