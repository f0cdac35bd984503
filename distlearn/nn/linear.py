"""The linear layer: nearly all the arithmetic of a transformer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Grads, Params, matmul, narrow, rows_of, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width


@dataclass(frozen=True)
class Linear(Module):
    """y = x Wᵀ + b.

    ==========  ====================  ====================================
    pass        computes              keeps
    ==========  ====================  ====================================
    F           x Wᵀ + b              x, for W
    I           dx = dy W             dy, for W; frees nothing
    W           dW = dyᵀ x, db = Σ dy
    ==========  ====================  ====================================

    Each is one matrix product of 2 · rows · inputs · outputs FLOP.

    Attributes
    ----------
    name : str
        Parameters are ``name.weight`` (outputs, inputs) and ``name.bias`` (outputs,).
    inputs, outputs : int
        Width of x and of y.
    bias : bool
        Whether there is a b.
    deviation : float
        Standard deviation of the first weights.

    Examples
    --------
    >>> layer = Linear("fc", 3, 2)
    >>> params = layer.init(seed=0, dtype=np.float64)
    >>> y, saved = layer.forward(params, np.ones((5, 3)))
    >>> dx = layer.backward_input(params, saved, np.ones((5, 2)))
    >>> grads = layer.backward_weight(saved)
    >>> dx.shape, grads["fc.weight"].shape, grads["fc.bias"]
    ((5, 3), (2, 3), array([5., 5.]))
    """

    name: str
    inputs: int
    outputs: int
    bias: bool = True
    deviation: float = 0.02

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``name.weight`` (outputs, inputs) and, if there is one, ``name.bias`` (outputs,)."""
        shapes: dict[str, tuple[int, ...]] = {f"{self.name}.weight": (self.outputs, self.inputs)}
        if self.bias:
            shapes[f"{self.name}.bias"] = (self.outputs,)
        return shapes

    def first_value(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Normal weights, zero bias."""
        return rng.normal(0.0, self.deviation, shape) if len(shape) == 2 else np.zeros(shape)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (..., inputs) to (..., outputs)."""
        require_width(f"linear layer {self.name!r}", x, self.inputs)
        bias = params[f"{self.name}.bias"] if self.bias else None
        y = matmul(rows_of(x), params[f"{self.name}.weight"].T, bias)
        y = narrow(y, x.dtype).reshape(*x.shape[:-1], self.outputs)
        return y, Saved(for_weight={"x": x})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: dx = dy W."""
        saved.for_weight["dy"] = dy
        dx = matmul(rows_of(dy), params[f"{self.name}.weight"])
        return narrow(dx, dy.dtype).reshape(*dy.shape[:-1], self.inputs)

    def backward_weight(self, saved: Saved) -> Grads:
        """W: dW = dyᵀ x, and db the sum of dy over all rows."""
        dy, x = rows_of(saved.take_for_weight("dy")), rows_of(saved.take_for_weight("x"))
        grads = {f"{self.name}.weight": narrow(matmul(dy.T, x), dy.dtype)}
        if self.bias:
            ones = np.ones(len(dy), wide(dy[:0]).dtype)  # BLAS sums faster, and more exactly
            grads[f"{self.name}.bias"] = narrow(matmul(dy.T, ones), dy.dtype)
        return grads
