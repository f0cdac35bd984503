"""Scaled dot-product attention: multi-head, grouped-query, causal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Params, matmul, narrow, pieces, wide
from distlearn.nn.dropout import Dropout, Shard
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width
from distlearn.nn.threads import share

ROWS = 64  # query rows computed at once: their scores stay in cache

Part = tuple[slice, slice]
"""Samples, and heads of keys with the query heads they serve."""


@dataclass(frozen=True)
class Attention(Module):
    """softmax(q kᵀ / √head_dim) v for each head, of an input that holds [q | k | v].

    Keeps the input and the probabilities (and, with dropout, the mask and the probabilities after
    it), all for I: a batch·heads·sequence² of values, which selective recomputation drops.

    Attributes
    ----------
    name : str
        Names the dropout.
    heads, kv_heads : int
        Query heads; key and value heads, each serving heads / kv_heads query heads.
    head_dim : int
        The input is (heads + 2 · kv_heads) · head_dim wide, the output heads · head_dim.
    causal : bool
        Whether a query sees only keys up to its own place.
    dropout : float
        Share of the probabilities set to 0 in training.
    shards : tuple of (axis, first index, full length)
        If this rank holds part of the heads (axis 1): see `Dropout`.
    """

    name: str
    heads: int
    kv_heads: int
    head_dim: int
    causal: bool = True
    dropout: float = 0.0
    shards: tuple[Shard, ...] = ()

    def __post_init__(self) -> None:
        if self.kv_heads < 1 or self.heads % self.kv_heads:
            raise ValueError(
                f"attention {self.name!r} needs heads to be a multiple of kv_heads; "
                f"got heads={self.heads}, kv_heads={self.kv_heads}"
            )

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (batch, sequence, [q | k | v]) to (batch, sequence, heads · head_dim)."""
        require_width(
            f"attention {self.name!r}", x, (self.heads + 2 * self.kv_heads) * self.head_dim
        )
        q, k, v = self.split(x)
        drop = Dropout(self.name, self.dropout, self.shards)
        mask = drop.mask((*q.shape[:3], k.shape[2]), context)
        y = np.empty((*x.shape[:2], self.heads * self.head_dim), x.dtype)
        kept = attention_forward(
            q, k, v, self._heads(y, self.heads), causal=self.causal, drop=drop, mask=mask
        )
        return y, Saved(for_input={"x": x, **kept})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: [dq | dk | dv]."""
        x = saved.take("x")
        kept = {name: saved.take(name) for name in tuple(saved.for_input)}
        dx = np.empty(x.shape, dy.dtype)
        attention_backward(
            *self.split(x), kept, self._heads(dy, self.heads), *self.split(dx),
            causal=self.causal, drop=Dropout(self.name, self.dropout, self.shards),
        )  # fmt: skip
        return dx

    def split(self, x: Array) -> tuple[Array, Array, Array]:
        """Views of the queries, keys and values, each (batch, heads, sequence, head_dim)."""
        cut = self.heads * self.head_dim, (self.heads + self.kv_heads) * self.head_dim
        return (
            self._heads(x[..., : cut[0]], self.heads),
            self._heads(x[..., cut[0] : cut[1]], self.kv_heads),
            self._heads(x[..., cut[1] :], self.kv_heads),
        )

    def _heads(self, x: Array, heads: int) -> Array:
        """(batch, sequence, heads · head_dim) seen as (batch, heads, sequence, head_dim)."""
        return x.reshape(*x.shape[:2], heads, self.head_dim).swapaxes(1, 2)


def attention_forward(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    *,
    causal: bool = True,
    drop: Dropout | None = None,
    mask: Array | None = None,
) -> dict[str, Array]:
    """Write softmax(q kᵀ / √head_dim) v into ``out``; return what the backward pass needs.

    Parameters
    ----------
    q, out : array (batch, heads, queries, head_dim)
    k, v : array (batch, kv_heads, keys, head_dim)
    causal : bool
        Whether query i sees only keys up to i + keys - queries: the last query sees all.
    drop, mask
        Dropout of the probabilities, and the mask it drew.

    Returns
    -------
    dict
        ``probabilities`` (batch, heads, queries, keys); with a mask also ``mask`` and ``dropped``,
        the probabilities after dropout.

    Raises
    ------
    ValueError
        If it is causal with more queries than keys: the first would see no key.
    """
    p = np.zeros((*q.shape[:3], k.shape[2]), q.dtype)
    dropped = p if mask is None else np.zeros_like(p)
    q_, out_, p_, dropped_ = (_grouped(x, k.shape[1]) for x in (q, out, p, dropped))
    scale, blocks = 1 / math.sqrt(q.shape[-1]), _blocks(q.shape[2], k.shape[2], causal)
    beyond = np.triu(np.full((ROWS, ROWS), -np.inf, wide(q[:0]).dtype), k=1)
    hidden = None if mask is None else _grouped(mask, k.shape[1])

    def compute(part: Part) -> None:
        keys, values = (wide(x[part])[:, :, None] for x in (k, v))
        for rows, seen in blocks:
            here = (*part, slice(None), rows)
            s = matmul(wide(q_[here]) * scale, keys[..., :seen, :].swapaxes(-1, -2))
            if causal:  # of the last keys seen, those above the diagonal lie beyond the query
                last = rows.stop - rows.start
                s[..., seen - last :] += beyond[:last, :last]
            softmax(s, out=s)
            p_[here][..., :seen] = narrow(s, p.dtype)
            if drop is not None and hidden is not None:
                s = drop.apply(s, hidden[here][..., :seen])
                dropped_[here][..., :seen] = narrow(s, p.dtype)
            out_[here] = narrow(matmul(s, values[..., :seen, :]), out.dtype)

    share(compute, _parts(q_, k))
    return {"probabilities": p} if mask is None else {
        "probabilities": p, "dropped": dropped, "mask": mask
    }  # fmt: skip


def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    kept: dict[str, Array],
    d_out: Array,
    dq: Array,
    dk: Array,
    dv: Array,
    *,
    causal: bool = True,
    drop: Dropout | None = None,
) -> None:
    """Write the gradients of q, k and v into ``dq``, ``dk`` and ``dv``.

    With P the probabilities and P' the same after dropout: dv = P'ᵀ d_out, and with
    dP = d_out vᵀ (through dropout), dS = P (dP - Σ dP P): dq = dS k / √d and dk = dSᵀ q / √d.
    """
    heads = k.shape[1]
    q_, d_out_, dq_, p_, dropped_ = (
        _grouped(x, heads)
        for x in (q, d_out, dq, kept["probabilities"], kept.get("dropped", kept["probabilities"]))
    )
    mask = _grouped(kept["mask"], heads) if "mask" in kept else None
    scale, blocks = 1 / math.sqrt(q.shape[-1]), _blocks(q.shape[2], k.shape[2], causal)

    def compute(part: Part) -> None:
        keys, values = (wide(x[part])[:, :, None] for x in (k, v))
        keys_grad, values_grad = np.zeros_like(keys[:, :, 0]), np.zeros_like(values[:, :, 0])
        for rows, seen in blocks:
            here = (*part, slice(None), rows)
            g, p = wide(d_out_[here]), wide(p_[here][..., :seen])
            after = wide(dropped_[here][..., :seen]).swapaxes(-1, -2)
            values_grad[:, :, :seen] += matmul(after, g).sum(2)
            ds = matmul(g, values[..., :seen, :].swapaxes(-1, -2))
            if drop is not None and mask is not None:
                ds = drop.apply(ds, mask[here][..., :seen])
            ds -= np.vecdot(ds, p)[..., None]
            ds *= p
            dq_[here] = narrow(matmul(ds, keys[..., :seen, :]) * scale, dq.dtype)
            queries = wide(q_[here]) * scale
            keys_grad[:, :, :seen] += matmul(ds.swapaxes(-1, -2), queries).sum(2)
        dk[part], dv[part] = narrow(keys_grad, dk.dtype), narrow(values_grad, dv.dtype)

    share(compute, _parts(q_, k))


def softmax(x: Array, out: Array | None = None) -> Array:
    """exp(x) / Σ exp(x) along the last axis, with the largest value taken off first.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    y: Array = np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(y, out=y)
    y *= 1 / (y @ np.ones(y.shape[-1], y.dtype))[..., None]  # BLAS sums faster than sum() does
    return y


