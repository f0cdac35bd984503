"""Adagrad (Duchi et al. 2011): each weight's rate falls with the gradients it has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array
from distlearn.nn.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimizer):
    """w ← w - lr' · g / (√s + eps), with s the sum of all g² and lr' = lr / (1 + (step-1) · lr_decay).

    Weight decay is added to the gradient.

    Attributes
    ----------
    lr_decay : float
    eps : float
    initial_sum : float
        First value of s.
    """  # noqa: E501 - the formula in one line

    lr: float = 1e-2
    lr_decay: float = 0.0
    eps: float = 1e-10
    initial_sum: float = 0.0

    def slot_names(self) -> tuple[str, ...]:
        """``sum`` of squared gradients."""
        return ("sum",)

    def first_slot(self, name: str, parameter: Array) -> Array:
        """``initial_sum`` everywhere."""
        return np.full_like(parameter, self.initial_sum)

    def rule(
        self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float, decay: float
    ) -> None:
        """One piece."""
        if decay:
            g = g + decay * w
        total = slots["sum"]
        total += g * g
        w -= lr / (1 + (step - 1) * self.lr_decay) * g / (np.sqrt(total) + self.eps)
