"""Embeddings: a row of a table for each token, and for each place in the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Grads, Params, narrow, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved


@dataclass(frozen=True)
class TokenEmbedding(Module):
    """y = W[ids]. Keeps the ids for W; ids have no gradient, I returns zeros.

    Attributes
    ----------
    name : str
        The parameter is ``name.weight`` (vocab, width). A head of the same name shares it (tied
        weights); its gradient is then the sum of both.
    vocab, width : int
    """

    name: str
    vocab: int
    width: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The table."""
        return {f"{self.name}.weight": (self.vocab, self.width)}

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: ids of any shape to (..., width).

        Raises
        ------
        ValueError
            For ids that are not whole numbers from 0 to vocab - 1.
        """
        if not np.issubdtype(x.dtype, np.integer):
            raise ValueError(f"embedding {self.name!r} needs ids of an integer type; got {x.dtype}")
        if x.size and not (0 <= x.min() and x.max() < self.vocab):
            raise ValueError(
                f"embedding {self.name!r} needs 0 <= id < vocab={self.vocab}; "
                f"got ids from {x.min()} to {x.max()}"
            )
        return params[f"{self.name}.weight"][x], Saved(for_weight={"ids": x})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: keeps dy for W."""
        saved.for_weight["dy"] = dy
        return np.zeros(dy.shape[:-1], dy.dtype)

    def backward_weight(self, saved: Saved) -> Grads:
        """W: each row of dy is added to the row of its id."""
        dy, ids = saved.take_for_weight("dy"), saved.take_for_weight("ids")
        rows = wide(dy).reshape(-1, self.width)
        grad = np.zeros((self.vocab, self.width), rows.dtype)
        if len(rows):
            order = np.argsort(ids, axis=None, kind="stable")
            present, first = np.unique(ids.reshape(-1)[order], return_index=True)
            grad[present] = np.add.reduceat(rows[order], first, axis=0)
        return {f"{self.name}.weight": narrow(grad, dy.dtype)}


@dataclass(frozen=True)
class PositionEmbedding(Module):
    """y = x + W[position]: learned positions, as in GPT-2.

    Attributes
    ----------
    name : str
        The parameter is ``name.weight`` (seq, width).
    seq, width : int
        Longest sequence; width of x.
    """

    name: str
    seq: int
    width: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The table."""
        return {f"{self.name}.weight": (self.seq, self.width)}

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (batch, sequence, width).

        Raises
        ------
        ValueError
            If a position lies beyond the table, or their number is not the sequence's length.
        """
        positions = context.positions or tuple(range(x.shape[1]))
        if len(positions) != x.shape[1] or max(positions, default=0) >= self.seq:
            raise ValueError(
                f"embedding {self.name!r} needs {x.shape[1]} positions below seq={self.seq}; "
                f"got {len(positions)}, up to {max(positions)}"
            )
        rows = wide(params[f"{self.name}.weight"])[list(positions)]
        return narrow(wide(x) + rows, x.dtype), Saved(sizes=positions)

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: dy passes; its sum over the batch, a row a position, is kept for W."""
        saved.for_weight["sum"] = narrow(wide(dy).sum(0), dy.dtype)
        return dy

    def backward_weight(self, saved: Saved) -> Grads:
        """W: the sums, at their positions; rows of other positions are 0."""
        total = saved.take_for_weight("sum")
        grad = np.zeros((self.seq, self.width), total.dtype)
        grad[list(saved.sizes)] = total
        return {f"{self.name}.weight": grad}
