"""Hidden cases of the ranks exercises. Never handed out: the grader alone calls with these.

The wanted values are worked out here without the package's own code, each by a definition or by
moving things about one by one, rather than by the short rule that is asked for;
`test_references_ranks.py` compares them with distlearn's communicators, formulas and models.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from distlearn.grading import Case


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    return {
        "ranks/ring": [Case((x,), ring(x)) for x in ring_inputs()],
        "ranks/halves": [Case((x,), halves(x)) for x in halves_inputs()],
        "ranks/bytes": [Case(sizes, sent(*sizes)) for sizes in BYTES],
        "ranks/crossover": [Case(sizes, crossover(*sizes)) for sizes in CROSSOVER],
        "ranks/groups": [Case((x, k), two_levels(x, k)) for x, k in groups_inputs()],
        "ranks/step": [Case(case, step(*case)) for case in step_inputs()],
        "ranks/accumulation": [Case((tokens,), factors(tokens)) for tokens in TOKENS],
        "ranks/scaling": [Case(case, scales(*case)) for case in SCALING],
    }


# -- arrays on ranks -------------------------------------------------------------------------------


def _numbers(dice: random.Random, *shape: int) -> Any:
    if not shape:
        return dice.randint(-40, 40) / 8
    return [_numbers(dice, *shape[1:]) for _ in range(shape[0])]


def _sum(arrays: list[Any]) -> Any:
    if isinstance(arrays[0], list):
        return [_sum(list(items)) for items in zip(*arrays, strict=True)]
    return math.fsum(arrays)


def _size(array: Any) -> int:
    return sum(map(_size, array)) if isinstance(array, list) else 1


def ring_inputs() -> list[Any]:
    """One array a rank: odd sizes, fewer elements than ranks, one rank, many."""
    dice = random.Random(3)
    sizes = [(1, 1), (2, 1), (2, 5), (3, 3), (3, 7), (4, 6), (4, 3), (5, 1), (5, 12), (7, 20),
             (8, 8), (8, 13)]
    return [_numbers(dice, p, n) for p, n in sizes]


def ring(x: list[list[float]]) -> dict[str, Any]:
    """Let each chunk hop from rank to rank, all round once and almost round once more."""
    p, n = len(x), len(x[0])
    total = 0
    for chunk in [n // p + (c < n % p) for c in range(p)]:
        for _ in range(2):
            visited = 1
            while visited < p:
                total += 8 * chunk
                visited += 1
    return {"results": [_sum(x)] * p, "total": total, "most": 2 * (p - 1) * -(-n // p) * 8,
            "to": [[(r + 1) % p] if p > 1 else [] for r in range(p)]}


def halves_inputs() -> list[Any]:
    """Shapes with none to four axes; numbers of ranks that are powers of two, and others."""
    dice = random.Random(4)
    sizes: list[tuple[int, ...]] = [
        (1,), (1, 3), (2, 7), (4,), (4, 1, 5), (2, 3, 3), (8, 3, 7), (4, 2, 2, 2), (8, 1, 1, 3, 2),
        (3, 4), (5, 2, 3), (6,)]
    return [_numbers(dice, *size) for size in sizes]


def halves(x: list[Any]) -> dict[str, Any]:
    """Bytes only for powers of two: for others the two collectives fold ranks in first."""
    p, n = len(x), _size(x[0])
    wanted = {"results": [_sum(x)] * p}
    if p & (p - 1) == 0:
        wanted |= {"total": 2 * (p - 1) * n * 8, "most": 2 * (p - 1) * -(-n // p) * 8}
    return wanted


def groups_inputs() -> list[tuple[Any, int]]:
    """Nodes of one rank, one node, more nodes than ranks on them and fewer, odd lengths."""
    dice = random.Random(5)
    sizes = [(1, 2, 1), (4, 5, 2), (4, 3, 4), (4, 6, 1), (6, 4, 2), (6, 7, 3), (8, 9, 2),
             (8, 8, 4), (9, 10, 3), (8, 1, 4), (12, 5, 3), (16, 6, 4)]
    return [(_numbers(dice, p, n), k) for p, n, k in sizes]


def two_levels(x: list[list[float]], per_node: int) -> dict[str, Any]:
    """Across nodes: the arrays that one all-reduce between as many ranks as nodes sends at most.

    By exchange in pairs after folding in what is above a power of two, or round a ring.
    """
    p, n = len(x), len(x[0])
    nodes = p // per_node
    power = 1
    pairs = 0
    while 2 * power <= nodes:
        power, pairs = 2 * power, pairs + 1
    arrays = max(power * pairs + 2 * (nodes - power), 2 * (nodes - 1))
    return {"results": [_sum(x)] * p, "between": [per_node, 8 * n * arrays]}


# -- costs -----------------------------------------------------------------------------------------

BYTES = [(a, p, n, size) for a in ("star", "tree", "ring")
         for p, n, size in [(1, 7, 4), (2, 9, 2), (3, 10, 8), (5, 3, 4), (6, 25, 2), (8, 64, 1),
                            (13, 40, 4)]]


def sent(algorithm: str, p: int, n: int, itemsize: int) -> list[int]:
    """Move every message by hand and enter it in a book."""
    book = [0] * p
    if algorithm == "star":
        messages = [(r, 0) for r in range(1, p)] + [(0, r) for r in range(1, p)]
    elif algorithm == "tree":
        up = [(r, r - 2**k) for k in range(10) for r in range(p) if r % 2 ** (k + 1) == 2**k]
        messages = up + [(parent, child) for child, parent in reversed(up)]
    else:
        messages = []
        for element in range(n):
            c = next(c for c in range(p) if element < sum(n // p + (i < n % p)
                                                          for i in range(c + 1)))
            trip = [(c + 1 + hop) % p for hop in range(p)] + [(c + hop) % p for hop in range(1, p)]
            for source in trip[:-1]:
                book[source] += itemsize
        return book
    for source, _ in messages:
        book[source] += n * itemsize
    return book


CROSSOVER = [(2, 5e-6, 4e-11), (3, 1e-6, 1e-9), (4, 5e-6, 4e-11), (5, 1e-6, 1e-10), (7, 3e-6, 2e-9),
             (8, 1e-6, 1e-9), (9, 2e-5, 1e-10), (16, 5e-6, 4e-11), (24, 1e-6, 5e-12),
             (64, 1e-5, 1e-10), (100, 2e-6, 4e-11), (1024, 5e-6, 1e-11), (3072, 1e-5, 4e-11)]


def crossover(p: int, alpha: float, beta: float) -> float:
    """Time every step of both, in exact numbers, for two sizes; the times lie on two lines."""
    a, b = Fraction(alpha), Fraction(beta)

    def times(n: Fraction) -> tuple[Fraction, Fraction]:
        ring_time = sum((a + n / p * b for _ in range(2 * (p - 1))), Fraction(0))
        reached, tree_time = 1, Fraction(0)
        while reached < p:
            reached, tree_time = 2 * reached, tree_time + 2 * (a + n * b)
        return ring_time, tree_time

    ring_0, tree_0 = times(Fraction(0))
    ring_1, tree_1 = times(Fraction(1))
    return float((ring_0 - tree_0) / ((tree_1 - tree_0) - (ring_1 - ring_0)))


# -- training --------------------------------------------------------------------------------------


def step_inputs() -> list[tuple[Any, ...]]:
    """Ranks with equally many examples, with different numbers, with one; 1 to 5 weights."""
    dice = random.Random(6)
    inputs = []
    for d, counts in [(1, [1]), (1, [2, 2]), (2, [3, 1]), (3, [4]), (3, [2, 5, 1]), (2, [1, 1, 1]),
                      (4, [6, 2, 3, 1]), (1, [8, 1]), (5, [1, 2, 3, 4, 5, 6, 7, 8]), (2, [32, 4])]:
        x = [_numbers(dice, b, d) for b in counts]
        y = [_numbers(dice, b) for b in counts]
        inputs.append((_numbers(dice, d), x, y, dice.choice([0.5, 0.1, 0.03125])))
    return inputs


def step(w: list[float], x: list[Any], y: list[Any], lr: float) -> dict[str, Any]:
    """One device that has all examples, in exact numbers; the loss is a parabola in each weight.

    So its slope is half the difference of its values one to the right and one to the left.
    """
    rows = [(list(map(Fraction, row)), Fraction(target))
            for xs, ys in zip(x, y, strict=True) for row, target in zip(xs, ys, strict=True)]

    def loss(weights: list[Fraction]) -> Fraction:
        errors = [sum((a * b for a, b in zip(row, weights, strict=True)), -target)
                  for row, target in rows]
        return sum((error * error / 2 for error in errors), Fraction(0)) / len(rows)

    exact = list(map(Fraction, w))
    new = []
    for i, value in enumerate(exact):
        right = loss([*exact[:i], value + 1, *exact[i + 1 :]])
        left = loss([*exact[:i], value - 1, *exact[i + 1 :]])
        new.append(float(value - Fraction(lr) * (right - left) / 2))
    return {"results": [new] * len(x)}


TOKENS: list[list[list[int]]] = [
    [[1]], [[7, 7, 7]], [[0, 5]], [[1, 2, 3, 4]], [[8, 8], [8, 8], [8, 8]], [[512], [512], [60]],
    [[3, 0, 1], [2, 2, 2]], [[10, 1], [1, 10]], [[4, 4, 4, 4], [4, 4, 4, 1]], [[5, 3], [7, 0]],
    [[100, 28, 1], [64, 64, 64], [1, 1, 1], [90, 0, 0]]]


def factors(tokens: list[list[int]]) -> list[list[float]]:
    """Follow one token of each microbatch to the end, with factor 1; then put its weight right."""
    everything = sum(map(sum, tokens))
    made = []
    for row in tokens:
        made.append([0.0] * len(row))
        for i, n in enumerate(row):
            if n:
                in_microbatch = Fraction(1, n)
                after_all_reduce = in_microbatch / len(tokens)
                made[-1][i] = float(Fraction(1, everything) / after_all_reduce)
    return made


_CALM, _INF, _NAN = [1.0] * 12, math.inf, math.nan
SCALING: list[tuple[list[float], float, int]] = [
    ([2.0], 1024.0, 1), (_CALM, 1.0, 1), (_CALM, 65536.0 / 4, 5), ([_NAN, 1.0, 1.0], 8.0, 1),
    ([_INF, _NAN, _INF, 1.0], 64.0, 2), ([0.0] * 5, 4.0, 4),
    ([1e-4] * 6 + [900.0] * 4 + [1e-4] * 6, 512.0, 3),
    ([1.0, 1.0, 40000.0, 1.0, 1.0, 40000.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2.0, 3),
    ([3.0, 5.0, 2.0, 60.0, 4.0] * 4, 65536.0, 2), ([10.0] * 8, 2.0**24, 2),
    ([1.0, _INF] * 5, 16.0, 2), ([_INF, _NAN, _INF, 1.0, 1.0], 2.0, 2),
    ([1e-3] * 6, 65536.0, 2), ([32752.0, 32752.0, 32800.0, 32752.0], 2.0, 9),
    ([0.5, 0.25, 1e-3, 7.0, 0.5, 1e4, 0.5, 0.5, 0.5, 2e3, 0.5, 0.5, 0.5, 0.5], 1024.0, 3)]


def scales(largest: list[float], scale: float, window: int) -> list[float]:
    """For each step look back: overflows so far, and full windows of good steps between them."""
    wanted: list[float] = []
    for now in range(len(largest)):
        exponent, run = 0, 0
        for before in range(now):
            if not largest[before] * wanted[before] <= 65504:
                exponent, run = exponent - 1 + run // window, 0
            else:
                run += 1
        wanted.append(scale * 2.0 ** (exponent + run // window))
    return wanted
