"""Activation recomputation: keep a module's input only, and run it again before its backward pass.

Chen et al. 2016; "selective" (the attention core only) is Korthikanti et al. 2022, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, Grads, Params
from distlearn.nn.module import EVALUATION, Context, Module, Saved

POLICIES = ("none", "selective", "full")


@dataclass(frozen=True)
class Recompute(Module):
    """The same module, keeping its input instead of what it would keep.

    Gradients are equal bit for bit: the second forward pass does what the first did, random bits
    included, if it is given the same weights.

    Examples
    --------
    >>> from distlearn.nn import GeluTanh, Linear, Sequential
    >>> layer = Sequential(Linear("fc", 8, 32), GeluTanh(), Linear("out", 32, 8))
    >>> params, x = layer.init(seed=0), np.ones((4, 8), np.float32)
    >>> _, kept = layer.forward(params, x)
    >>> _, less = Recompute(layer).forward(params, x)
    >>> kept.nbytes, less.nbytes
    (1152, 128)
    """

    module: Module

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the module."""
        return self.module.shapes()

    def init(self, seed: int, dtype: DTypeLike = np.float32) -> dict[str, Array]:
        """Those of the module."""
        return self.module.init(seed, dtype)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F, keeping x and the context."""
        y, dropped = self.module.forward(params, x, context)
        return y, Saved(for_input={"x": x}, context=context, extra_loss=dropped.total_extra_loss())

    def recompute(self, params: Params, saved: Saved) -> None:
        """R: the forward pass once more, this time keeping everything."""
        if not saved.parts:
            _, again = self.module.forward(params, saved.take("x"), saved.context or EVALUATION)
            saved.parts, saved.extra_loss = [again], 0.0

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I, after R if nobody has done it."""
        self.recompute(params, saved)
        return self.module.backward_input(params, saved.parts[0], dy)

    def backward_weight(self, saved: Saved) -> Grads:
        """W."""
        return self.module.backward_weight(saved.parts[0])

    def backward(self, params: Params, saved: Saved, dy: Array) -> tuple[Array, Grads]:
        """B, after R if nobody has done it."""
        self.recompute(params, saved)
        return self.module.backward(params, saved.parts[0], dy)
