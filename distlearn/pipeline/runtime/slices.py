"""Attention over a sequence that comes in slices.

A slice's queries see the keys and values of all earlier slices. In the backward pass, which starts
with the last slice, those keys and values get gradients from all later slices (TeraPipe, section
3.1; Seq1F1B, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distlearn.nn import (
    EVALUATION,
    Array,
    Attention,
    Context,
    Module,
    Params,
    Recompute,
    Saved,
    attention_backward,
    attention_forward,
)
from distlearn.nn.compose import Composite


@dataclass
class Past:
    """What the slices of one sequence tell each other in one attention layer.

    Attributes
    ----------
    inputs : list of array
        [q | k | v] of the slices whose forward is done and whose backward is not. The same arrays
        as their saved states hold, so they take no memory of their own.
    late : tuple of array, optional
        Gradients of the keys and values of these slices, from the slices after them.
    """

    inputs: list[Array] = field(default_factory=list)
    late: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class SlicedAttention(Module):
    """An attention layer that is given one slice after the other.

    It keeps [q | k | v] and no probabilities: the backward pass computes them again, as
    FlashAttention does. So every slice keeps the same number of bytes, although later ones see
    more.
    """

    attention: Attention
    past: Past = field(default_factory=Past)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F of the next slice."""
        self.past.inputs.append(x)
        return self._attend()[0], Saved(for_input={"x": x})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I of the last slice that has not had it."""
        x = saved.take("x")
        if not self.past.inputs or self.past.inputs[-1] is not x:
            raise RuntimeError("the backward pass of a slice came before that of a later one")
        _, kept = self._attend()
        (q, _, _), (keys, values) = self.attention.split(x), self._seen()
        dx = np.empty(x.shape, dy.dtype)
        dq, dk, dv = self.attention.split(dx)
        d_keys, d_values = np.empty(keys.shape, dy.dtype), np.empty(values.shape, dy.dtype)
        attention_backward(q, keys, values, kept, self._heads(dy), dq, d_keys, d_values)
        if self.past.late is not None:
            d_keys += self.past.late[0]
            d_values += self.past.late[1]
        before = keys.shape[2] - x.shape[1]
        dk[...], dv[...] = d_keys[:, :, before:], d_values[:, :, before:]
        self.past.late = ((d_keys[:, :, :before].copy(), d_values[:, :, :before].copy())
                          if before else None)
        self.past.inputs.pop()
        return dx

    def _attend(self) -> tuple[Array, dict[str, Array]]:
        """Output and probabilities of the newest slice's queries."""
        x, (keys, values) = self.past.inputs[-1], self._seen()
        width = self.attention.heads * self.attention.head_dim
        y = np.empty((*x.shape[:2], width), x.dtype)
        kept = attention_forward(self.attention.split(x)[0], keys, values, self._heads(y))
        return y, kept

    def _seen(self) -> tuple[Array, Array]:
        """Keys and values of all slices so far: (batch, kv_heads, tokens, head_dim)."""
        _, keys, values = zip(*map(self.attention.split, self.past.inputs), strict=True)
        return np.concatenate(keys, axis=2), np.concatenate(values, axis=2)

    def _heads(self, x: Array) -> Array:
        a = self.attention
        return x.reshape(*x.shape[:2], a.heads, a.head_dim).swapaxes(1, 2)


def sliced(module: Module) -> Module:
    """The same module for the slices of one sequence: its attention layers share a `Past`.

    Raises
    ------
    ValueError
        If an attention layer is not causal (a slice would need later ones), or is recomputed (its
        forward would run again after later slices have been there).
    """
    if isinstance(module, Attention):
        if not module.causal:
            raise ValueError(f"slices of a sequence need causal attention; {module.name!r} is not")
        return SlicedAttention(module)
    if isinstance(module, Recompute):
        raise ValueError("slices of a sequence need a model without recomputation inside")
    if isinstance(module, Composite):
        return type(module)(*map(sliced, module))
    return module
