"""What each action of a schedule reads of the batch: rows, targets, and its share of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distlearn.nn import Array, Context, Model
from distlearn.pipeline.schedule import Schedule

Key = tuple[int, ...]
"""Stage, microbatch and, if there are slices, slice: an `Action` without its kind."""

CUTS = ("sequence", "batch")


@dataclass(frozen=True)
class Piece:
    """The part of the batch that one forward pass sees.

    Attributes
    ----------
    ids, targets : array of int (samples, tokens)
        Arrays of their own: a view would keep the whole batch alive.
    context : Context
        With its place in the batch, and the weight of its microbatch in ``loss_scale``.
    count : int
        What the sum of its losses is divided by: the targets of the *whole* microbatch.
    """

    ids: Array
    targets: Array
    context: Context
    count: int


@dataclass(frozen=True)
class Pieces:
    """A batch, and the rule by which a schedule cuts it.

    Attributes
    ----------
    ids, targets : array of int (m * samples, tokens)
    m, slices : int
        Microbatches, and slices of each.
    cut : str
        What a slice is: ``sequence`` (some tokens of all samples) or ``batch`` (some samples).
    lengths : tuple of int
        Tokens, or samples, of each slice.
    updates : int
        Optimizer steps that the schedule makes; each takes the mean over m / updates microbatches.
    context : Context
    mean : bool
        Whether the loss is a mean over targets (else their sum).
    ignored : int
        Target that does not count.
    """

    ids: Array
    targets: Array
    m: int
    slices: int
    cut: str
    lengths: tuple[int, ...]
    updates: int
    context: Context
    mean: bool
    ignored: int

    def update_of(self, microbatch: int) -> int:
        """Which optimizer step uses the gradient of a microbatch."""
        return microbatch * self.updates // self.m

    def piece(self, key: Key) -> Piece:
        """The rows and columns of one (stage, microbatch[, slice])."""
        i, part = key[1], key[2] if len(key) > 2 else 0
        size = len(self.ids) // self.m
        rows, columns = slice(i * size, (i + 1) * size), slice(0, self.ids.shape[1])
        count = int((self.targets[rows] != self.ignored).sum()) if self.mean else 1
        start, stop = sum(self.lengths[:part]), sum(self.lengths[:part + 1])
        if self.cut == "batch":
            rows = slice(rows.start + start, rows.start + stop)
        else:
            columns = slice(start, stop)
        weight = self.updates / self.m if self.mean else 1.0
        positions = tuple(range(columns.start, columns.stop)) if self.slices > 1 else None
        context = replace(
            self.context,
            step=self.context.step + self.update_of(i),
            first_sample=self.context.first_sample + rows.start,
            positions=positions,
            loss_scale=self.context.loss_scale * weight,
        )
        return Piece(self.ids[rows, columns].copy(), self.targets[rows, columns].copy(), context,
                     count)


def cut_batch(schedule: Schedule, model: Model, batch: tuple[Array, Array], context: Context,
              cut: str | None, lengths: Sequence[int] | None) -> Pieces:
    """Check that a batch divides as the schedule needs it.

    Raises
    ------
    ValueError
        Naming the size that does not divide, or what slices cannot do.
    """
    ids, targets = (np.asarray(x) for x in batch)
    if ids.ndim != 2 or ids.shape != targets.shape:
        raise ValueError("execute needs a batch (ids, targets) of one shape (samples, tokens); got "
                         f"{ids.shape} and {targets.shape}")
    m, slices = schedule.m, schedule.slices
    if not len(ids) or len(ids) % m:
        raise ValueError(f"a batch of {len(ids)} samples does not divide into the schedule's "
                         f"m={m} microbatches")
    if cut is None:  # Chimera's backward halving cuts a microbatch, TeraPipe and Seq1F1B sequences
        cut = "batch" if schedule.copies else "sequence"
    if cut not in CUTS:
        raise ValueError(f"cut must be one of {', '.join(CUTS)}; got {cut!r}")
    size, what = ((ids.shape[1], "tokens of a sequence") if cut == "sequence"
                  else (len(ids) // m, "samples of a microbatch"))
    if lengths is None:
        if size % slices:
            raise ValueError(f"the {size} {what} do not divide into the schedule's "
                             f"slices={slices}; pass lengths= for unequal ones")
        lengths = (size // slices,) * slices
    lengths = tuple(lengths)
    if (len(lengths) != slices or not all(isinstance(n, int | np.integer) for n in lengths)
            or min(lengths) < 1 or sum(lengths) != size):
        raise ValueError(f"lengths must be slices={slices} whole numbers above 0 that add up to "
                         f"the {size} {what}; got {lengths}")
    config = model.config
    if slices > 1 and config is not None and (
            config.experts or config.dropout or config.attention_dropout):
        raise ValueError("slices of a microbatch need a model without dropout and experts: both "
                         "depend on all tokens of the microbatch at once")
    mean, ignored = model.loss.reduction == "mean", model.loss.ignore_index
    kept = (targets != ignored).reshape(m, -1).sum(1)
    if mean and not kept.all():
        raise ValueError(f"microbatch {int(kept.argmin())} has no target but {ignored}: its mean "
                         "loss is undefined")
    updates = len(schedule.steps[0]) if schedule.steps else 1
    return Pieces(ids, targets, m, slices, cut, lengths, updates, context, mean, ignored)
