"""One training step on several ranks: data parallelism, accumulation, loss scaling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from distlearn.comm import Communicator
from distlearn.grading.array_answer import Array
from distlearn.grading.question import Case, Mistake, Question, RankProgram
from distlearn.grading.ranks_answer import OnRanks
from distlearn.grading.sets.ranks.everywhere import everywhere

Weights = np.ndarray[Any, Any]


def _sum(w: Weights, x: Weights, y: Weights) -> Weights:
    """Sum of the gradients of a rank's examples."""
    gradient: Weights = x.T @ (x @ w - y)
    return gradient


async def _alone(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float) -> Weights:
    return w - lr * _sum(w, x, y) / len(y)


async def _mean_of_means(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float
                         ) -> Weights:
    gradient: Weights = await comm.all_reduce(_sum(w, x, y) / len(y), "mean")
    return w - lr * gradient


async def _sum_of_means(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float
                        ) -> Weights:
    gradient: Weights = await comm.all_reduce(_sum(w, x, y) / len(y))
    return w - lr * gradient


async def _sum_of_all(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float
                      ) -> Weights:
    gradient: Weights = await comm.all_reduce(_sum(w, x, y))
    return w - lr * gradient


async def _mean_of_sums(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float
                        ) -> Weights:
    gradient: Weights = await comm.all_reduce(_sum(w, x, y), "mean")
    return w - lr * gradient


async def _own_number(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float
                      ) -> Weights:
    gradient: Weights = await comm.all_reduce(_sum(w, x, y))
    return w - lr * gradient / len(y)


async def _right_times(comm: Communicator, w: Weights, x: Weights, y: Weights, factor: float
                       ) -> Weights:
    both: Weights = await comm.all_reduce(np.append(_sum(w, x, y), len(y)))
    gradient: Weights = factor * both[:-1] / both[-1]
    return gradient


async def _uphill(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float) -> Weights:
    return w + await _right_times(comm, w, x, y, lr)


async def _no_half(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float) -> Weights:
    return w - await _right_times(comm, w, x, y, 2 * lr)


async def _gradient(comm: Communicator, w: Weights, x: Weights, y: Weights, lr: float) -> Weights:
    return await _right_times(comm, w, x, y, 1.0)


STEP = Question(
    id="ranks/step",
    title="A data-parallel step",
    function="training_step",
    parameters=("w", "x", "y", "lr"),
    answer=OnRanks(),
    points=4,
    cases=(
        Case(([0.0], [[[1.0]], [[1.0]]], [[1.0], [3.0]], 1.0), everywhere(2, [2.0])),
        Case(([0.0], [[[1.0], [1.0], [1.0]], [[1.0]]], [[1.0, 1.0, 1.0], [5.0]], 0.5),
             everywhere(2, [1.0])),
        Case(([1.0, -1.0], [[[1.0, 2.0], [3.0, 4.0]]], [[0.0, 0.0]], 0.1),
             everywhere(1, [1.2, -0.7])),
        Case(([1.0, 1.0], [[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]],
              [[0.0], [0.0], [0.0, 0.0]], 1.0), everywhere(3, [-0.75, 0.25])),
    ),
    mistakes=(
        Mistake(_alone, "Each rank follows the gradient of its own examples: the weights drift "
                        "apart. The gradients have to be combined before the update."),
        Mistake(_mean_of_means,
                "This is the mean of the ranks' means, which counts an example of a small rank for "
                "more. Sum the gradients and the numbers of examples, then divide."),
        Mistake(_sum_of_means, "The ranks' mean gradients are added and not averaged."),
        Mistake(_sum_of_all, "This is the sum over all examples; the loss is their mean."),
        Mistake(_mean_of_sums, "Divide by the number of examples, not by the number of ranks."),
        Mistake(_own_number, "Divide by the number of examples on all ranks, not on this one."),
        Mistake(_uphill, "This goes uphill: subtract the gradient."),
        Mistake(_no_half, "Twice the gradient: the loss has a factor 1/2, which takes away the 2."),
        Mistake(_gradient, "This is the gradient; the new weights are asked for."),
    ),
    program=RankProgram(("all_reduce",), each=("x", "y"), arrays=("w", "x", "y")),
)


def _factors(tokens: list[list[int]], factor: Any) -> list[list[float]]:
    """``factor(n, row, d, all)`` of each microbatch."""
    total = sum(map(sum, tokens))
    return [[factor(n, row, len(tokens), total) for n in row] for row in tokens]


