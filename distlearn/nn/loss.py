"""Losses: cross-entropy of logits, and mean squared error. Each is forward and backward."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, narrow, pieces, rows_of, wide
from distlearn.nn.module import Saved
from distlearn.nn.threads import share

REDUCTIONS = ("mean", "sum")


@dataclass(frozen=True)
class CrossEntropy:
    """-log softmax(logits)[target], over the rows whose target is not ``ignore_index``.

    Keeps exp(logits - max) and the reciprocal of its sum for each row: as many values as logits.

    Attributes
    ----------
    ignore_index : int
        Rows with this target count neither in the sum nor in the mean.
    label_smoothing : float
        Share ε of the target spread evenly over all classes: (1 - ε) of the loss above, and ε
        times the mean over classes.
    reduction : str
        ``mean`` over the rows kept, or ``sum``.

    Examples
    --------
    >>> loss, saved = CrossEntropy().forward(np.zeros((1, 4)), np.array([2]))
    >>> round(loss, 4), CrossEntropy().backward(saved).round(2)
    (1.3863, array([[ 0.25,  0.25, -0.75,  0.25]]))
    """

    ignore_index: int = -100
    label_smoothing: float = 0.0
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ValueError(
                f"reduction must be one of {', '.join(REDUCTIONS)}; got {self.reduction!r}"
            )
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(
                f"label_smoothing must lie between 0 and 1; got {self.label_smoothing}"
            )

    def forward(self, logits: Array, targets: Array) -> tuple[float, Saved]:
        """The loss, summed in float64, and what the backward pass needs.

        Parameters
        ----------
        logits : array (..., classes)
        targets : array of int (...)

        Raises
        ------
        ValueError
            If shapes do not match, a target is no class, or the mean is over no row at all.
        """
        if logits.shape[:-1] != targets.shape:
            raise ValueError(
                f"logits {logits.shape} need targets {logits.shape[:-1]}; got {targets.shape}"
            )
        if not np.issubdtype(targets.dtype, np.integer):
            raise ValueError(f"targets must be classes, of an integer type; got {targets.dtype}")
        rows, classes, flat = rows_of(logits), logits.shape[-1], targets.reshape(-1)
        kept = flat != self.ignore_index
        chosen = flat[kept]
        if chosen.size and not (0 <= chosen.min() and chosen.max() < classes):
            raise ValueError(
                f"targets must be classes 0 to {classes - 1} or ignore_index={self.ignore_index}; "
                f"got {chosen.min()} to {chosen.max()}"
            )
        if self.reduction == "mean" and not chosen.size:
            raise ValueError(
                f"every target is ignore_index={self.ignore_index}: the mean over no row is "
                "undefined (reduction='sum' gives 0)"
            )
        dtype = wide(rows[:0]).dtype
        powers, inverse = np.empty(rows.shape, dtype), np.empty((len(rows), 1), dtype)

        def compute(part: slice) -> float:
            z = wide(rows[part])
            use, target = kept[part], flat[part]
            z = np.subtract(z, z.max(-1, keepdims=True), out=powers[part])
            at_target = z[use, target[use]]
            mean = z.mean(-1)[use] if self.label_smoothing else 0.0
            np.exp(z, out=z)
            sums = z.sum(-1, keepdims=True)
            inverse[part] = 1 / sums
            likely = (1 - self.label_smoothing) * at_target + self.label_smoothing * mean
            return float((np.log(sums[use, 0]) - likely).sum(dtype=np.float64))

        total = math.fsum(share(compute, pieces(*rows.shape)))
        count = chosen.size if self.reduction == "mean" else 1
        saved = Saved(for_input={"powers": powers, "inverse": inverse, "targets": flat})
        saved.sizes = (count, *logits.shape)
        return total / count, saved

    def backward(self, saved: Saved, scale: float = 1.0, dtype: DTypeLike | None = None) -> Array:
        """The gradient of the logits, times ``scale``; written over what was kept.

        Parameters
        ----------
        saved : Saved
        scale : float
            Loss scale, or 1 / microbatches.
        dtype : dtype, optional
            Of the result. Default: that of the computation, float32 or float64.
        """
        d, inverse, targets = (saved.take(name) for name in ("powers", "inverse", "targets"))
        count, *shape = saved.sizes
        kept = targets != self.ignore_index
        factor = np.where(kept, scale / count, 0.0).astype(d.dtype)[:, None]
        even = self.label_smoothing / d.shape[-1]
        inverse *= factor

        def compute(part: slice) -> None:
            d[part] *= inverse[part]
            if even:
                d[part] -= even * factor[part]

        share(compute, pieces(*d.shape))
        rows = np.flatnonzero(kept)
        d[rows, targets[rows]] -= (1 - self.label_smoothing) * factor[rows, 0]
        return narrow(d, d.dtype if dtype is None else dtype).reshape(shape)


@dataclass(frozen=True)
class MeanSquaredError:
    """Mean, over all values, of (output - target)²."""

    def forward(self, output: Array, target: Array) -> tuple[float, Saved]:
        """The loss, and what the backward pass needs.

        Raises
        ------
        ValueError
            If shapes differ.
        """
        if output.shape != target.shape:
            raise ValueError(f"output {output.shape} and target {target.shape} must match")
        error = wide(output) - wide(target)
        total = float(np.vdot(error.astype(np.float64), error.astype(np.float64)))
        return total / error.size, Saved(for_input={"error": error})

    def backward(self, saved: Saved, scale: float = 1.0, dtype: DTypeLike | None = None) -> Array:
        """The gradient of the output, 2 · error / size, times ``scale``."""
        error = saved.take("error")
        d = error * (2 * scale / error.size)
        return narrow(d, d.dtype if dtype is None else dtype)
