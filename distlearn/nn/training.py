"""One training step: gradients of a batch in microbatches, clipped, and an update."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distlearn.nn.arrays import Array, Grads, Params
from distlearn.nn.clip import clip_by_norm
from distlearn.nn.model import Model
from distlearn.nn.module import EVALUATION, Context
from distlearn.nn.optimizer import Optimizer, OptimizerState

WEIGHTINGS = ("microbatches", "targets")


@dataclass(frozen=True)
class Step:
    """What one training step did: its loss, and the gradient norm before clipping (or NaN)."""

    loss: float
    norm: float


def accumulate(
    model: Model,
    params: Params,
    ids: Array,
    targets: Array,
    microbatches: int = 1,
    context: Context = EVALUATION,
    weighting: str = "microbatches",
) -> tuple[float, Grads]:
    """Loss and gradients of a batch, computed in microbatches to hold fewer activations.

    Parameters
    ----------
    model : Model
    params : dict of str to array
    ids, targets : array of int (batch, sequence)
    microbatches : int
        Must divide the batch.
    context : Context
        The gradients are those of the loss times its ``loss_scale``.
    weighting : str
        ``microbatches``: the mean of the microbatches' mean losses, as frameworks do. ``targets``:
        each weighted by how many targets it keeps, which is the loss of the batch in one piece.
        They differ where microbatches keep different numbers of targets.

    Returns
    -------
    loss : float
    grads : dict of str to array
        Accumulated in float32 or wider, in the order of the parameters.

    Raises
    ------
    ValueError
        If microbatches do not divide the batch, or for another weighting.

    Examples
    --------
    >>> from distlearn.nn import ModelConfig, build
    >>> model = build(ModelConfig(layers=1, hidden=8, heads=2, vocab=11, seq=4))
    >>> params = model.init(seed=0, dtype=np.float64)
    >>> ids = np.arange(16).reshape(4, 4) % 11
    >>> whole, _ = accumulate(model, params, ids, ids)
    >>> parts, _ = accumulate(model, params, ids, ids, microbatches=4)
    >>> abs(whole - parts) < 1e-12
    True
    """
    if microbatches < 1 or len(ids) % microbatches:
        raise ValueError(f"a batch of {len(ids)} does not divide into {microbatches} microbatches")
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    size = len(ids) // microbatches
    kept = (targets != model.loss.ignore_index).reshape(microbatches, -1).sum(1)
    weights = np.full(microbatches, 1 / microbatches)
    if model.loss.reduction == "sum":
        weights = np.ones(microbatches)
    elif weighting == "targets":
        weights = kept / kept.sum()
    total, sums = 0.0, Grads()
    for index, weight in enumerate(weights.tolist()):
        if weight == 0:
            continue  # no target kept: nothing to learn from
        rows = slice(index * size, (index + 1) * size)
        here = replace(
            context,
            first_sample=context.first_sample + rows.start,
            loss_scale=context.loss_scale * weight,
        )
        loss, grads = model.loss_and_gradients(params, ids[rows], targets[rows], here)
        total += weight * loss
        for name, gradient in grads.items():
            if name in sums:
                sums[name] += gradient
            elif microbatches == 1:
                sums[name] = gradient
            else:
                sums[name] = gradient.astype(np.result_type(gradient, np.float32))
    return total, sums


def train_step(
    model: Model,
    params: dict[str, Array],
    optimizer: Optimizer,
    state: OptimizerState,
    ids: Array,
    targets: Array,
    *,
    microbatches: int = 1,
    max_norm: float | None = None,
    lr: float | None = None,
    context: Context = EVALUATION,
) -> Step:
    """Gradients, clipping, update: ``params`` and ``state`` are changed in place.

    Parameters
    ----------
    microbatches, context
        As in `accumulate`.
    max_norm : float, optional
        Clip to this global norm.
    lr : float, optional
        Learning rate of this step.
    """
    loss, grads = accumulate(model, params, ids, targets, microbatches, context)
    norm = float("nan") if max_norm is None else clip_by_norm(grads, max_norm)
    optimizer.update(params, grads, state, lr)
    return Step(loss, norm)
