"""Notebook gpu_2: kernels whose threads work together, through shared memory and registers."""

from __future__ import annotations

from itertools import accumulate

from distlearn.grading.kernel_answer import KernelAnswer
from distlearn.grading.programs import KernelProgram
from distlearn.grading.question import Case, Mistake, Question
from distlearn.grading.sets.gpu.launches import (
    matrix,
    numbers,
    product,
    row_sectors,
    sectors,
    tenth_more,
    wants,
    wrote,
)

Matrix = list[list[float]]
BLOCK, TILE = 64, 16


def _maxima(a: list[float], before: int = 1, after: int = 1) -> list[float]:
    return [max(a[max(0, k - before):k + after + 1]) for k in range(len(a))]


def _window(n: int, a: list[float] | None = None) -> Case:
    a, grid = a or numbers(n), -(-n // BLOCK)
    return Case((grid, BLOCK, n, a, n),
                wants(_maxima(a), global_load_sectors=sectors(n) + 4 * grid,
                      global_load_requests=4 * grid))


WINDOW = Question(
    id="gpu/window",
    title="The largest of three neighbours",
    function="window_max",
    parameters=("grid", "block", "out", "a", "n"),
    answer=KernelAnswer({
        "global_load_sectors": (
            "Neighbours read the same elements again. Let each thread put one element into shared "
            "memory, and two threads of the block one more, beyond its ends."),
        "global_load_requests": "A thread reads one element; only two of the block read another.",
    }),
    points=5,
    sheet=2,
    program=KernelProgram(),
    cases=(
        _window(6, [3.0, 1.0, 4.0, 1.0, 5.0, 2.0]),
        _window(64),
        _window(65),
        _window(150),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n: wrote(_maxima(a, 2, 0)),
                "The window ends at i here; it reaches from i - 1 to i + 1."),
        Mistake(lambda grid, block, out, a, n: wrote(
            [max(a[j] for j in (k - 1, k, k + 1) if 0 <= j < n and j // block == k // block)
             for k in range(n)]),
                "The window stops at the ends of a block: the neighbours in the blocks beside it "
                "are missing."),
        Mistake(lambda grid, block, out, a, n: wrote(
            [max([*a[max(0, k - 1):k + 2], *([0.0] if k in (0, n - 1) else [])])
             for k in range(n)]),
                "Outside of the array there is nothing, not 0: at the ends the window has two "
                "elements, which may be negative."),
        Mistake(lambda grid, block, out, a, n: wrote(
            [sum(a[max(0, k - 1):k + 2]) for k in range(n)]),
                "This is the sum of the window; its largest element is asked for."),
    ),
)


def _dot(grid: int, n: int, a: list[float] | None = None, b: list[float] | None = None) -> Case:
    a, b = a or [abs(x) + 1 for x in numbers(n)], b or [x + 2 for x in numbers(n, 5)]
    return Case((grid, BLOCK, 1, a, b, n),
                wants([sum(x * y for x, y in zip(a, b, strict=True))],
                      global_load_sectors=2 * sectors(n), atomic_requests=grid, barriers=7))


DOT = Question(
    id="gpu/dot",
    title="A sum over all threads",
    function="dot",
    parameters=("grid", "block", "out", "a", "b", "n"),
    answer=KernelAnswer({
        "atomic_requests": ("One atomic addition per block is enough: add up the products of the "
                            "block in shared memory before."),
        "barriers": ("Halve the number of sums in each round: 64 become 32, 16, … 1, with one "
                     "barrier a round."),
        "global_load_sectors": "Each element of a and b is read once.",
    }),
    points=5,
    sheet=2,
    program=KernelProgram(start=0.0),
    cases=(
        _dot(1, 4, [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0, 2.0]),
        _dot(1, 64),
        _dot(2, 100),
        _dot(3, 192),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, b, n: wrote([sum(a) + sum(b)]),
                "This adds a and b; the products are to be added."),
        Mistake(lambda grid, block, out, a, b, n: wrote(
            [sum(x * y for k, (x, y) in enumerate(zip(a, b, strict=True)) if k % 64 < 32)]),
                "Half of the threads are missing: in the first round threads 0 to 31 add what is "
                "32 to their right."),
        Mistake(lambda grid, block, out, a, b, n: wrote(
            [sum(x * y for x, y in list(zip(a, b, strict=True))[:block])]),
                "This is the sum of the first block only."),
        Mistake(lambda grid, block, out, a, b, n: wrote(
            [sum(x * y for x, y in list(zip(a, b, strict=True))[(grid - 1) * block:])]),
                "This is the sum of one block: blocks overwrite each other's. Add with "
                "cuda.atomic.add(out, 0, ...)."),
    ),
)