def softmax_backward(y: Array, dy: Array) -> Array:
    """Gradient through softmax from its output: y (dy - Σ dy y)."""
    dx: Array = y * (dy - np.vecdot(dy, y)[..., None])
    return dx


def _grouped(x: Array, kv_heads: int) -> Array:
    """(batch, heads, ...) seen as (batch, kv_heads, heads of the group, ...)."""
    return x.reshape(x.shape[0], kv_heads, x.shape[1] // kv_heads, *x.shape[2:])


def _parts(q_: Array, k: Array) -> list[Part]:
    """Samples and heads to compute at once: as many as keep the scores of a block in cache."""
    batch, heads, size = *q_.shape[:2], q_.shape[2] * min(ROWS, q_.shape[3]) * k.shape[2]
    return [
        (samples, some) for samples in pieces(batch, heads * size) for some in pieces(heads, size)
    ]


def _blocks(queries: int, keys: int, causal: bool) -> list[tuple[slice, int]]:
    """Runs of query rows, and how many keys the last row of each sees."""
    if causal and queries > keys:
        raise ValueError(
            f"causal attention needs at least as many keys as queries; got {queries} queries, "
            f"{keys} keys"
        )
    ends = [(start, min(start + ROWS, queries)) for start in range(0, queries, ROWS)]
    return [(slice(a, b), keys - queries + b if causal else keys) for a, b in ends]
