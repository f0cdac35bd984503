"""Atomics of many threads: what they cost, and what they do one after another."""

from __future__ import annotations

import numpy as np

from distlearn.kernels.atomics import changed, operand
from distlearn.kernels.errors import KernelError
from distlearn.kernels.oracle.arithmetic import narrow, plain
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array

# What numpy can do in order, element by element, in one call.
UFUNCS: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "max": np.maximum,
                               "min": np.minimum, "and_": np.bitwise_and, "or_": np.bitwise_or,
                               "xor": np.bitwise_xor}


def cost(space: Space, element: Array, lanes: Array) -> tuple[int, int]:
    """Requests of warps, and the lanes less one on the most wanted element of each, summed."""
    warps = space.warps[lanes]
    order = np.lexsort((element, warps))
    warp, wanted = warps[order], element[order]
    new_warp = np.r_[True, warp[1:] != warp[:-1]]
    new = np.flatnonzero(new_warp | np.r_[True, wanted[1:] != wanted[:-1]])
    sizes = np.diff(np.r_[new, len(warp)])
    most = np.maximum.reduceat(sizes, np.flatnonzero(new_warp[new]))
    return len(most), int(most.sum()) - len(most)


def apply(line: int, kind: str, store: Array, where: Array, values: list[Array], mask: Mask,
          used: bool) -> tuple[Array | None, int]:
    """Change the elements; gives the old values, and how many were changed (at least)."""
    value = values[0]
    if store.dtype.kind in "fV":  # as numba casts them
        values = [v.astype(store.dtype, copy=False) for v in values]
        value = values[0]
    if _in_one_call(kind, store, where, value):
        if not used:
            before = store[where]
            UFUNCS[kind].at(store, where, value)
            return None, int(np.count_nonzero(store[where] != before))
        if kind == "add" and store.dtype.kind in "iu":
            return _fetch_and_add(store, where, value)
    old = []
    count = 0
    for n, element in enumerate(where.tolist()):
        before = plain(store[element], line)
        try:
            new = changed(kind, before, tuple(operand(store.dtype, plain(v[n]), line)
                                              for v in values))
            if store.dtype.kind in "iu":
                new = narrow(line, store.dtype, int(new))
        except KernelError as error:
            place = mask.space.place(int(mask.index[n]))
            error.block, error.thread = place["block"], place["thread"]
            raise
        store[element] = new
        old.append(before)
        count += bool(store[element] != before)
    return np.array(old), count


def _in_one_call(kind: str, store: Array, where: Array, value: Array) -> bool:
    """Whether numpy rounds as the threads do, and no integer can leave its type on the way."""
    if kind not in UFUNCS:
        return False
    if store.dtype.kind == "f":
        return kind in ("add", "sub") and value.dtype == store.dtype
    if store.dtype.kind not in "iu" or value.dtype.kind not in "iu":
        return False
    limits = np.iinfo(store.dtype)
    if kind not in ("add", "sub"):
        return bool((value >= limits.min).all() and (value <= limits.max).all())
    reach = float(np.abs(value.astype(float)).sum())
    elements = store[where]
    return bool(elements.min() - reach >= limits.min and elements.max() + reach <= limits.max
                and (limits.max < 1 << 62 or reach < 1 << 52))


def _fetch_and_add(store: Array, where: Array, value: Array) -> tuple[Array, int]:
    """Old values: what an element held, and the values that earlier lanes added to it."""
    order = np.argsort(where, kind="stable")
    element, added = where[order], value[order].astype(np.int64)
    new = np.r_[True, element[1:] != element[:-1]]
    before = np.cumsum(added) - added
    first = np.flatnonzero(new)
    before -= np.repeat(before[first], np.diff(np.r_[first, len(order)]))
    old = np.empty(len(order), np.int64)
    old[order] = store[element] + before
    np.add.at(store, where, value.astype(store.dtype))
    return old, int(np.count_nonzero(value))
