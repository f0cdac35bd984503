"""The same small GPT in PyTorch, as its users write it: the peer of `benchmarks.nn`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from distlearn.nn import ModelConfig


def available() -> bool:
    """Whether torch is installed."""
    return importlib.util.find_spec("torch") is not None


def step(config: ModelConfig, weights: Any, ids: Any, targets: Any) -> Callable[[], float]:
    """A function that does one training step and returns its loss.

    Parameters
    ----------
    config : ModelConfig
        GPT-2 style, tied, without dropout.
    weights : dict of str to array
        First weights, by our names.
    ids, targets : array of int (batch, sequence)
    """
    import torch
    from torch.nn import functional

    w = {
        name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()
    }
    optimizer = torch.optim.AdamW(w.values(), lr=1e-3, weight_decay=0.01)
    x_ids, y_ids = torch.from_numpy(ids), torch.from_numpy(targets)
    size, length = ids.shape

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(
            x, (config.hidden,), w[f"{name}.weight"], w[f"{name}.bias"], config.norm_eps
        )

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def logits() -> Any:
        x = functional.embedding(x_ids, w["wte.weight"]) + w["wpe.weight"][:length]
        for layer in range(config.layers):
            name = f"h.{layer}"
            qkv = linear(norm(x, f"{name}.ln1"), f"{name}.qkv")
            q, k, v = qkv.view(size, length, 3, config.heads, -1).permute(2, 0, 3, 1, 4)
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + linear(out.transpose(1, 2).reshape(size, length, -1), f"{name}.proj")
            wide = functional.gelu(linear(norm(x, f"{name}.ln2"), f"{name}.fc"), approximate="tanh")
            x = x + linear(wide, f"{name}.out")
        return norm(x, "lnf") @ w["wte.weight"].T

    def once() -> float:
        optimizer.zero_grad()
        loss = functional.cross_entropy(logits().flatten(0, 1), y_ids.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return once