def _squares(rows: int, columns: int, x: Matrix | None = None) -> Case:
    x = x or matrix(rows, columns)
    return Case((rows, 32, rows, x),
                wants([sum(v * v for v in row) / len(row) for row in x],
                      global_load_sectors=tenth_more(row_sectors(rows, columns)),
                      barriers=0, shared_requests=0, atomic_requests=0))


_SHUFFLE = ("The 32 threads of one warp need neither: cuda.shfl_down_sync hands a register from "
            "lane to lane.")

_SIDE_BY_SIDE = ("Lanes side by side read elements side by side: lane t takes the columns t, "
                 "t + 32, t + 64, …")


def _shuffled(row: list[float], distances: tuple[int, ...], *, xor: bool = False,
              stay: bool = False) -> float:
    """Lane 0's mean if lanes are missing in the shuffles, and who asks them has its own again.

    Missing are those without an element; with ``stay``, all that no longer count.
    """
    sums = [sum(v * v for v in row[lane::32]) for lane in range(32)]
    for d in distances:
        there = d if stay else min(32, len(row))
        sums = [x + (sums[of] if (of := lane ^ d if xor else lane + d) < there else x)
                for lane, x in enumerate(sums)]
    return sums[0] / len(row)


_HALVES, _DOUBLES = (16, 8, 4, 2, 1), (1, 2, 4, 8, 16)
_ALL_LANES = ("A lane that does not come to the shuffle hands over nothing: all 32 lanes call it, "
              "outside of any `if`, and none has returned before.")

SQUARES = Question(
    id="gpu/mean_square",
    title="One warp a row",
    function="mean_square",
    parameters=("grid", "block", "out", "x"),
    answer=KernelAnswer({
        "global_load_sectors": f"{_SIDE_BY_SIDE} Each is read once: keep it in a variable.",
        "barriers": _SHUFFLE, "shared_requests": _SHUFFLE, "atomic_requests": _SHUFFLE,
    }, scattered=_SIDE_BY_SIDE),
    points=5,
    sheet=2,
    program=KernelProgram(),
    cases=(
        _squares(2, 2, [[1.0, 3.0], [0.0, 4.0]]),
        _squares(3, 32),
        _squares(2, 50),
        _squares(4, 100),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, x: wrote([sum(v * v for v in row) for row in x]),
                "This is the sum of the squares: divide by the number of columns."),
        Mistake(lambda grid, block, out, x: wrote([(sum(row) / len(row)) ** 2 for row in x]),
                "This is the square of the mean; the mean of the squares is asked for."),
        Mistake(lambda grid, block, out, x: wrote(
            [sum(v * v for v in row[:32]) / len(row) for row in x]),
                "Only the first 32 columns are in it: each lane has to go on in steps of 32."),
        Mistake(lambda grid, block, out, x: wrote([sum(v * v for v in row) / 32 for row in x]),
                "This divides by the 32 lanes, not by the number of columns."),
        Mistake(lambda grid, block, out, x: wrote(
            [sum(v * v for k, v in enumerate(row) if k % 32 < 16) / len(row) for row in x]),
                "Half of the lanes are missing: the first distance is 16."),
        Mistake(lambda grid, block, out, x: wrote(
            [sum(v * v for v in row[::32]) / len(row) for row in x]),
                "Only lane 0 is in it: the other lanes' sums have to come to it."),
        Mistake(lambda grid, block, out, x: wrote(
            [_shuffled(row, _HALVES, stay=True) for row in x]), _ALL_LANES),
        Mistake(lambda grid, block, out, x: wrote([_shuffled(row, _HALVES) for row in x]),
                _ALL_LANES),
        Mistake(lambda grid, block, out, x: wrote(
            [_shuffled(row, _DOUBLES, xor=True) for row in x]), _ALL_LANES),
    ),
)


