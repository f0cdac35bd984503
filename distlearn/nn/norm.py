"""LayerNorm and RMSNorm: each row to unit size, then a learned gain (and bias)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Grads, Params, narrow, pieces, rows_of, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width
from distlearn.nn.threads import share


@dataclass(frozen=True)
class LayerNorm(Module):
    """y = (x - mean) / sqrt(variance + eps) · w + b, per row.

    Keeps x and two numbers a row. The gradients of w and b are computed by I, because they need
    the same two arrays and are tiny; W only hands them out. So x and dy are freed at I, as the
    zero-bubble paper counts (Qi et al. 2024, Table 1).

    Attributes
    ----------
    name : str
        Parameters are ``name.weight`` and ``name.bias``, both (width,).
    width : int
    eps : float
    """

    name: str
    width: int
    eps: float = 1e-5

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Gain and bias."""
        return {f"{self.name}.weight": (self.width,), f"{self.name}.bias": (self.width,)}

    def first_value(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Gain 1, bias 0."""
        return np.ones(shape) if name.endswith(".weight") else np.zeros(shape)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: any shape (..., width)."""
        require_width(f"layer norm {self.name!r}", x, self.width)
        gain, bias = wide(params[f"{self.name}.weight"]), wide(params[f"{self.name}.bias"])
        rows, y = rows_of(x), np.empty((x.size // self.width, self.width), x.dtype)
        ones = np.ones(self.width, wide(rows[:0]).dtype)  # BLAS sums rows faster than sum() does
        mean = np.empty((len(rows), 1), ones.dtype)
        scale = np.empty_like(mean)

        def compute(part: slice) -> None:
            block = wide(rows[part])
            mean[part, 0] = block @ ones / self.width
            block = block - mean[part]
            variance = np.vecdot(block, block)[:, None] / self.width
            scale[part] = 1 / np.sqrt(variance + self.eps)
            block *= scale[part]
            block *= gain
            block += bias
            y[part] = narrow(block, y.dtype)

        share(compute, pieces(*rows.shape))
        return y.reshape(x.shape), Saved(for_input={"x": x, "mean": mean, "scale": scale})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: with u = (x - mean) · scale, dx = scale (dy w - mean(dy w) - u mean(dy w u))."""
        x, mean, scale = saved.take("x"), saved.take("mean"), saved.take("scale")
        gain = wide(params[f"{self.name}.weight"])
        rows, up = rows_of(x), rows_of(dy)
        dx = np.empty(rows.shape, dy.dtype)

        def compute(part: slice) -> tuple[Array, Array]:
            g, ones = wide(up[part]), np.ones(part.stop - part.start, gain.dtype)
            u = wide(rows[part]) - mean[part]
            u *= scale[part]
            product = g * u
            sums = ones @ product, ones @ g
            u *= (product @ gain / self.width)[:, None]
            u += (g @ gain / self.width)[:, None]
            np.multiply(g, gain, out=product)
            product -= u
            product *= scale[part]
            dx[part] = narrow(product, dx.dtype)
            return sums

        d_gain, d_bias = np.zeros_like(gain), np.zeros_like(gain)
        for more_gain, more_bias in share(compute, pieces(*rows.shape)):
            d_gain += more_gain
            d_bias += more_bias
        dtype = params[f"{self.name}.weight"].dtype
        saved.for_weight = {"weight": narrow(d_gain, dtype), "bias": narrow(d_bias, dtype)}
        return dx.reshape(dy.shape)

    def backward_weight(self, saved: Saved) -> Grads:
        """W: what I computed."""
        return {f"{self.name}.{key}": saved.take_for_weight(key) for key in ("weight", "bias")}


@dataclass(frozen=True)
class RMSNorm(Module):
    """y = x / sqrt(mean(x²) + eps) · w, per row (Zhang & Sennrich 2019).

    Keeps x and one number a row; the gradient of w is computed by I, as in `LayerNorm`.

    Attributes
    ----------
    name : str
        The parameter is ``name.weight`` (width,).
    width : int
    eps : float
    """

    name: str
    width: int
    eps: float = 1e-6

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Gain."""
        return {f"{self.name}.weight": (self.width,)}

    def first_value(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Gain 1."""
        return np.ones(shape)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: any shape (..., width)."""
        require_width(f"RMS norm {self.name!r}", x, self.width)
        gain = wide(params[f"{self.name}.weight"])
        rows, y = rows_of(x), np.empty((x.size // self.width, self.width), x.dtype)
        scale = np.empty((len(rows), 1), wide(rows[:0]).dtype)

        def compute(part: slice) -> None:
            block = wide(rows[part])
            scale[part] = 1 / np.sqrt(np.vecdot(block, block)[:, None] / self.width + self.eps)
            block = block * scale[part]
            block *= gain
            y[part] = narrow(block, y.dtype)

        share(compute, pieces(*rows.shape))
        return y.reshape(x.shape), Saved(for_input={"x": x, "scale": scale})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: with u = x · scale, dx = scale (dy w - u mean(dy w u))."""
        x, scale = saved.take("x"), saved.take("scale")
        gain = wide(params[f"{self.name}.weight"])
        rows, up = rows_of(x), rows_of(dy)
        dx = np.empty(rows.shape, dy.dtype)

        def compute(part: slice) -> Array:
            g, ones = wide(up[part]), np.ones(part.stop - part.start, gain.dtype)
            u = wide(rows[part]) * scale[part]
            product = g * u
            total: Array = ones @ product
            u *= (product @ gain / self.width)[:, None]
            np.multiply(g, gain, out=product)
            product -= u
            product *= scale[part]
            dx[part] = narrow(product, dx.dtype)
            return total

        d_gain = np.zeros_like(gain)
        for more in share(compute, pieces(*rows.shape)):
            d_gain += more
        dtype = params[f"{self.name}.weight"].dtype
        saved.for_weight = {"weight": narrow(d_gain, dtype)}
        return dx.reshape(dy.shape)

    def backward_weight(self, saved: Saved) -> Grads:
        """W: what I computed."""
        return {f"{self.name}.weight": saved.take_for_weight("weight")}
