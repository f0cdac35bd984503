"""Threads change who computes, never what."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from distlearn.nn import AdamW, Context, ModelConfig, build, train_step
from distlearn.nn.arrays import PIECE, matmul
from distlearn.nn.threads import blas_threads, share, thread_count

WIDE = ModelConfig(layers=1, hidden=96, heads=4, vocab=700, seq=130, dropout=0.1,
                   attention_dropout=0.1)  # fmt: skip
LLAMA = ModelConfig.llama(layers=1, hidden=96, heads=4, kv_heads=2, ffn=160, vocab=700)


@pytest.fixture(autouse=True)
def _needs_threads() -> None:
    with blas_threads(2):
        if thread_count() != 2:
            pytest.skip("this numpy's BLAS does not say how many threads it uses")


def trained(config: ModelConfig, dtype: Any) -> dict[str, bytes]:
    model, rule = build(config), AdamW(lr=1e-2)
    params = model.init(seed=0, dtype=dtype)
    state = rule.init(params)
    ids = np.random.default_rng(1).integers(0, config.vocab, (9, 131))
    for step in range(2):
        context = Context(seed=4, step=step)
        train_step(model, params, rule, state, ids[:, :-1], ids[:, 1:], max_norm=0.5,
                   context=context)  # fmt: skip
    return {name: value.tobytes() for name, value in params.items()}


@pytest.mark.parametrize("config", [WIDE, LLAMA], ids=["gpt", "llama"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_gives_the_same_bits(config: ModelConfig, dtype: str) -> None:
    with blas_threads(1):
        alone = trained(config, dtype)
    for count in (2, 3):
        with blas_threads(count):
            assert trained(config, dtype) == alone


def test_products_give_the_same_bits() -> None:
    a = np.random.default_rng(0).normal(size=(901, 300)).astype(np.float32)
    assert a.size > PIECE
    b = a[::-1].copy()
    with blas_threads(1):
        alone = matmul(a, b.T), matmul(a.T, b), matmul(a, b[0])
    for count in (2, 3):
        with blas_threads(count):
            for x, y in zip((matmul(a, b.T), matmul(a.T, b), matmul(a, b[0])), alone, strict=True):
                np.testing.assert_array_equal(x, y)


def test_really_shared_and_in_order() -> None:
    both = threading.Barrier(2, timeout=30)  # breaks if one thread does it all

    def work(item: int) -> tuple[int, int, int]:
        both.wait()
        return item, threading.get_ident(), thread_count()

    with blas_threads(2):
        done = share(work, [5, 6])
        assert thread_count() == 2
    assert [item for item, *_ in done] == [5, 6]
    assert len({thread for _, thread, _ in done}) == 2
    assert {count for *_, count in done} == {1}  # no threads of threads


def test_settings_and_errors_of_a_thread_are_those_of_the_caller() -> None:
    big = np.array([1e300])
    with blas_threads(3):
        with np.errstate(over="ignore"):
            share(lambda _: big * big, range(6))
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            share(lambda item: big * (big if item == 5 else 1), range(6))
        assert thread_count() == 3


def test_counts() -> None:
    assert share(abs, []) == []
    with pytest.raises(ValueError, match="at least 1; got 0"), blas_threads(0):
        pass
