"""Dropout: the same mask whoever computes it, at the right rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.nn import Attention, Context, Dropout, ModelConfig, accumulate, build
from distlearn.nn.dropout import random_words
from tests.nn.training_data import close


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 6)),
    data=st.data(),
    seed=st.integers(0, 2**70),
    step=st.integers(0, 10),
)
def test_a_part_draws_the_mask_of_the_whole(
    shape: tuple[int, int, int], data: st.DataObject, seed: int, step: int
) -> None:
    """Whichever samples, and whichever part of the other axes, a rank holds."""
    whole = Dropout("d", 0.5).mask(shape, Context(seed=seed, step=step))
    ranges = []
    for length in shape:
        start = data.draw(st.integers(0, length - 1))
        ranges.append((start, data.draw(st.integers(start + 1, length))))
    shards = tuple((axis, ranges[axis][0], shape[axis]) for axis in (1, 2))
    part = Dropout("d", 0.5, shards).mask(
        [stop - start for start, stop in ranges],
        Context(seed=seed, step=step, first_sample=ranges[0][0]),
    )
    assert whole is not None
    assert (part == whole[tuple(slice(*r) for r in ranges)]).all()


def test_masks_differ_by_name_seed_step_and_sample() -> None:
    masks = [
        Dropout(name, 0.5).mask((1, 1000), Context(seed, step, sample))
        for name, seed, step, sample in
        [("a", 0, 0, 0), ("b", 0, 0, 0), ("a", 1, 0, 0), ("a", 0, 1, 0), ("a", 0, 0, 1)]
    ]  # fmt: skip
    for i, mask in enumerate(masks):
        for other in masks[:i]:
            assert 400 < (mask != other).sum() < 600  # type: ignore[union-attr]


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_rate_and_mean(rate: float) -> None:
    x = np.ones((10, 10_000))
    y, _ = Dropout("d", rate).forward({}, x, Context(seed=3))
    assert (y == 0).mean() == pytest.approx(rate, abs=0.005)
    assert y.mean() == pytest.approx(1, abs=0.03)


def test_splitmix64() -> None:
    """The published generator's first outputs from seed 1234567 (Vigna's splitmix64.c)."""
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert random_words(1234567, np.arange(1, 4, dtype=np.uint64)).tolist() == wanted


def test_without_a_seed_nothing_is_dropped() -> None:
    x = np.ones((2, 3))
    y, saved = Dropout("d", 0.5).forward({}, x)
    assert y is x
    assert Dropout("d", 0.5).backward_input({}, saved, x) is x


def test_attention_heads_on_two_ranks_drop_as_on_one() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 3, 8))  # head, then q, k, v
    context = Context(seed=5, step=2, first_sample=4)

    def run(heads: slice, first: int) -> np.ndarray:
        part = np.swapaxes(x[:, :, heads], 2, 3)
        packed = part.reshape(2, 5, -1)
        count = part.shape[3]
        module = Attention("a", count, count, 8, dropout=0.4, shards=((1, first, 4),))
        return module.forward({}, packed, context)[0]

    whole = run(slice(0, 4), 0)
    parts = [run(slice(0, 2), 0), run(slice(2, 4), 2)]
    close(np.concatenate(parts, -1), whole, 1e-14)


def test_microbatches_draw_the_masks_of_the_batch() -> None:
    config = ModelConfig(2, 16, 2, vocab=11, seq=6, dropout=0.2, attention_dropout=0.2)
    model = build(config)
    params = model.init(seed=0, dtype=np.float64)
    ids = np.random.default_rng(0).integers(0, 11, (8, 6))
    context = Context(seed=9, step=1)
    loss, grads = accumulate(model, params, ids, ids, 1, context)
    for parts in (2, 8):
        again, more = accumulate(model, params, ids, ids, parts, context)
        assert again == pytest.approx(loss, rel=1e-12)
        for name, gradient in grads.items():
            close(more[name], gradient, 1e-12, absolute=1e-15)
    assert accumulate(model, params, ids, ids)[0] != loss


def test_errors_name_the_rule() -> None:
    with pytest.raises(ValueError, match=r"'d' needs 0 <= rate < 1; got rate=1\.0"):
        Dropout("d", 1.0)
    with pytest.raises(ValueError, match=r"shard \(axis=1, first=3, full=4\) does not fit"):
        Dropout("d", 0.5, ((1, 3, 4),)).mask((1, 2), Context(seed=0))
