"""What the lanes of a warp do together, for all warps at once: shuffles, votes, matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.counters import WARP
from distlearn.kernels.simt.numbers import numeric, truth
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array

if TYPE_CHECKING:
    from distlearn.kernels.simt.frame import Frame

EVERYBODY = 0xffffffff


def check_members(frame: Frame, line: int, what: str, members: Any, mask: Mask) -> None:
    """Refuse masks that leave out a lane that comes there; exited lanes may be named."""
    if isinstance(members, int) and members & EVERYBODY == EVERYBODY:
        return
    space = frame.space
    rows = space.rows(np.asarray(numeric(members)), 0)
    bad = space.mask(threads(space, (rows >> np.arange(WARP) & 1) == 0) & mask.array, False)
    if bad is not None:
        at = int(bad.index[0])
        given = int(np.broadcast_to(numeric(members), space.shape).flat[at])
        error = names.not_a_member(what, given, at % space.threads % WARP, line)
        error.block, error.thread = bad.first["block"], bad.first["thread"]
        raise error


def shuffle(frame: Frame, what: str, a: list[Any], mask: Mask) -> Any:
    """The value of another lane, or the own one where there is none."""
    space = frame.space
    own = space.rows(np.asarray(numeric(a[1])), 0)
    offset, lane = space.rows(np.asarray(numeric(a[2])), 0) % WARP, np.arange(WARP)
    source = {"shfl_sync": offset, "shfl_up_sync": lane - offset,
              "shfl_down_sync": lane + offset, "shfl_xor_sync": lane ^ offset}[what]
    inside = (source >= 0) & (source < WARP)
    source = np.where(inside, source, lane)
    there = np.take_along_axis(mask.rows, source, axis=1)
    return threads(space, np.where(there & inside, np.take_along_axis(own, source, axis=1), own))


def vote(frame: Frame, what: str, a: list[Any], mask: Mask) -> Any:
    """What all active lanes of a warp learn of their tests."""
    space = frame.space
    test = what == "activemask" or truth(space, a[1])
    rows = mask.rows & (test.rows if isinstance(test, Mask) else test)
    if what in ("ballot_sync", "activemask"):
        result: Any = _lanes_mask(rows, what == "ballot_sync")
    elif what == "all_sync":
        result = (rows == mask.rows).all(axis=1, keepdims=True)
    elif what == "eq_sync":
        result = (rows == mask.rows).all(axis=1, keepdims=True) | ~rows.any(axis=1, keepdims=True)
    else:
        result = rows.any(axis=1, keepdims=True)
    made = threads(space, np.broadcast_to(result, rows.shape))
    return space.truth(made, False) if made.dtype.kind == "b" else made


def _lanes_mask(rows: Array, signed: bool) -> Array:
    """A bit for each lane of the last axis; numba's votes are int32: lane 31 is the sign."""
    bit = np.int64(1) << np.arange(WARP)
    if signed:
        bit[-1] *= -1
    mask: Array = (rows * bit).sum(axis=-1, keepdims=True)
    return mask


def match(frame: Frame, what: str, a: list[Any], mask: Mask) -> Any:
    """The lanes with the same value, or all lanes if they all have it."""
    space = frame.space
    values = space.rows(np.asarray(numeric(a[1])), 0)
    alike = (values[:, :, None] == values[:, None, :]) & mask.rows[:, None, :]
    if what == "match_any_sync":
        return threads(space, _lanes_mask(alike, True))
    first = mask.rows.argmax(axis=1)
    all_ = (np.take_along_axis(alike, first[:, None, None], axis=1)[:, 0] == mask.rows).all(
        axis=1, keepdims=True)
    masks = np.where(all_, _lanes_mask(mask.rows, True), 0)
    return (threads(space, np.broadcast_to(masks, mask.rows.shape)),
            space.truth(threads(space, np.broadcast_to(all_, mask.rows.shape)), False))


def threads(space: Space, rows: Array) -> Array:
    """Rows of warps back as an array over the axes."""
    lanes = rows.reshape(space.blocks, -1)[:, :space.threads]
    return np.ascontiguousarray(lanes).reshape(space.shape)
