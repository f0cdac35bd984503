"""A saved state as one flat array, to be parked on another rank or in host memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from distlearn.nn import Array, Saved


class View(NamedTuple):
    """Where an array lies: in which buffer, and how."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[np.generic]


@dataclass(frozen=True)
class Packed:
    """A saved state without its bytes: what stays behind to unpack them later.

    Attributes
    ----------
    saved : Saved
        Same tree, no arrays.
    views : tuple of dict of str to View
        Arrays of each node of the tree, first those for I, then those for W.
    sizes : tuple of int
        Bytes of the buffers, one after the other.
    """

    saved: Saved
    views: tuple[dict[str, View], ...]
    sizes: tuple[int, ...]


def pack(saved: Saved) -> tuple[Packed, Array]:
    """Empty a saved state into one array of bytes; a buffer that is shared goes once.

    Examples
    --------
    >>> x = np.arange(6.0)
    >>> packed, data = pack(Saved(for_input={"x": x}, for_weight={"part": x[2:4]}))
    >>> data.nbytes, unpack(packed, data).for_weight["part"]
    (48, array([2., 3.]))
    """
    buffers: dict[int, tuple[int, Array]] = {}
    views: list[dict[str, View]] = []

    def view(x: Array) -> View:
        base = x
        while isinstance(base.base, np.ndarray):
            base = base.base
        index, _ = buffers.setdefault(id(base), (len(buffers), base))
        return View(index, _address(x) - _address(base), x.shape, x.strides, x.dtype)

    def empty(node: Saved) -> Saved:
        views.append({name: view(x) for name, x in node.for_input.items()})
        views.append({name: view(x) for name, x in node.for_weight.items()})
        return replace(node, for_input={}, for_weight={}, parts=[empty(p) for p in node.parts])

    bare = empty(saved)
    raw = [np.frombuffer(base.tobytes("A"), np.uint8) for _, base in buffers.values()]
    data = np.concatenate(raw) if raw else np.empty(0, np.uint8)
    return Packed(bare, tuple(views), tuple(x.nbytes for x in raw)), data


def unpack(packed: Packed, data: Array) -> Saved:
    """The saved state again; each buffer is an array of its own, so that it can be freed alone."""
    ends = np.cumsum(packed.sizes).tolist()
    buffers = [data[end - size : end].copy()
               for end, size in zip(ends, packed.sizes, strict=True)]
    views = iter(packed.views)

    def arrays() -> dict[str, Array]:
        return {name: np.ndarray(v.shape, v.dtype, buffers[v.buffer], v.offset, v.strides)
                for name, v in next(views).items()}

    def fill(node: Saved) -> Saved:
        for_input, for_weight = arrays(), arrays()
        return replace(node, for_input=for_input, for_weight=for_weight,
                       parts=[fill(part) for part in node.parts])

    return fill(packed.saved)


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address
