"""Single operations, forward and backward, against PyTorch's values."""

from __future__ import annotations

import numpy as np
import pytest

from distlearn.nn import (
    CrossEntropy,
    GeluErf,
    GeluTanh,
    LayerNorm,
    Linear,
    Module,
    RMSNorm,
    SwiGLU,
    TokenEmbedding,
    attention_backward,
    attention_forward,
    rotate,
    softmax,
)
from distlearn.nn.attention import softmax_backward
from tests.nn.training_data import close, read, records


def check(module: Module, name: str, inputs: str = "in_x", gradient: str = "d_x") -> None:
    arrays, _ = read(name)
    params = {
        f"op.{ours}": arrays[theirs]
        for theirs, ours in (("in_w", "weight"), ("in_b", "bias"))
        if theirs in arrays and theirs != inputs
    }
    y, saved = module.forward(params, arrays[inputs])
    close(y, arrays["out"])
    dx, grads = module.backward(params, saved, arrays["dout"])
    close(dx, arrays[gradient])
    for theirs, ours in (("d_w", "op.weight"), ("d_b", "op.bias")):
        if ours in params:
            close(grads[ours], arrays[theirs])


@pytest.mark.parametrize("name", records("ops/linear_*.npz"))
def test_linear(name: str) -> None:
    w = read(name)[0]["in_w"]
    check(Linear("op", w.shape[1], w.shape[0]), name)


@pytest.mark.parametrize("name", records("ops/layernorm_*.npz"))
def test_layernorm(name: str) -> None:
    arrays, meta = read(name)
    check(LayerNorm("op", arrays["in_w"].size, meta["eps"]), name)


@pytest.mark.parametrize("name", records("ops/rmsnorm_*.npz"))
def test_rmsnorm(name: str) -> None:
    arrays, meta = read(name)
    check(RMSNorm("op", arrays["in_w"].size, meta["eps"]), name)


@pytest.mark.parametrize("name", records("ops/gelu_*.npz"))
def test_gelu(name: str) -> None:
    check(GeluTanh() if "tanh" in name else GeluErf(), name)


@pytest.mark.parametrize("name", records("ops/swiglu_*.npz"))
def test_swiglu(name: str) -> None:
    arrays, _ = read(name)
    joined = np.concatenate([arrays["in_a"], arrays["in_b"]], -1)
    y, saved = SwiGLU().forward({}, joined)
    close(y, arrays["out"])
    dx = SwiGLU().backward_input({}, saved, arrays["dout"])
    close(dx, np.concatenate([arrays["d_a"], arrays["d_b"]], -1))


@pytest.mark.parametrize("name", records("ops/softmax_*.npz"))
def test_softmax(name: str) -> None:
    arrays, _ = read(name)
    y = softmax(arrays["in_x"])
    close(y, arrays["out"])
    close(softmax_backward(y, arrays["dout"]), arrays["d_x"])


@pytest.mark.parametrize("name", records("ops/embedding_*.npz"))
def test_embedding(name: str) -> None:
    arrays, _ = read(name)
    table = arrays["in_w"]
    module = TokenEmbedding("op", *table.shape)
    y, saved = module.forward({"op.weight": table}, arrays["in_y"])
    close(y, arrays["out"])
    _, grads = module.backward({}, saved, arrays["dout"])
    close(grads["op.weight"], arrays["d_w"])


@pytest.mark.parametrize("name", records("ops/rope_*.npz"))
def test_rope(name: str) -> None:
    arrays, meta = read(name)
    positions = np.arange(arrays["in_x"].shape[-2])
    turn = {"theta": meta["theta"], "style": meta["mode"]}
    close(rotate(arrays["in_x"], positions, **turn), arrays["out"])
    close(rotate(arrays["dout"], positions, sign=-1, **turn), arrays["d_x"])


@pytest.mark.parametrize("name", records("ops/attn_*.npz"))
def test_attention(name: str) -> None:
    arrays, _ = read(name)
    q, k, v = (arrays[f"in_{letter}"] for letter in "qkv")
    out = np.empty_like(q)
    kept = attention_forward(q, k, v, out, causal="causal" in name)
    close(out, arrays["out"])
    grads = [np.empty_like(x) for x in (q, k, v)]
    attention_backward(q, k, v, kept, arrays["dout"], *grads, causal="causal" in name)
    for letter, gradient in zip("qkv", grads, strict=True):
        close(gradient, arrays[f"d_{letter}"])


@pytest.mark.parametrize("name", records("ops/xent_*.npz"))
def test_cross_entropy(name: str) -> None:
    arrays, meta = read(name)
    loss = CrossEntropy(
        meta["ignore_index"], meta.get("label_smoothing", 0.0), meta.get("reduction", "mean")
    )
    value, saved = loss.forward(arrays["in_z"], arrays["in_y"])
    close(value, arrays["out"])
    close(loss.backward(saved, float(arrays["dout"])), arrays["d_z"])
