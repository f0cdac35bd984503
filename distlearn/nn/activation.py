"""Activations: functions of single values between the linear layers, and SwiGLU's gate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Params, narrow, pieces, pointwise, rows_of, wide
from distlearn.nn.erf import erf
from distlearn.nn.module import EVALUATION, Context, Module, Saved
from distlearn.nn.threads import share

CUBIC = 0.044715
ROOT = math.sqrt(2 / math.pi)


class Activation(Module):
    """y = value(x), dx = dy · slope(x). Keeps x for I; there is no W.

    A subclass gives `value` and `slope` for one piece of a flat array.
    """

    def value(self, x: Array) -> Array:
        """The function."""
        raise NotImplementedError

    def slope(self, x: Array) -> Array:
        """Its derivative."""
        raise NotImplementedError

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: any shape."""
        return pointwise(self.value, x), Saved(for_input={"x": x})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: dy · slope(x)."""
        return pointwise(lambda g, x: g * self.slope(x), dy, saved.take("x"))


@dataclass(frozen=True)
class GeluTanh(Activation):
    """GELU as GPT-2 computes it: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))."""

    def value(self, x: Array) -> Array:
        """The function."""
        y = self._tanh(x * x, x)
        y += 1
        y *= x
        y *= 0.5
        return y

    def slope(self, x: Array) -> Array:
        """(1 + t)/2 + x/2 · (1 - t²) · √(2/π) (1 + 3 · 0.044715 x²), with t the tanh above."""
        square = x * x
        t = self._tanh(square, x)
        square *= 1.5 * ROOT * CUBIC
        square += 0.5 * ROOT
        square *= x
        slope = t * t
        np.subtract(1, slope, out=slope)
        slope *= square
        t *= 0.5
        slope += t
        slope += 0.5
        return slope

    @staticmethod
    def _tanh(square: Array, x: Array) -> Array:
        u = square * (ROOT * CUBIC)
        u += ROOT
        u *= x
        return np.tanh(u, out=u)


@dataclass(frozen=True)
class GeluErf(Activation):
    """GELU itself: x · Φ(x), with Φ(x) = (1 + erf(x/√2)) / 2 (Hendrycks & Gimpel 2016)."""

    def value(self, x: Array) -> Array:
        """The function."""
        return x * self._share_below(x)

    def slope(self, x: Array) -> Array:
        """Φ(x) + x φ(x), φ being the normal density."""
        density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return self._share_below(x) + x * density

    @staticmethod
    def _share_below(x: Array) -> Array:
        share: Array = 0.5 * (1 + erf(x / math.sqrt(2)))
        return share


@dataclass(frozen=True)
class Silu(Activation):
    """x · σ(x), also called swish."""

    def value(self, x: Array) -> Array:
        """The function."""
        return x * sigmoid(x)

    def slope(self, x: Array) -> Array:
        """σ(x) (1 + x (1 - σ(x)))."""
        s = sigmoid(x)
        slope: Array = s * (1 + x * (1 - s))
        return slope


@dataclass(frozen=True)
class Tanh(Activation):
    """tanh(x)."""

    def value(self, x: Array) -> Array:
        """The function."""
        return np.tanh(x)

    def slope(self, x: Array) -> Array:
        """1 - tanh²(x)."""
        return 1 - np.tanh(x) ** 2


@dataclass(frozen=True)
class Relu(Activation):
    """max(x, 0)."""

    def value(self, x: Array) -> Array:
        """The function."""
        return np.maximum(x, 0)

    def slope(self, x: Array) -> Array:
        """1 where x > 0, else 0."""
        return (x > 0).astype(x.dtype)


@dataclass(frozen=True)
class SwiGLU(Module):
    """silu(gate) · up, of an input that holds both side by side: [gate | up] (Shazeer 2020)."""

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (..., 2 · width) to (..., width)."""
        if x.shape[-1] % 2:
            raise ValueError(f"SwiGLU needs [gate | up], an even last axis; got shape {x.shape}")
        width = x.shape[-1] // 2
        rows, y = rows_of(x), np.empty((x.size // x.shape[-1], width), x.dtype)

        def compute(part: slice) -> None:
            gate, up = wide(rows[part, :width]), wide(rows[part, width:])
            value = sigmoid(gate)
            value *= gate
            value *= up
            y[part] = narrow(value, y.dtype)

        share(compute, pieces(len(rows), 2 * width))
        return y.reshape(*x.shape[:-1], width), Saved(for_input={"x": x})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: [dy · up · silu'(gate) | dy · silu(gate)]."""
        x, width = saved.take("x"), dy.shape[-1]
        rows, above = rows_of(x), rows_of(dy)
        dx = np.empty(rows.shape, dy.dtype)

        def compute(part: slice) -> None:
            gate, up, g = wide(rows[part, :width]), wide(rows[part, width:]), wide(above[part])
            s = sigmoid(gate)
            silu = gate * s
            dx[part, width:] = narrow(silu * g, dx.dtype)
            s += silu
            silu *= s - silu
            s -= silu  # σ + x σ - x σ² = silu'(x)
            s *= up
            s *= g
            dx[part, :width] = narrow(s, dx.dtype)

        share(compute, pieces(len(rows), 2 * width))
        return dx.reshape(*dy.shape[:-1], 2 * width)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)); exact 0 where the exponential overflows."""
    with np.errstate(over="ignore"):
        y = np.exp(-x)
    y += 1
    return np.reciprocal(y, out=y)
