"""All-reduce as reduce-scatter and all-gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from distlearn.comm import Communicator
from distlearn.grading.question import Case, Mistake, Question, RankProgram
from distlearn.grading.ranks_answer import OnRanks
from distlearn.grading.sets.ranks.everywhere import everywhere

Array = np.ndarray[Any, Any]


async def _flat(comm: Communicator, x: Array) -> Array:
    full: Array = await comm.all_gather(await comm.reduce_scatter(x.ravel()))
    return full


async def _first_half(comm: Communicator, x: Array) -> Array:
    part: Array = await comm.reduce_scatter(x.ravel())
    return part


async def _second_half(comm: Communicator, x: Array) -> Array:
    full: Array = await comm.all_gather(x.ravel())
    return full


async def _gather_and_add(comm: Communicator, x: Array) -> Array:
    arrays: list[Array] = await comm.all_gather(x, axis=None)
    total: Array = np.sum(arrays, axis=0)
    return total


async def _by_rows(comm: Communicator, x: Array) -> Array:
    full: Array = await comm.all_gather(await comm.reduce_scatter(np.atleast_1d(x)))
    return full.reshape(x.shape)


async def _mean(comm: Communicator, x: Array) -> Array:
    return (await _flat(comm, x) / comm.size).reshape(x.shape)


async def _adds_again(comm: Communicator, x: Array) -> Array:
    return (await _flat(comm, x)).reshape(x.shape) + x


HALVES = Question(
    id="ranks/halves",
    title="All-reduce in two halves",
    function="all_reduce_in_halves",
    parameters=("x",),
    answer=OnRanks(),
    points=3,
    cases=(
        Case(([[1.0, 2.0], [3.0, 4.0]],), everywhere(2, [4.0, 6.0], total=32, most=16)),
        Case(([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]],),
             everywhere(2, [[11.0, 22.0], [33.0, 44.0]], total=64, most=32)),
        Case(([[[1.0, 2.0, 3.0, 4.0]], [[10.0, 20.0, 30.0, 40.0]], [[100.0, 200.0, 300.0, 400.0]],
               [[1000.0, 2000.0, 3000.0, 4000.0]]],),
             everywhere(4, [[1111.0, 2222.0, 3333.0, 4444.0]], total=192, most=48)),
        Case(([1.5, 2.5],), everywhere(2, 4.0, total=16, most=16)),
    ),
    mistakes=(
        Mistake(_flat, "The numbers are right, but they come out flat: give them the shape of x."),
        Mistake(_first_half,
                "This is the part that reduce_scatter leaves on this rank: gather the parts of all "
                "ranks."),
        Mistake(_second_half, "These are the arrays of all ranks one after the other, not added."),
        Mistake(_gather_and_add,
                "The result is right, but each rank gets all whole arrays and adds them itself: "
                "p/2 times as many bytes as needed. Let reduce_scatter do the sum."),
        Mistake(_by_rows,
                "The result is right, but x is cut along its first axis, so ranks get unequal "
                "parts, some of them none. Flatten it first."),
        Mistake(_mean, "This is the mean; the sum is asked for."),
        Mistake(_adds_again, "The rank's own x is in it twice: it is part of the sum already."),
    ),
    program=RankProgram(("reduce_scatter", "all_gather"), each=("x",), arrays=("x",)),
)
