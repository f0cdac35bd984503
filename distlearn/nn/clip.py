"""Clipping: shorten all gradients together when their common norm is too large."""

from __future__ import annotations

import math

import numpy as np

from distlearn.nn.arrays import Grads, Params, pieces
from distlearn.nn.threads import share


def global_norm(grads: Params, order: float = 2.0) -> float:
    """The p-norm of all gradients seen as one long vector, summed in float64.

    Parameters
    ----------
    grads : dict of str to array
    order : float
        p > 0; infinity for the largest absolute value.

    Raises
    ------
    ValueError
        If ``order`` is not positive.

    Examples
    --------
    >>> global_norm({"a": np.array([3.0]), "b": np.array([4.0])})
    5.0
    """
    if not order > 0:
        raise ValueError(f"order must be > 0; got {order}")
    if math.isinf(order):
        return max((float(np.abs(g).max()) for g in grads.values() if g.size), default=0.0)
    flat = {name: g.reshape(-1) for name, g in grads.items()}

    def compute(run: tuple[str, slice]) -> float:
        piece = flat[run[0]][run[1]].astype(np.float64)
        return float(np.vdot(piece, piece) if order == 2 else (np.abs(piece) ** order).sum())

    runs = [(name, part) for name, g in flat.items() for part in pieces(g.size, 1)]
    sums = dict.fromkeys(flat, 0.0)
    for (name, _), more in zip(runs, share(compute, runs), strict=True):
        sums[name] += more
    return combine_norms([total ** (1 / order) for total in sums.values()], order)


def combine_norms(norms: list[float], order: float = 2.0) -> float:
    """The norm of vectors put end to end, from their norms: (Σ nᵖ)^(1/p).

    What ranks that each hold a part of the gradients must do with their norms.
    """
    if math.isinf(order):
        return max(norms, default=0.0)
    return float(math.fsum(n**order for n in norms) ** (1 / order))


def clip_by_norm(grads: Grads, max_norm: float, order: float = 2.0) -> float:
    """Multiply all gradients, in place, by min(1, max_norm / (norm + 1e-6)): torch's rule.

    Parameters
    ----------
    grads : dict of str to array
        Changed in place.
    max_norm : float
        Must be > 0.
    order : float

    Returns
    -------
    float
        The norm before clipping.

    Raises
    ------
    ValueError
        If ``max_norm`` is not positive.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be > 0; got {max_norm}")
    norm = global_norm(grads, order)
    factor = max_norm / (norm + 1e-6)
    if factor < 1:
        share(lambda gradient: np.multiply(gradient, factor, out=gradient), list(grads.values()))
    return norm