def _convolved(a: list[float], w: list[float]) -> list[float]:
    n = len(a)
    return [sum(a[i + j] * w[j] for j in range(len(w)) if i + j < n) for i in range(n)]


def _conv(n: int, m: int, a: list[float] | None = None, w: list[float] | None = None) -> Case:
    a, w, grid = a or numbers(n), w or numbers(m, 4, 7), -(-n // BLOCK)
    return Case((grid, BLOCK, n, a, w, n, m),
                wants(_convolved(a, w), global_load_sectors=sectors(n) + 2 * grid))


CONV = Question(
    id="gpu/conv",
    title="A convolution that reads once",
    function="convolve",
    parameters=("grid", "block", "out", "a", "w", "n", "m"),
    answer=KernelAnswer({"global_load_sectors": (
        "Everything is read from global memory again and again. Put the block's elements, the m - "
        "1 behind them and the weights into shared memory first.")}),
    points=5,
    sheet=2,
    program=KernelProgram(),
    cases=(
        _conv(6, 3, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 10.0, 100.0]),
        _conv(64, 2),
        _conv(100, 4),
        _conv(130, 8),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, w, n, m: wrote(_convolved(a, w[::-1])),
                "The weights are reversed: a[i + j] belongs to w[j]."),
        Mistake(lambda grid, block, out, a, w, n, m: wrote(
            [sum(a[i - j] * w[j] for j in range(m) if i - j >= 0) for i in range(n)]),
                "This looks back, a[i - j]; it shall look ahead, a[i + j]."),
        Mistake(lambda grid, block, out, a, w, n, m: wrote(
            [sum(a[i + j] * w[j] for j in range(m) if i + j < n and (i + j) // block == i // block)
             for i in range(n)]),
                "The elements behind the end of the block are missing."),
    ),
)


def _scan(n: int, a: list[float] | None = None) -> Case:
    a = a or numbers(n)
    return Case((1, BLOCK, n, a, n), wants(list(accumulate(a)), global_load_sectors=sectors(n),
                                           barriers=13))


SCAN = Question(
    id="gpu/scan",
    title="Running sums",
    function="running_sum",
    parameters=("grid", "block", "out", "a", "n"),
    answer=KernelAnswer({
        "barriers": ("Double the distance in each round: after 6 rounds each thread has the sum "
                     "of up to 64 elements."),
        "global_load_sectors": "Read each element once and work in shared memory.",
    }),
    points=5,
    sheet=2,
    program=KernelProgram(),
    cases=(
        _scan(5, [1.0, 2.0, 3.0, 4.0, 5.0]),
        _scan(32),
        _scan(50),
        _scan(64),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n: wrote([0.0, *accumulate(a)][:n]),
                "This is the sum of all before i; a[i] itself belongs to it."),
        Mistake(lambda grid, block, out, a, n: wrote([x + (a[k - 1] if k else 0.0)
                                                      for k, x in enumerate(a)]),
                "This is the first round: go on with distances 2, 4, 8, …"),
        Mistake(lambda grid, block, out, a, n: wrote([sum(a[max(0, k - 31):k + 1])
                                                      for k in range(n)]),
                "One round is missing: the last distance is 32."),
        Mistake(lambda grid, block, out, a, n: wrote([sum(a[k:]) for k in range(n)]),
                "This sums from i to the end; from the start to i is asked for."),
    ),
)


