"""Every layer's backward pass: against finite differences, and B against I and W bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.nn import (
    Attention,
    Context,
    CrossEntropy,
    Dropout,
    Fork,
    GeluErf,
    GeluTanh,
    LayerNorm,
    Linear,
    MeanSquaredError,
    MixtureOfExperts,
    Module,
    PositionEmbedding,
    Recompute,
    Relu,
    Residual,
    RMSNorm,
    Rope,
    Router,
    Sequential,
    Silu,
    SwiGLU,
    Tanh,
    TokenEmbedding,
)
from tests.nn.training_data import close

STEP = 1e-5
Layer = Callable[[int, int, int], tuple[Module, int]]
"""From three sizes: a module and the width of its input (0: it takes ids)."""


def attention(kv: int, group: int, half: int, **options: object) -> tuple[Module, int]:
    module = Attention("a", kv * group, kv, 2 * half, **options)  # type: ignore[arg-type]
    return module, (kv * group + 2 * kv) * 2 * half


def moe(activation: Module, **options: object) -> Layer:
    def make(a: int, b: int, c: int) -> tuple[Module, int]:
        router = Router("m.router", a, 4, 2, **options)  # type: ignore[arg-type]
        return MixtureOfExperts("m", a, b, router, activation), a

    return make


LAYERS: dict[str, Layer] = {
    "linear": lambda a, b, c: (Linear("l", a, b), a),
    "linear without bias": lambda a, b, c: (Linear("l", a, b, bias=False), a),
    "layer norm": lambda a, b, c: (LayerNorm("n", a + 1), a + 1),
    "RMS norm": lambda a, b, c: (RMSNorm("n", a + 1), a + 1),
    "gelu tanh": lambda a, b, c: (GeluTanh(), a),
    "gelu erf": lambda a, b, c: (GeluErf(), a),
    "silu": lambda a, b, c: (Silu(), a),
    "tanh": lambda a, b, c: (Tanh(), a),
    "relu": lambda a, b, c: (Relu(), a),
    "swiglu": lambda a, b, c: (SwiGLU(), 2 * a),
    "dropout": lambda a, b, c: (Dropout("d", 0.4), a),
    "attention": lambda a, b, c: attention(a, b, c),
    "attention, all keys": lambda a, b, c: attention(a, b, c, causal=False),
    "attention with dropout": lambda a, b, c: attention(a, b, c, dropout=0.3),
    "rope": lambda a, b, c: (Rope(a, b, 2 * c), (a + 2 * b) * 2 * c),
    "rope interleaved": lambda a, b, c: (
        Rope(a, b, 2 * c, style="interleaved"),
        (a + 2 * b) * 2 * c,
    ),
    "token embedding": lambda a, b, c: (TokenEmbedding("t", 5, a), 0),
    "position embedding": lambda a, b, c: (PositionEmbedding("p", 8, a), a),
    "residual": lambda a, b, c: (Residual(RMSNorm("n", a), Linear("l", a, a)), a),
    "fork": lambda a, b, c: (Fork(Linear("q", a, b), Linear("k", a, c)), a),
    "shared weights": lambda a, b, c: (Sequential(Linear("l", a, a), Linear("l", a, a)), a),
    "recompute": lambda a, b, c: (
        Recompute(Sequential(Linear("l", a, b), Dropout("d", 0.3), GeluTanh())),
        a,
    ),
    "experts": moe(GeluTanh()),
    "experts, weights as they are": moe(GeluTanh(), normalise="none"),
    "experts with capacity": moe(SwiGLU(), capacity_factor=0.7, min_capacity=1, normalise="kept"),
    "experts with losses": moe(GeluTanh(), aux_coefficient=0.5, z_coefficient=0.3),
    "experts, first choices balanced": moe(
        GeluTanh(), aux_coefficient=0.5, balance_first=True, keep="first_choice"
    ),
}


def case(
    name: str, sizes: tuple[int, int, int], batch: int, seq: int, seed: int
) -> tuple[Module, dict[str, np.ndarray], np.ndarray, np.random.Generator]:
    module, width = LAYERS[name](*sizes)
    rng = np.random.default_rng(seed)
    params = {key: rng.normal(size=shape) for key, shape in module.shapes().items()}
    x = rng.normal(size=(batch, seq, width)) if width else rng.integers(0, 5, (batch, seq))
    return module, params, x, rng


SIZES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
CONTEXT = Context(seed=7, step=3, first_sample=5)


def difference_quotient(f: Callable[[float], float]) -> float:
    """f'(0) from four values, exact up to the fourth power."""
    near, far = f(STEP) - f(-STEP), f(2 * STEP) - f(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=6)
