"""Whole models, logits, block outputs, loss and every gradient, against PyTorch's values."""

from __future__ import annotations

import pytest

from distlearn.nn import build
from tests.nn.training_data import close, config_of, part, read, records


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("name", records("models/*.npz"))
def test_model(name: str, recompute: str) -> None:
    arrays, meta = read(name)
    model = build(config_of(meta), recompute)
    params = part(arrays, "w")
    assert {key: value.shape for key, value in params.items()} == model.shapes()
    x, saved = arrays["ids"], []
    for index, module in enumerate(model):
        x, kept = module.forward(params, x)
        saved.append(kept)
        if f"act:block{index - 1}" in arrays:
            close(x, arrays[f"act:block{index - 1}"])
    close(x, arrays["logits"])
    loss, grads = model.loss_and_gradients(params, arrays["ids"], arrays["tgt"])
    close(loss, arrays["loss"])
    wanted = part(arrays, "g")
    assert set(grads) == set(wanted)
    for key, gradient in grads.items():
        close(gradient, wanted[key], absolute=1e-8 if gradient.dtype == "f4" else 1e-15)
