"""Adam (Kingma & Ba 2015), AMSGrad (Reddi et al. 2018) and AdamW (Loshchilov & Hutter 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array
from distlearn.nn.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """w ← w - lr · m̂ / (√v̂ + eps), where m and v are running means of g and g².

    m̂ = m / (1 - β1^step) and v̂ = v / (1 - β2^step) undo the start at 0. Weight decay is added to
    the gradient, and so is divided by √v̂ as well; `AdamW` keeps the two apart.

    Attributes
    ----------
    betas : tuple of float
        β1, β2: how slowly the means forget; 0 <= β < 1.
    eps : float
    amsgrad : bool
        Divide by the largest v so far.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    amsgrad: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must lie in [0, 1); got {self.betas}")

    def slot_names(self) -> tuple[str, ...]:
        """``mean``, ``square`` and, for AMSGrad, ``largest_square``."""
        return ("mean", "square", "largest_square") if self.amsgrad else ("mean", "square")

    def rule(
        self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float, decay: float
    ) -> None:
        """One piece."""
        if decay:
            g = g + decay * w
        self.adapt(w, g, slots, step, lr)

    def adapt(self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float) -> None:
        """Adam's own update."""
        beta1, beta2 = self.betas
        mean, square = slots["mean"], slots["square"]
        mean += (g - mean) * (1 - beta1)
        square *= beta2
        change = g * g
        change *= 1 - beta2
        square += change
        if self.amsgrad:
            square = np.maximum(slots["largest_square"], square, out=slots["largest_square"])
        np.sqrt(square, out=change)
        change *= 1 / math.sqrt(1 - beta2**step)
        change += self.eps
        np.divide(mean, change, out=change)
        change *= lr / (1 - beta1**step)
        w -= change


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam with decoupled weight decay: w ← w · (1 - lr · weight_decay) before Adam's update.

    Examples
    --------
    >>> params, rule = {"w": np.array([1.0])}, AdamW(lr=0.1, weight_decay=0.5)
    >>> rule.update(params, {"w": np.array([3.0])}, rule.init(params))
    >>> params["w"].round(6)
    array([0.85])
    """

    weight_decay: float = 0.01

    def rule(
        self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float, decay: float
    ) -> None:
        """One piece."""
        if decay:
            w *= 1 - lr * decay
        self.adapt(w, g, slots, step, lr)
