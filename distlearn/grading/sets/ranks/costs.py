"""What an all-reduce costs: bytes of each rank, and the size at which the ring overtakes."""

from __future__ import annotations

import math

from distlearn.grading.answer import Number
from distlearn.grading.array_answer import Array
from distlearn.grading.question import Case, Mistake, Question


def _chunks(p: int, n: int) -> list[int]:
    return [n // p + (c < n % p) for c in range(p)]


def _tree(p: int, up: bool = True, down: bool = True) -> list[int]:
    """Whole arrays that each rank sends to its parent, and to its children."""
    low = [r & -r or 2 * p for r in range(p)]
    children = [sum(1 for k in range(p.bit_length()) if 2**k < low[r] and r + 2**k < p)
                for r in range(p)]
    return [up * (r > 0) + down * children[r] for r in range(p)]


def _bytes(algorithm: str, p: int, n: int, itemsize: int, *, skipped: int = 2,
           ring: str = "", star: tuple[int, int] | None = None, tree: list[int] | None = None,
           ) -> list[float]:
    """The right answer, with one part of it exchanged."""
    chunks = _chunks(p, n)
    if algorithm == "star":
        root, other = star or (p - 1, 1)
        return [n * itemsize * (root if r == 0 else other) for r in range(p)]
    if algorithm == "tree":
        return [n * itemsize * count for count in tree or _tree(p)]
    if ring == "even":
        return [skipped * (p - 1) / p * n * itemsize] * p
    if ring == "padded":
        return [2 * (p - 1) * math.ceil(n / p) * itemsize] * p
    left = [n - chunks[r] for r in range(p)]
    return [itemsize * (left[r] + (skipped - 1) * left[(r + 1) % p]) for r in range(p)]


BYTES = Question(
    id="ranks/bytes",
    title="Bytes sent",
    function="bytes_sent",
    parameters=("algorithm", "p", "n", "itemsize"),
    answer=Array(noun="a list with one number per rank"),
    points=4,
    cases=(
        Case(("star", 4, 10, 4), [120, 40, 40, 40]),
        Case(("tree", 4, 10, 4), [80, 40, 80, 40]),
        Case(("ring", 4, 8, 4), [48, 48, 48, 48]),
        Case(("ring", 3, 4, 8), [40, 48, 40]),
        Case(("tree", 3, 10, 4), [80, 40, 40]),
    ),
    mistakes=(
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, ring="even"),
                "In a ring 2(p - 1)/p of the array is the mean. Elements are not cut: count for "
                "each rank the two chunks that it does not send."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, ring="padded"),
                "Not all chunks of the ring have ⌈n/p⌉ elements, where p does not divide n."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, skipped=1),
                "A ring has two phases: chunks go round to be summed, and once more to be handed "
                "out."),
        Mistake(lambda a, p, n, size: [x / size for x in _bytes(a, p, n, size)],
                "These are elements; bytes are asked for."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, star=(1, 1)),
                "In the star rank 0 sends the sum to each of the other p - 1 ranks."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, star=(p, 1)),
                "In the star rank 0 does not send to itself."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, tree=_tree(p, down=False)),
                "In the tree the sum also has to come back: on the way down each rank sends it to "
                "those from which it received on the way up."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size, tree=_tree(p, up=False)),
                "In the tree each rank but rank 0 also sends its sum up, once."),
        Mistake(lambda a, p, n, size: _bytes(a, p, n, size,
                                             tree=[2 * math.ceil(math.log2(p))] * p),
                "The tree has 2⌈log₂ p⌉ rounds, but a rank does not send in each of them."),
        Mistake(lambda a, p, n, size: [sum(_bytes(a, p, n, size))] * p,
                "This is the sum over all ranks; asked for is the number of each rank."),
    ),
    without=("collective_bytes", "collective_messages", "run"),
)


def _crossover(p: int, alpha: float, beta: float, ring_steps: float, ring_bytes: float,
               tree_steps: float, tree_bytes: float) -> float:
    """Where ``steps α + bytes n β`` of the two are equal."""
    return alpha * (ring_steps - tree_steps) / (beta * (tree_bytes - ring_bytes))


def _rounds(p: int) -> int:
    return math.ceil(math.log2(p))


CROSSOVER = Question(
    id="ranks/crossover",
    title="Where the ring overtakes the tree",
    function="crossover_bytes",
    parameters=("p", "alpha", "beta"),
    answer=Number(),
    points=3,
    cases=(
        Case((4, 1e-6, 1e-9), 800.0),
        Case((8, 1e-5, 1e-10), 3_200_000 / 17),
        Case((6, 2e-6, 1e-9), 24_000 / 13),
        Case((2, 1e-6, 1e-9), 0.0),
    ),
    mistakes=(
        Mistake(lambda p, a, b: _crossover(p, a, b, 2 * (p - 1), 2 * (p - 1) / p,
                                           2 * math.log2(p), 2 * math.log2(p)),
                "A tree of p ranks has ⌈log₂ p⌉ levels, a whole number: round it up."),
        Mistake(lambda p, a, b: _crossover(p, a, b, 2 * (p - 1), 2 * (p - 1) / p,
                                           _rounds(p), _rounds(p)),
                "The tree has to be gone through twice: up to sum, down to hand out."),
        Mistake(lambda p, a, b: _crossover(p, a, b, p - 1, (p - 1) / p,
                                           2 * _rounds(p), 2 * _rounds(p)),
                "The ring goes round twice: p - 1 steps to sum, p - 1 to hand out."),
        Mistake(lambda p, a, b: _crossover(p, a, b, 2 * (p - 1), 2 * (p - 1),
                                           2 * _rounds(p), 2 * _rounds(p)),
                "A step of the ring carries one chunk, n/p bytes, not the whole array."),
        Mistake(lambda p, a, b: _crossover(p, a, b, 2 * p, 2, 2 * _rounds(p), 2 * _rounds(p)),
                "Off by one: a chunk takes p - 1 steps round the ring, not p."),
        Mistake(lambda p, a, b: _crossover(p, b, a, 2 * (p - 1), 2 * (p - 1) / p,
                                           2 * _rounds(p), 2 * _rounds(p)),
                "alpha and beta are the wrong way round: alpha is paid for each message."),
        Mistake(lambda p, a, b: a * b * (p - 1 - _rounds(p)) / (_rounds(p) - (p - 1) / p),
                "beta is seconds per byte, not bytes per second: divide by it."),
        Mistake(lambda p, a, b: p * a * (p - 1 - _rounds(p)) / (b * (_rounds(p) * p - p + 1)) / p,
                "This is the size of one chunk; asked for is the size of the whole array."),
    ),
    without=("collective_time",),
)
