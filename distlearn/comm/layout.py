"""What a collective does with the arrays of one particular call: chunk sizes and result shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.comm.algorithms import NATIVE, choose, plan
from distlearn.comm.call import Call, Shape, check_agreement
from distlearn.comm.moves import Moves, Traffic, bind, traffic
from distlearn.comm.plans import Plan, even_split

Array = NDArray[Any]
Shapes = tuple[Shape, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything that is known about a collective once all ranks have called it.

    Attributes
    ----------
    plan : Plan
    sizes : tuple of int
        Elements of each chunk.
    moves : Moves
    traffic : tuple of Traffic
        Per rank, in bytes and messages.
    dtype : numpy.dtype
    results : tuple
        Per rank: None, or the shape of its result; if ``lists``, the shapes of its results.
    lists : bool
    divisor : int
        What the result is divided by: the number of ranks for a mean, else 1.
    """

    plan: Plan
    sizes: tuple[int, ...]
    moves: Moves
    traffic: tuple[Traffic, ...]
    dtype: np.dtype[Any]
    results: tuple[Any, ...]
    lists: bool
    divisor: int = 1

    def finish(self, works: Sequence[Array], first: int = 0) -> list[Any]:
        """Make results of work buffers: arrays of their own, lists of arrays, or None.

        ``works`` are the buffers of rank ``first`` and those after it.
        """
        results: list[Any] = []
        for work, span, shape in zip(works, self.moves.results[first:], self.results[first:],
                                     strict=False):
            if shape is None:
                results.append(None)
                continue
            if span.stop - span.start < work.size:  # do not keep the whole work buffer alive
                work = work[span.start:span.stop].copy()
            if self.divisor > 1:
                np.true_divide(work, self.dtype.type(self.divisor), out=work)
            results.append(_cut(work, shape) if self.lists else work.reshape(shape))
        return results


def _cut(flat: Array, shapes: Shapes) -> list[Array]:
    """Arrays of these shapes that lie one after the other."""
    stops = accumulate(map(prod, shapes))
    return [flat[stop - prod(shape):stop].reshape(shape)
            for shape, stop in zip(shapes, stops, strict=True)]


def layout(calls: tuple[Call, ...], nodes: tuple[int, ...]) -> Layout:
    """Check the calls of all ranks of a group against each other and lay the operation out.

    Parameters
    ----------
    calls : tuple of Call
        One per rank of the group.
    nodes : tuple of int
        Node of each rank, for the hierarchical algorithm.

    Raises
    ------
    DisagreementError
        If the calls do not fit together.
    ValueError
        If the algorithm does not do this operation.

    Notes
    -----
    Layouts are kept: a training loop asks for the same few again and again.
    """
    if calls.count(calls[0]) == len(calls):
        return _same(calls[0], nodes)
    return _layout(calls, nodes)


@lru_cache(maxsize=256)
def _same(call: Call, nodes: tuple[int, ...]) -> Layout:
    """All ranks ask for the same; a key that is quick to look up."""
    return _layout((call,) * len(nodes), nodes)


@lru_cache(maxsize=256)
def _layout(calls: tuple[Call, ...], nodes: tuple[int, ...]) -> Layout:
    check_agreement(calls)
    call, p = calls[0], len(calls)
    root = call.root or 0
    main = calls[root]  # who brings the shapes that matter
    dtype = next((c.dtype for c in calls if c.dtype is not None), np.dtype(np.uint8))
    elements = [sum(map(prod, c.shapes)) for c in calls]
    whole = sum(elements) if call.operation in ("all_gather", "gather") else elements[root]
    algorithm = call.algorithm
    if algorithm in ("auto", NATIVE):
        algorithm = choose(call.operation, whole * dtype.itemsize)
    made = plan(call.operation, algorithm, p, root,
                nodes if algorithm == "hierarchical" else None)
    sizes = _sizes(calls, main, made, whole)
    moves = bind(made, sizes)
    return Layout(
        plan=made,
        sizes=sizes,
        moves=moves,
        traffic=tuple(Traffic(t.sent * dtype.itemsize, t.received * dtype.itemsize, t.messages)
                      for t in traffic(moves)),
        dtype=dtype,
        results=tuple(_result(calls, main, rank) for rank in range(p)),
        lists=call.axis is None and call.operation in ("all_gather", "gather", "all_to_all"),
        divisor=p if call.reduction == "mean" else 1,
    )


def _sizes(calls: tuple[Call, ...], main: Call, made: Plan, whole: int) -> tuple[int, ...]:
    """Elements of each chunk of the plan."""
    operation = made.operation
    if operation == "barrier":
        return ()
    if operation in ("all_gather", "gather"):
        return tuple(prod(call.shapes[0]) for call in calls)
    if operation == "scatter":
        return tuple(map(prod, main.shapes))
    if operation == "all_to_all":
        return tuple(prod(shape) for call in calls for shape in call.shapes)
    if operation == "reduce_scatter":
        assert main.counts is not None
        inner = prod(main.shapes[0][1:])
        return tuple(count * inner for count in main.counts)
    return even_split(whole, made.chunks)


def _result(calls: tuple[Call, ...], main: Call, rank: int) -> Shape | Shapes | None:
    """Shape of a rank's result, the shapes for a list of results, or None."""
    operation, axis = main.operation, main.axis
    if operation == "barrier" or (operation in ("reduce", "gather") and rank != main.root):
        return None
    if operation == "scatter":
        return main.shapes[rank]
    if operation == "reduce_scatter":
        assert main.counts is not None
        return (main.counts[rank], *main.shapes[0][1:])
    if operation in ("all_gather", "gather"):
        shapes = tuple(call.shapes[0] for call in calls)
    elif operation == "all_to_all":
        shapes = tuple(call.shapes[rank] for call in calls)
    else:
        return main.shapes[0]
    if axis is None:
        return shapes
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])