@given(sizes=SIZES, batch=st.integers(1, 2), seq=st.integers(1, 5), seed=st.integers(0, 999))
def test_gradient_is_the_difference_quotient(
    name: str, sizes: tuple[int, int, int], batch: int, seq: int, seed: int
) -> None:
    """Along a random direction of everything at once."""
    module, params, x, rng = case(name, sizes, batch, seq, seed)
    y, saved = module.forward(params, x, CONTEXT)
    weights = rng.normal(size=y.shape)
    dx, grads = module.backward(params, saved, weights)
    assert dx.shape == x.shape
    assert set(grads) == set(params)
    directions = {key: rng.normal(size=value.shape) for key, value in params.items()}
    along = rng.normal(size=x.shape) if x.dtype == np.float64 else np.zeros(x.shape, int)

    def loss(h: float) -> float:
        moved = {key: value + h * directions[key] for key, value in params.items()}
        out, kept = module.forward(moved, x + h * along if along.any() else x, CONTEXT)
        return float((out * weights).sum()) + kept.total_extra_loss()

    slope = difference_quotient(loss)
    claimed = float((dx * along).sum()) + sum(
        float((grads[key] * directions[key]).sum()) for key in params
    )
    scale = 1 + sum(float(np.abs(g).sum()) for g in grads.values()) + float(np.abs(dx).sum())
    assert abs(slope - claimed) < 1e-8 * scale


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=5)
@given(
    sizes=SIZES,
    batch=st.integers(1, 3),
    seq=st.integers(1, 5),
    seed=st.integers(0, 999),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_input_and_weight_halves_equal_the_whole(
    name: str, sizes: tuple[int, int, int], batch: int, seq: int, seed: int, dtype: str
) -> None:
    module, params, x, rng = case(name, sizes, batch, seq, seed)
    params = {key: value.astype(dtype) for key, value in params.items()}
    x = x.astype(dtype) if x.dtype == np.float64 else x
    y, saved = module.forward(params, x, CONTEXT)
    assert y.dtype == (dtype if params or x.dtype == dtype else x.dtype)
    dy = rng.normal(size=y.shape).astype(dtype)
    before = dy.copy()
    dx, grads = module.backward(params, saved, dy)
    _, again = module.forward(params, x, CONTEXT)
    dx_alone = module.backward_input(params, again, dy)
    assert not any(part.for_input for part in tree(again)), "I frees what only I needs"
    grads_alone = module.backward_weight(again)
    assert again.nbytes == saved.nbytes == 0, "nothing is left after W"
    assert (dx == dx_alone).all()
    assert list(grads) == list(grads_alone)
    assert all((grads[key] == grads_alone[key]).all() for key in grads)
    assert (dy == before).all(), "the gradient that came in is left as it was"


def tree(saved: object) -> list[object]:
    return [saved, *(x for part in saved.parts for x in tree(part))]  # type: ignore[attr-defined]


@given(
    rows=st.integers(1, 6),
    classes=st.integers(2, 7),
    smoothing=st.sampled_from([0.0, 0.1, 1.0]),
    reduction=st.sampled_from(["mean", "sum"]),
    seed=st.integers(0, 999),
)
def test_cross_entropy(
    rows: int, classes: int, smoothing: float, reduction: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    logits, targets = rng.normal(size=(rows, classes)), rng.integers(0, classes, rows)
    targets[1::2] = -100
    loss = CrossEntropy(label_smoothing=smoothing, reduction=reduction)
    _, saved = loss.forward(logits, targets)
    d = loss.backward(saved, scale=3.0)
    direction = rng.normal(size=logits.shape)
    slope = difference_quotient(lambda h: loss.forward(logits + h * direction, targets)[0])
    assert abs(3 * slope - (d * direction).sum()) < 1e-8
    assert (d[1::2] == 0).all()
    moved, _ = loss.forward(logits + 1000, targets)
    assert abs(moved - loss.forward(logits, targets)[0]) < 1e-9  # a common shift changes nothing


def test_mean_squared_error() -> None:
    y, target = np.array([[1.0, 2.0]]), np.array([[0.0, 4.0]])
    value, saved = MeanSquaredError().forward(y, target)
    assert value == 2.5
    close(MeanSquaredError().backward(saved), np.array([[1.0, -2.0]]))
