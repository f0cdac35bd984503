"""The parts a transformer is made of, as flat lists of layers: embedding, block, head."""

from __future__ import annotations

import math
from collections.abc import Callable

from distlearn.nn.activation import GeluErf, GeluTanh, Relu, Silu, SwiGLU
from distlearn.nn.attention import Attention
from distlearn.nn.compose import Fork, Residual, Sequential
from distlearn.nn.config import ModelConfig
from distlearn.nn.dropout import Dropout
from distlearn.nn.embedding import PositionEmbedding, TokenEmbedding
from distlearn.nn.linear import Linear
from distlearn.nn.module import Module
from distlearn.nn.moe import MixtureOfExperts
from distlearn.nn.norm import LayerNorm, RMSNorm
from distlearn.nn.recompute import POLICIES, Recompute
from distlearn.nn.rope import Rope
from distlearn.nn.router import Router

ACTIVATION: dict[str, Callable[[], Module]] = {
    "gelu_tanh": GeluTanh,
    "gelu_erf": GeluErf,
    "relu": Relu,
    "silu": Silu,
    "swiglu": SwiGLU,
}


def embedding(config: ModelConfig) -> Sequential:
    """Tokens, learned positions if the model has them, dropout: ids to (batch, seq, hidden)."""
    layers: list[Module] = [TokenEmbedding("wte", config.vocab, config.hidden)]
    if config.position == "learned":
        layers.append(PositionEmbedding("wpe", config.seq, config.hidden))
    return Sequential(*layers, *_dropout(config, "embedding"))


def block(config: ModelConfig, index: int, recompute: str = "none") -> Module:
    """One transformer block: two residual branches, attention and feed-forward.

    Parameters
    ----------
    config : ModelConfig
    index : int
        Which block, 0-based; parameters are named ``h.index. ...``.
    recompute : str
        ``none``; ``selective``: all of the attention core but its input; ``full``: all of the block
        but its input.

    Raises
    ------
    ValueError
        For another ``recompute``.
    """
    if recompute not in POLICIES:
        raise ValueError(f"recompute must be one of {', '.join(POLICIES)}; got {recompute!r}")
    name = f"h.{index}"
    whole = Sequential(
        Residual(*attention_branch(config, name, selective=recompute == "selective")),
        Residual(*feed_forward_branch(config, name)),
    )
    return Recompute(whole) if recompute == "full" else whole


def attention_branch(config: ModelConfig, name: str, selective: bool = False) -> list[Module]:
    """Norm, [q | k | v], rotary positions, attention, projection, dropout."""
    c, width, kv_width = config, config.heads * config.head_dim, config.kv_heads * config.head_dim
    layers: list[Module] = [_norm(c, name, 1)]
    if c.fused_qkv:
        layers.append(Linear(f"{name}.qkv", c.hidden, width + 2 * kv_width, c.bias))
    else:
        parts = (("q", width), ("k", kv_width), ("v", kv_width))
        layers.append(Fork(*(Linear(f"{name}.{p}", c.hidden, size, c.bias) for p, size in parts)))
    if c.position == "rope":
        layers.append(Rope(c.heads, c.kv_heads, c.head_dim, c.rope_theta, c.rope_style))
    core = Attention(
        f"{name}.attention", c.heads, c.kv_heads, c.head_dim, dropout=c.attention_dropout
    )
    layers.append(Recompute(core) if selective else core)
    layers.append(_last_linear(c, f"{name}.proj" if c.fused_qkv else f"{name}.o", width))
    return layers + _dropout(c, f"{name}.attention_branch")


def feed_forward_branch(config: ModelConfig, name: str) -> list[Module]:
    """Norm; widen, activation, narrow, or a mixture of experts that do so; dropout."""
    c, activation = config, ACTIVATION[config.activation]()
    layers: list[Module] = [_norm(c, name, 2)]
    if c.experts:
        layers.append(_experts(c, f"{name}.moe", activation))
    elif c.activation == "swiglu":
        parts = ("gate", "up")
        layers.append(Fork(*(Linear(f"{name}.{p}", c.hidden, c.ffn, c.bias) for p in parts)))
        layers += [activation, _last_linear(c, f"{name}.down", c.ffn)]
    else:
        layers.append(Linear(f"{name}.fc", c.hidden, c.ffn, c.bias))
        layers += [activation, _last_linear(c, f"{name}.out", c.ffn)]
    return layers + _dropout(c, f"{name}.feed_forward_branch")


def head(config: ModelConfig) -> Sequential:
    """Last norm and the map to one logit a token; tied, its weight is the token embedding."""
    kind, name = (LayerNorm, "lnf") if config.norm == "layernorm" else (RMSNorm, "nf")
    weight = "wte" if config.tied else "head"
    return Sequential(
        kind(name, config.hidden, config.norm_eps),
        Linear(weight, config.hidden, config.vocab, bias=False),
    )


def _experts(c: ModelConfig, name: str, activation: Module) -> Module:
    router = Router(
        f"{name}.router",
        c.hidden,
        c.experts,
        c.top_k,
        normalise="chosen" if c.normalise_top_k else "none",
        capacity_factor=c.capacity_factor,
        aux_coefficient=c.aux_coefficient,
        z_coefficient=c.z_coefficient,
    )
    return MixtureOfExperts(name, c.hidden, c.ffn, router, activation)


def _dropout(config: ModelConfig, name: str) -> list[Module]:
    return [Dropout(name, config.dropout)] if config.dropout else []


def _norm(config: ModelConfig, name: str, place: int) -> Module:
    if config.norm == "layernorm":
        return LayerNorm(f"{name}.ln{place}", config.hidden, config.norm_eps)
    return RMSNorm(f"{name}.n{place}", config.hidden, config.norm_eps)


def _last_linear(config: ModelConfig, name: str, inputs: int) -> Linear:
    """A layer that ends a branch; GPT-2 starts it smaller, as 2 · layers branches add up."""
    deviation = 0.02 / math.sqrt(2 * config.layers)
    return Linear(name, inputs, config.hidden, config.bias, deviation)
