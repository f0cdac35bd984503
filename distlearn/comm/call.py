"""What one rank asks for when it calls a collective, and whether all ranks ask for the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Call(NamedTuple):
    """One rank's side of a collective: everything but the data.

    Attributes
    ----------
    operation, algorithm : str
    dtype : numpy.dtype or None
        None where the rank brings no array (a broadcast on other ranks than the root).
    shapes : tuple of shapes
        Of the arrays it brings: none, one, or one per destination (scatter, all_to_all).
    reduction : str or None
        ``"sum"``, ``"mean"``, ``"max"``, ``"min"``, ``"prod"``.
    root : int or None
    axis : int or None
        Axis along which parts are joined; None where they stay a list.
    counts : tuple of int or None
        Lengths along the axis that each rank gets (reduce_scatter).
    color, key : int or None
        Of split.
    """

    operation: str
    algorithm: str = "auto"
    dtype: np.dtype[Any] | None = None
    shapes: tuple[Shape, ...] = ()
    reduction: str | None = None
    root: int | None = None
    axis: int | None = None
    counts: tuple[int, ...] | None = None
    color: int | None = None
    key: int | None = None

    def __str__(self) -> str:
        """As one would write it: ``all_reduce(float32 (4, 2), op='sum')``."""
        words = [array_text(self.dtype, shape) for shape in self.shapes[:3]]
        if len(self.shapes) > 3:
            words.append(f"... {len(self.shapes)} arrays")
        named = {"op": self.reduction, "root": self.root, "counts": self.counts,
                 "color": self.color, "key": self.key}
        words += [f"{name}={value!r}" for name, value in named.items() if value is not None]
        if self.operation in ("all_gather", "gather", "all_to_all") or self.axis:
            words.append(f"axis={self.axis}")
        if self.algorithm != "auto":
            words.append(f"algorithm={self.algorithm!r}")
        return f"{self.operation}({', '.join(words)})"


def array_text(dtype: np.dtype[Any] | None, shape: Shape) -> str:
    """``float32 (4, 2)``."""
    return f"{dtype} {shape}"


class DisagreementError(ValueError):
    """Ranks of a group ask for things that do not fit together (becomes a `MismatchError`)."""


# These may differ from rank to rank; `_check_shapes` says how far.
_FREE = {"shapes", "color", "key"}


def check_agreement(calls: Sequence[Call], ranks: Sequence[int] | None = None) -> None:
    """Check that all ranks call the same collective with arguments that fit together.

    Parameters
    ----------
    calls : sequence of Call
    ranks : sequence of int, optional
        What the error calls the ranks; default 0, 1, ...

    Raises
    ------
    DisagreementError
        Naming the argument that differs and who has which value.
    """
    names = range(len(calls)) if ranks is None else ranks
    for name in Call._fields:
        if name in _FREE:
            continue
        values = [(r, getattr(call, name)) for r, call in zip(names, calls, strict=True)
                  if not (name == "dtype" and call.dtype is None)]
        if len({value for _, value in values}) > 1:
            raise DisagreementError(_who_has_what(name, values))
    _check_shapes(calls, names)


def _check_shapes(calls: Sequence[Call], names: Sequence[int]) -> None:
    operation, axis = calls[0].operation, calls[0].axis
    shapes = [(r, call.shapes[0]) for r, call in zip(names, calls, strict=True) if call.shapes]
    if operation in ("all_gather", "gather"):
        if axis is None:
            return
        shapes = [(r, shape[1:]) for r, shape in shapes]  # the joined axis comes first
        name = "shape apart from the joined axis"
    elif operation == "all_to_all":
        if axis is None:
            return
        shapes = [(r, shape[1:]) for r, shape in shapes]
        name = "shape apart from the first axis"
    elif operation == "scatter":
        return  # the root's shapes are the only ones
    else:
        name = "shape"
    if len({shape for _, shape in shapes}) > 1:
        raise DisagreementError(_who_has_what(name, shapes))


def _who_has_what(name: str, values: list[tuple[int, Any]]) -> str:
    """``shape differs: (4,) on ranks 0, 1; (5,) on rank 2``."""
    ranks: dict[Any, list[int]] = {}
    for rank, value in values:
        ranks.setdefault(value, []).append(rank)
    parts = [f"{value} on rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}"
             for value, who in ranks.items()]
    return f"{name} differs: {'; '.join(parts)}"
