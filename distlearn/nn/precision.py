"""Mixed precision: 16-bit weights and gradients to compute with, float32 master weights to update.

Per parameter with Adam: 2 bytes of weight and 2 of gradient in 16 bits, 12 of optimiser state
(master weight, mean, square): the 16 bytes of the ZeRO paper (Rajbhandari et al. 2020, section
3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, Grads, Params, narrow
from distlearn.nn.clip import clip_by_norm
from distlearn.nn.loss_scale import LossScale, overflowed
from distlearn.nn.optimizer import Optimizer, OptimizerState


@dataclass(frozen=True)
class StepReport:
    """What one optimiser step did.

    Attributes
    ----------
    skipped : bool
        Because a gradient overflowed.
    norm : float
        Global gradient norm before clipping, unscaled; NaN if the step was skipped or nothing was
        clipped.
    """

    skipped: bool
    norm: float


@dataclass
class MixedPrecision:
    """16-bit parameters beside their float32 masters, an optimiser and a loss scale.

    Attributes
    ----------
    params : dict of str to array
        16-bit weights, for forward and backward.
    master : dict of str to array
        Float32 weights, the ones that are updated.
    optimizer : Optimizer
    state : OptimizerState
    loss_scale : LossScale, optional
        None: the loss is not scaled (bfloat16 has float32's range and needs none).

    Examples
    --------
    >>> from distlearn.nn import SGD
    >>> mixed = MixedPrecision.start({"w": np.ones(1, np.float32)}, SGD(lr=2.0**-10), "bfloat16")
    >>> for _ in range(4):  # 1 - 2^-10 rounds to 1 in bfloat16; the master adds up what is lost
    ...     report = mixed.step({"w": mixed.params["w"]})
    >>> float(mixed.master["w"][0]), float(mixed.params["w"][0])
    (0.9960975646972656, 0.99609375)
    """

    params: dict[str, Array]
    master: dict[str, Array]
    optimizer: Optimizer
    state: OptimizerState
    loss_scale: LossScale | None = None

    @classmethod
    def start(
        cls,
        params: Params,
        optimizer: Optimizer,
        dtype: DTypeLike,
        loss_scale: LossScale | None = None,
    ) -> MixedPrecision:
        """Begin from float32 weights, which are copied.

        Parameters
        ----------
        params : dict of str to array
        optimizer : Optimizer
        dtype : dtype
            ``float16``, ``bfloat16`` (from ml_dtypes), or float32 for none of this.
        loss_scale : LossScale, optional
        """
        master = {name: np.array(value, np.float32) for name, value in params.items()}
        low = {name: narrow(value, dtype) for name, value in master.items()}
        return cls(low, master, optimizer, optimizer.init(master), loss_scale)

    @property
    def scale(self) -> float:
        """What to multiply the loss by now (`Context.loss_scale`)."""
        return 1.0 if self.loss_scale is None else self.loss_scale.scale

    def step(
        self, grads: Params, lr: float | None = None, max_norm: float | None = None
    ) -> StepReport:
        """Unscale, check, clip, update the masters, round them to 16 bits.

        Parameters
        ----------
        grads : dict of str to array
            Of the scaled loss, in 16 bits or accumulated in float32.
        lr : float, optional
        max_norm : float, optional
            Clip to this global norm.
        """
        if overflowed(grads):
            if self.loss_scale is None:
                raise FloatingPointError(
                    "a gradient is infinite or NaN, and there is no loss scale to lower"
                )
            self.loss_scale = self.loss_scale.after_step(overflow=True)
            return StepReport(skipped=True, norm=float("nan"))
        inverse = np.float32(1 / self.scale)
        true: Grads = {name: g.astype(np.float32) * inverse for name, g in grads.items()}
        norm = float("nan") if max_norm is None else clip_by_norm(true, max_norm)
        self.optimizer.update(self.master, true, self.state, lr)
        for name, value in self.master.items():
            self.params[name] = narrow(value, self.params[name].dtype)
        if self.loss_scale is not None:
            self.loss_scale = self.loss_scale.after_step(overflow=False)
        return StepReport(skipped=False, norm=norm)
