"""Stochastic gradient descent, with momentum (Polyak 1964) and Nesterov's variant."""

from __future__ import annotations

from dataclasses import dataclass

from distlearn.nn.arrays import Array
from distlearn.nn.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """w ← w - lr · v, with v ← momentum · v + (1 - dampening) · g; v starts as the first g.

    Weight decay is added to the gradient: g + weight_decay · w. Nesterov steps along
    g + momentum · v instead of v.

    Attributes
    ----------
    momentum, dampening : float
    nesterov : bool
        Needs momentum > 0 and dampening = 0.

    Examples
    --------
    >>> import numpy as np
    >>> params, rule = {"w": np.array([1.0])}, SGD(lr=0.1, momentum=0.9)
    >>> state = rule.init(params)
    >>> for _ in range(2):
    ...     rule.update(params, {"w": np.array([1.0])}, state)
    >>> params["w"].round(3)
    array([0.71])
    """

    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum:
            raise ValueError(f"momentum must be >= 0; got {self.momentum}")
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise ValueError(
                "nesterov needs momentum > 0 and dampening = 0; "
                f"got momentum={self.momentum}, dampening={self.dampening}"
            )

    def slot_names(self) -> tuple[str, ...]:
        """``momentum``, if there is any."""
        return ("momentum",) if self.momentum else ()

    def rule(
        self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float, decay: float
    ) -> None:
        """One piece."""
        if decay:
            g = g + decay * w
        if self.momentum:
            velocity = slots["momentum"]
            if step == 1:
                velocity[:] = g
            else:
                velocity *= self.momentum
                velocity += (1 - self.dampening) * g
            g = g + self.momentum * velocity if self.nesterov else velocity
        w -= lr * g
