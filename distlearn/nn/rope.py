"""Rotary position embedding: turn pairs of query and key values by an angle that grows with place.

The product of a turned query and a turned key depends on the distance of their places only
(Su et al. 2021, section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Params, narrow, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width

STYLES = ("half", "interleaved")


@dataclass(frozen=True)
class Rope(Module):
    """Turn the queries and keys inside [queries | keys | values]; the values pass unchanged.

    Nothing is kept: the gradient is turned back by the same angles.

    Attributes
    ----------
    heads, kv_heads, head_dim : int
        The last axis is (heads + 2 · kv_heads) · head_dim wide.
    theta : float
        Pair i of a head turns by position · theta^(-2i / head_dim).
    style : str
        Which values form pair i: ``half`` (i, i + head_dim/2), as Llama in Hugging Face, or
        ``interleaved`` (2i, 2i + 1), as the paper.
    """

    heads: int
    kv_heads: int
    head_dim: int
    theta: float = 10_000.0
    style: str = "half"

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ValueError(f"rope style must be one of {', '.join(STYLES)}; got {self.style!r}")
        if self.head_dim % 2:
            raise ValueError(f"rope needs an even head_dim; got head_dim={self.head_dim}")

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (batch, sequence, width)."""
        width = (self.heads + 2 * self.kv_heads) * self.head_dim
        require_width("rope", x, width)
        positions = context.positions or tuple(range(x.shape[1]))
        return self._turn(x, positions, 1), Saved(sizes=positions)

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: turn back."""
        return self._turn(dy, saved.sizes, -1)

    def _turn(self, x: Array, positions: tuple[int, ...], sign: int) -> Array:
        if len(positions) != x.shape[1]:
            raise ValueError(
                f"rope needs one position for each of {x.shape[1]} rows; got {len(positions)}"
            )
        turned = (self.heads + self.kv_heads) * self.head_dim
        out = x.copy()
        heads = (*x.shape[:2], self.heads + self.kv_heads, self.head_dim)
        # (batch, sequence, head, head_dim) to (batch, head, sequence, head_dim)
        source = x[..., :turned].reshape(heads).swapaxes(1, 2)
        result = rotate(source, np.array(positions), self.theta, self.style, sign)
        out[..., :turned] = result.swapaxes(1, 2).reshape(*x.shape[:2], turned)
        return out


def rotate(
    x: Array, positions: Array, theta: float = 10_000.0, style: str = "half", sign: int = 1
) -> Array:
    """Turn pairs of values of x (..., sequence, head_dim) by their places' angles.

    Parameters
    ----------
    x : array (..., sequence, head_dim)
    positions : array of int (sequence,)
    theta, style
        As in `Rope`.
    sign : int
        1 to turn, -1 to turn back (the gradient).

    Examples
    --------
    >>> x = np.array([[1.0, 0.0]])
    >>> rotate(x, np.array([1])).round(3), rotate(rotate(x, np.array([7])), np.array([-7])).round(9)
    (array([[0.54 , 0.841]]), array([[1., 0.]]))
    """
    half = x.shape[-1] // 2
    speed = theta ** (-np.arange(half) / half)
    angle = np.outer(positions, speed)
    dtype = wide(x[:0]).dtype
    cos, sin = np.cos(angle).astype(dtype), (sign * np.sin(angle)).astype(dtype)
    if style == "half":
        first, second = slice(None, half), slice(half, None)
    else:
        first, second = slice(0, None, 2), slice(1, None, 2)
    a, b = wide(x[..., first]), wide(x[..., second])
    out = np.empty(x.shape, x.dtype)
    out[..., first] = narrow(a * cos - b * sin, x.dtype)
    out[..., second] = narrow(b * cos + a * sin, x.dtype)
    return out
