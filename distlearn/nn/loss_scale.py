"""Loss scaling: keep float16 gradients above underflow and below overflow.

Small gradients vanish in float16 (below 6e-8). So the loss is multiplied by a scale, the gradients
are divided by it before the update, and a step whose gradients overflowed is skipped
(Micikevicius et al. 2018, section 3.2). Dynamic scaling finds the scale while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distlearn.nn.arrays import Params


@dataclass(frozen=True)
class LossScale:
    """The scale and what its rule remembers; `after_step` gives the next one.

    Attributes
    ----------
    scale : float
        What the loss is multiplied by.
    factor : float
        The scale is multiplied by it after ``window`` good steps, divided by it after overflow.
    backoff : float, optional
        What the scale is multiplied by after overflow. Default: 1 / factor.
    window : int
        Steps without overflow before the scale grows.
    minimum : float
        The scale does not fall below it.
    hysteresis : int
        Overflows that are borne before the scale falls.
    refill_always : bool
        Whether each good step restores the hysteresis (DeepSpeed's ``consecutive_hysteresis``), or
        only growth does.
    raise_at_minimum : bool
        Whether an overflow at the minimum is an error.
    left : int, optional
        Overflows still borne. Default: hysteresis.
    late : bool
        Whether growth waits for one good step more (DeepSpeed).
    good_steps : int
        Steps since the last overflow.

    Examples
    --------
    >>> scale = LossScale.torch(initial=8.0, window=2)
    >>> history = []
    >>> for overflow in (False, False, True):
    ...     scale = scale.after_step(overflow)
    ...     history.append(scale.scale)
    >>> history
    [8.0, 16.0, 8.0]
    """

    scale: float = 65_536.0
    factor: float = 2.0
    backoff: float | None = None
    window: int = 1000
    minimum: float = 0.0
    hysteresis: int = 1
    refill_always: bool = False
    raise_at_minimum: bool = False
    left: int | None = None
    late: bool = False
    good_steps: int = 0

    def __post_init__(self) -> None:
        if not self.scale > 0 or not self.factor > 1 or self.window < 1 or self.hysteresis < 1:
            raise ValueError(
                "loss scaling needs scale > 0, factor > 1, window >= 1, hysteresis >= 1; got "
                f"scale={self.scale}, factor={self.factor}, window={self.window}, "
                f"hysteresis={self.hysteresis}"
            )
        if self.left is None:
            object.__setattr__(self, "left", self.hysteresis)

    @classmethod
    def torch(
        cls, initial: float = 65_536.0, growth: float = 2.0, backoff: float = 0.5,
        window: int = 2000,
    ) -> LossScale:  # fmt: skip
        """``torch.amp.GradScaler``: grow after ``window`` good steps, fall at every overflow."""
        return cls(initial, growth, backoff, window)

    @classmethod
    def deepspeed(
        cls, initial: float = 2.0**32, factor: float = 2.0, window: int = 1000,
        minimum: float = 1.0, hysteresis: int = 1, refill_always: bool = False,
        raise_at_minimum: bool = True,
    ) -> LossScale:  # fmt: skip
        """DeepSpeed's DynamicLossScaler (``delayed_shift`` is ``hysteresis``)."""
        return cls(
            initial, factor, None, window, minimum, hysteresis, refill_always, raise_at_minimum,
            late=True,
        )  # fmt: skip

    def after_step(self, overflow: bool) -> LossScale:
        """The scale for the next step.

        Raises
        ------
        FloatingPointError
            If it overflowed at the minimum and ``raise_at_minimum`` is set.
        """
        assert self.left is not None  # set in __post_init__
        if overflow:
            if self.left > 1:
                return replace(self, left=self.left - 1, good_steps=0)
            if self.raise_at_minimum and self.scale == self.minimum:
                raise FloatingPointError(
                    f"gradients overflow at the smallest loss scale allowed, {self.minimum}"
                )
            smaller = self.scale * (1 / self.factor if self.backoff is None else self.backoff)
            return replace(self, scale=max(smaller, self.minimum), good_steps=0)
        good_steps = self.good_steps + 1
        counted = good_steps - self.late
        grows = counted > 0 and counted % self.window == 0
        return replace(
            self,
            scale=self.scale * self.factor if grows else self.scale,
            good_steps=good_steps,
            left=self.hysteresis if grows or self.refill_always else self.left,
        )


def overflowed(grads: Params) -> bool:
    """Whether any gradient holds an infinity or a NaN.

    Examples
    --------
    >>> overflowed({"w": np.array([1.0, np.inf])})
    True
    """
    return not all(bool(np.isfinite(g).all()) for g in grads.values())
