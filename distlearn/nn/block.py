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
    if config.dropout:
        layers.append(Dropout("embedding", config.dropout))
    return Sequential(tuple(layers))


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
        (
            Residual(attention_branch(config, name, selective=recompute == "selective")),
            Residual(feed_forward_branch(config, name)),
        )
    )
    return Recompute(whole) if recompute == "full" else whole


def attention_branch(config: ModelConfig, name: str, selective: bool) -> tuple[Module, ...]:
    """Norm, [q | k | v], rotary positions, attention, projection, dropout."""
    width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
    core: Module = Attention(
        f"{name}.attention", config.heads, config.kv_heads, config.head_dim,
        dropout=config.attention_dropout,
    )  # fmt: skip
    layers: list[Module] = [_norm(config, name, 1)]
    if config.fused_qkv:
        layers.append(Linear(f"{name}.qkv", config.hidden, width + 2 * kv_width, config.bias))
    else:
        layers.append(
            Fork(
                tuple(
                    Linear(f"{name}.{part}", config.hidden, size, config.bias)
                    for part, size in (("q", width), ("k", kv_width), ("v", kv_width))
                )
            )
        )
    if config.position == "rope":
        layers.append(Rope(config.heads, config.kv_heads, config.head_dim,
                           config.rope_theta, config.rope_style))  # fmt: skip
    layers.append(Recompute(core) if selective else core)
    projection = "proj" if config.fused_qkv else "o"
    layers.append(_back_to_stream(config, f"{name}.{projection}", width))
    if config.dropout:
        layers.append(Dropout(f"{name}.attention_branch", config.dropout))
    return tuple(layers)


def feed_forward_branch(config: ModelConfig, name: str) -> tuple[Module, ...]:
    """Norm, widen, activation, narrow (or a mixture of experts that do so), dropout."""
    gated = config.activation == "swiglu"
    activation = ACTIVATION[config.activation]()
    layers = [_norm(config, name, 2)]
    if config.experts:
        layers.append(MixtureOfExperts(
            f"{name}.moe", config.hidden, config.ffn,
            Router(f"{name}.moe.router", config.hidden, config.experts, config.top_k,
                   normalise="chosen" if config.normalise_top_k else "none",
                   capacity_factor=config.capacity_factor,
                   aux_coefficient=config.aux_coefficient,
                   z_coefficient=config.z_coefficient),
            activation,
        ))  # fmt: skip
    else:
        if gated:
            layers.append(
                Fork(
                    tuple(
                        Linear(f"{name}.{part}", config.hidden, config.ffn, config.bias)
                        for part in ("gate", "up")
                    )
                )
            )
        else:
            layers.append(Linear(f"{name}.fc", config.hidden, config.ffn, config.bias))
        layers.append(activation)
        last = "down" if gated else "out"
        layers.append(_back_to_stream(config, f"{name}.{last}", config.ffn))
    if config.dropout:
        layers.append(Dropout(f"{name}.feed_forward_branch", config.dropout))
    return tuple(layers)


def head(config: ModelConfig) -> Sequential:
    """Last norm and the map to one logit a token; tied, its weight is the token embedding."""
    norm = (
        LayerNorm("lnf", config.hidden, config.norm_eps)
        if config.norm == "layernorm"
        else RMSNorm("nf", config.hidden, config.norm_eps)
    )
    name = "wte" if config.tied else "head"
    return Sequential((norm, Linear(name, config.hidden, config.vocab, bias=False)))


def _norm(config: ModelConfig, name: str, place: int) -> Module:
    if config.norm == "layernorm":
        return LayerNorm(f"{name}.ln{place}", config.hidden, config.norm_eps)
    return RMSNorm(f"{name}.n{place}", config.hidden, config.norm_eps)


def _back_to_stream(config: ModelConfig, name: str, inputs: int) -> Linear:
    """A layer that ends a branch; GPT-2 starts it smaller, as 2 · layers branches add up."""
    deviation = 0.02 / math.sqrt(2 * config.layers)
    return Linear(name, inputs, config.hidden, config.bias, deviation)
