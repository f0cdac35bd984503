"""The sizes and choices that define a transformer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

ACTIVATIONS = ("gelu_tanh", "gelu_erf", "relu", "silu", "swiglu")
CHOICES = {
    "norm": ("layernorm", "rmsnorm"),
    "activation": ACTIVATIONS,
    "position": ("learned", "rope", "none"),
    "rope_style": ("half", "interleaved"),
}


@dataclass(frozen=True)
class ModelConfig:
    """A decoder-only transformer, GPT-2 style unless said otherwise.

    Attributes
    ----------
    layers, hidden, heads : int
        Blocks; width of the residual stream; query heads.
    kv_heads : int, optional
        Key and value heads (grouped-query attention). Default: heads.
    ffn : int, optional
        Width inside the feed-forward layer. Default: 4 · hidden; with SwiGLU 8/3 · hidden, rounded
        up to a multiple of 64, which costs as many parameters.
    vocab, seq : int
        Tokens; longest sequence.
    head_dim : int, optional
        Width of a head. Default: hidden / heads.
    norm, activation, position, rope_style : str
        Choices in `CHOICES`.
    rope_theta, norm_eps : float
        Base of the rotary angles; added to a row's variance.
    bias : bool
        Whether the linear layers of the blocks have a bias (norms keep theirs, the head has none).
    fused_qkv : bool, optional
        One weight for queries, keys and values, or three. Default: one with a LayerNorm.
    tied : bool
        Whether the head's weight is the token embedding.
    dropout, attention_dropout : float
        Rate after the embedding and each branch; rate of the attention probabilities.
    experts, top_k : int
        With experts > 0 each feed-forward layer is a mixture of experts, each token using top_k.
    capacity_factor : float, optional
        Tokens an expert takes, over the even share; the rest is dropped. Default: drop none.
    normalise_top_k : bool
        Whether the weights of a token's experts sum to 1.
    aux_coefficient, z_coefficient : float
        Weight of the router's load-balance loss and z loss.

    Raises
    ------
    ValueError
        For sizes that are not positive whole numbers or do not divide, and unknown choices.

    Examples
    --------
    >>> config = ModelConfig(layers=2, hidden=64, heads=4, vocab=100, seq=32)
    >>> config.kv_heads, config.ffn, config.head_dim
    (4, 256, 16)
    >>> ModelConfig.llama(layers=2, hidden=64, heads=4, kv_heads=2, vocab=100, seq=32).norm
    'rmsnorm'
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int = None  # type: ignore[assignment]  # these three are filled in __post_init__
    ffn: int = None  # type: ignore[assignment]
    vocab: int = 50_257
    seq: int = 1024
    head_dim: int = None  # type: ignore[assignment]
    norm: str = "layernorm"
    activation: str = "gelu_tanh"
    position: str = "learned"
    rope_style: str = "half"
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    bias: bool = True
    fused_qkv: bool = None  # type: ignore[assignment]
    tied: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    experts: int = 0
    top_k: int = 2
    capacity_factor: float | None = None
    normalise_top_k: bool = True
    aux_coefficient: float = 0.0
    z_coefficient: float = 0.0

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}"
                )
        for name in ("layers", "hidden", "heads", "vocab", "seq"):
            _require_positive(name, getattr(self, name))
        if self.kv_heads is None:
            object.__setattr__(self, "kv_heads", self.heads)
        if self.ffn is None:
            even = -(-8 * self.hidden // (3 * 64)) * 64
            ffn = even if self.activation == "swiglu" else 4 * self.hidden
            object.__setattr__(self, "ffn", ffn)
        if self.head_dim is None:
            if self.hidden % self.heads:
                raise ValueError(
                    "hidden must be a multiple of heads, unless head_dim is given; "
                    f"got hidden={self.hidden}, heads={self.heads}"
                )
            object.__setattr__(self, "head_dim", self.hidden // self.heads)
        if self.fused_qkv is None:
            object.__setattr__(self, "fused_qkv", self.norm == "layernorm")
        for name in ("kv_heads", "ffn", "head_dim"):
            _require_positive(name, getattr(self, name))
        if self.heads % self.kv_heads:
            raise ValueError(
                "heads must be a multiple of kv_heads; "
                f"got heads={self.heads}, kv_heads={self.kv_heads}"
            )
        for name in ("norm_eps", "aux_coefficient", "z_coefficient"):
            _require_finite(name, getattr(self, name))
        _require_finite("rope_theta", self.rope_theta, above_zero=True)
        if self.capacity_factor is not None:
            _require_finite("capacity_factor", self.capacity_factor, above_zero=True)
        if self.experts != 0:
            _require_positive("experts", self.experts)
            _require_positive("top_k", self.top_k)
        if self.experts and not 1 <= self.top_k <= self.experts:
            raise ValueError(
                f"top_k must lie between 1 and experts={self.experts}; got top_k={self.top_k}"
            )

    @classmethod
    def llama(cls, **sizes: Any) -> ModelConfig:
        """A Llama-style model: RMSNorm, rotary positions, SwiGLU, no biases, untied head.

        Any field may be given and then has its way.
        """
        style: dict[str, Any] = {
            "norm": "rmsnorm", "activation": "swiglu", "position": "rope", "norm_eps": 1e-6,
            "bias": False, "tied": False,
        }  # fmt: skip
        return cls(**{**style, **sizes})


def _require_positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1; got {name}={value!r}")


def _require_finite(name: str, value: object, above_zero: bool = False) -> None:
    rule = "> 0" if above_zero else ">= 0"
    if (not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value)
            or value < 0 or (above_zero and value == 0)):
        raise ValueError(f"{name} must be a finite number {rule}; got {name}={value!r}")