ACCUMULATION = Question(
    id="ranks/accumulation",
    title="Gradient accumulation",
    function="loss_factors",
    parameters=("tokens",),
    answer=Array(noun="a list of lists of numbers, as tokens is"),
    points=4,
    cases=(
        Case(([[4, 4], [4, 4]],), [[0.5, 0.5], [0.5, 0.5]]),
        Case(([[3, 1]],), [[0.75, 0.25]]),
        Case(([[6, 2], [1, 3]],), [[1.0, 1 / 3], [1 / 6, 0.5]]),
        Case(([[5], [3]],), [[1.25], [0.75]]),
        Case(([[2, 0], [1, 1]],), [[1.0, 0.0], [0.5, 0.5]]),
    ),
    mistakes=(
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: 1 / len(row)),
                "1/m is right only if all microbatches have equally many tokens: here each token "
                "has to count the same, wherever it is."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: n / total),
                "The all-reduce divides by the number of ranks once more: undo that."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: n / sum(row)),
                "This weighs within each rank only: divide by the tokens of all ranks."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: n / sum(row) / d),
                "This weighs within each rank only: divide by the tokens of all ranks."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: d / total),
                "The loss of a microbatch is divided by its number of tokens already: multiply by "
                "that number."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: n / (d * total)),
                "The mean over the ranks has to be undone: multiply by their number, do not "
                "divide."),
        Mistake(lambda tokens: _factors(
                    tokens, lambda n, row, d, total: n * d * len(row) / total),
                "Gradients of microbatches are added, not averaged: leave out their number."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: total / (n * d)),
                "Upside down: more tokens have to count for more."),
        Mistake(lambda tokens: _factors(tokens, lambda n, row, d, total: 1.0),
                "The losses as they are: then the gradient grows with the number of microbatches."),
    ),
)


def _scales(largest: list[float], scale: float, window: int, *, reset: bool = True, late: int = 0,
            after: bool = False, limit: float = 65504.0, never: bool = False, repeat: bool = True,
            ) -> list[float]:
    """The rule, with one part of it changed."""
    used, good = list[float](), 0
    for value in largest:
        overflow = not value * scale <= limit
        used.append(scale)
        if overflow:
            scale, good = scale / 2, 0 if reset else good
        else:
            good += 1
            if good == window + late or (not repeat and good > window):
                scale, good = scale if never else scale * 2, 0 if repeat else good
    return [*used[1:], scale] if after else used


SCALING = Question(
    id="ranks/scaling",
    title="Loss scaling",
    function="loss_scales",
    parameters=("largest", "scale", "window"),
    answer=Array(noun="a list with one number per step"),
    points=3,
    cases=(
        Case(([1.0, 1.0, 1.0, 1.0], 8.0, 2), [8.0, 8.0, 16.0, 16.0]),
        Case(([10.0, 10.0, 0.5], 65536.0, 100), [65536.0, 32768.0, 16384.0]),
        Case(([1.0, 1.0, 9000.0, 1.0, 1.0, 1.0, 1.0], 8.0, 3),
             [8.0, 8.0, 8.0, 4.0, 4.0, 4.0, 8.0]),
        Case(([math.inf, 1.0, 1.0], 4.0, 1), [4.0, 2.0, 4.0]),
        Case(([1.0, 1.0, 1.0, 1.0, 1.0], 1.0, 2), [1.0, 1.0, 2.0, 2.0, 4.0]),
    ),
    mistakes=(
        Mistake(lambda x, s, w: _scales(x, s, w, reset=False),
                "An overflow starts the count of good steps again: `window` good steps in a row "
                "are needed before the scale grows."),
        Mistake(lambda x, s, w: _scales(x, s, w, after=True),
                "These are the scales after each step; asked for is the scale that each step uses, "
                "and the first uses the one given."),
        Mistake(lambda x, s, w: _scales(x, s, w, late=1),
                "The scale grows after `window` good steps, not after one more."),
        Mistake(lambda x, s, w: _scales(x, s, w, late=-1) if w > 1 else _scales(x, s, w),
                "The scale grows after `window` good steps, not after one fewer."),
        Mistake(lambda x, s, w: _scales(x, s, w, limit=math.inf),
                "A step overflows if its largest gradient times the scale is above 65504; only inf "
                "and nan are found here."),
        Mistake(lambda x, s, w: _scales(x, s, w, never=True),
                "The scale has to grow again after `window` good steps."),
        Mistake(lambda x, s, w: _scales(x, s, w, repeat=False),
                "After the scale has grown the count starts again: `window` more good steps are "
                "needed."),
    ),
    without=("LossScale",),
)