def tile_sectors(m: int, n: int, k: int) -> int:
    """Sectors that tiles of 16 x 16 read: A once per tile column of C, B once per tile row."""
    return (row_sectors(m, k, TILE) * -(-n // TILE) + row_sectors(k, n, TILE) * -(-m // TILE))


def _tiled(m: int, n: int, k: int) -> Case:
    A, B = matrix(m, k), matrix(k, n, 5)
    return Case(((-(-n // TILE), -(-m // TILE)), (TILE, TILE), (m, n), A, B),
                wants(product(A, B), global_load_sectors=tenth_more(tile_sectors(m, n, k))))


TILED = Question(
    id="gpu/matmul",
    title="A matrix product in tiles",
    function="tiled_matmul",
    parameters=("grid", "block", "C", "A", "B"),
    answer=KernelAnswer({"global_load_sectors": (
        "Each thread reads a whole row and column from global memory. Let the block load a tile of "
        "A and one of B into shared memory, and all its threads use both.")}),
    points=6,
    sheet=2,
    program=KernelProgram(outputs=("C",)),
    cases=(
        Case((1, (TILE, TILE), (2, 2), [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]),
             wants([[19.0, 22.0], [43.0, 50.0]], global_load_sectors=4)),
        _tiled(16, 16, 32),
        _tiled(20, 16, 16),
        _tiled(18, 35, 20),
    ),
    mistakes=(
        Mistake(lambda grid, block, C, A, B: wrote(
            product([row[:TILE] for row in A], B[:TILE])),
                "Only the first tile of K is in it: go on in steps of 16, to the end."),
        Mistake(lambda grid, block, C, A, B: wrote(
            product([row[:len(row) // TILE * TILE] for row in A], B[:len(B) // TILE * TILE])
            if len(B) >= TILE else [[0.0] * C[1] for _ in range(C[0])]),
                "The last, smaller tile of K is missing."),
    ),
)


def register_requests(m: int, n: int, k: int) -> int:
    """Loads of warps: for each step along K one of B and one for each row of A that there is."""
    warps_across = -(-n // 32)
    return sum(warps_across * k * (1 + min(4, m - row)) for row in range(0, m, 4))


def _register(m: int, n: int, k: int, rows: int = 2) -> Case:
    A, B = matrix(m, k), matrix(k, n, 5)
    return Case(((-(-n // 32), -(-m // (4 * rows))), (32, rows), (m, n), A, B),
                wants(product(A, B), global_load_requests=tenth_more(register_requests(m, n, k))))


REGISTER = Question(
    id="gpu/registers",
    title="Four results a thread",
    function="four_rows",
    parameters=("grid", "block", "C", "A", "B"),
    answer=KernelAnswer({"global_load_requests": (
        "An element of B is good for four rows: read it once for each k, keep it in a variable, "
        "and use it for all four sums.")}),
    points=6,
    sheet=2,
    program=KernelProgram(outputs=("C",)),
    cases=(
        Case((1, (32, 1), (4, 1), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
              [[1.0], [10.0]]),
             wants([[21.0], [43.0], [65.0], [87.0]], global_load_requests=11)),
        _register(8, 32, 8),
        _register(16, 40, 6),
        _register(10, 20, 12),
    ),
    mistakes=(
        Mistake(lambda grid, block, C, A, B: wrote(
            [row if r % 4 == 0 else [float("nan")] * C[1]
             for r, row in enumerate(product(A, B))]),
                "Only the first of the four rows of each thread is written."),
    ),
)

QUESTIONS = (WINDOW, DOT, SQUARES, CONV, SCAN, TILED, REGISTER)
