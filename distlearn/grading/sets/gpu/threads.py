"""Notebook gpu_1: threads and indices, guards, coalescing, bank conflicts, divergence."""

from __future__ import annotations

from math import gcd

from distlearn.grading.answer import Count
from distlearn.grading.kernel_answer import KernelAnswer
from distlearn.grading.programs import KernelProgram
from distlearn.grading.question import Case, Mistake, Question
from distlearn.grading.sets.gpu.launches import (
    matrix,
    numbers,
    row_sectors,
    sectors,
    tenth_more,
    wants,
    wrote,
)

Matrix = list[list[float]]


def _map(grid: int, block: int, n: int) -> Case:
    a = numbers(n)
    return Case((grid, block, n, a, n),
                wants([3 * x + 1 for x in a], global_load_sectors=sectors(n),
                      global_store_sectors=sectors(n)))


MAP = Question(
    id="gpu/map",
    title="One thread, one element",
    function="scale_and_shift",
    parameters=("grid", "block", "out", "a", "n"),
    answer=KernelAnswer({
        "global_load_sectors": "Each element of `a` has to be read once, by one thread.",
        "global_store_sectors": "Each element of `out` has to be written once, by one thread.",
    }),
    points=3,
    program=KernelProgram(),
    cases=(
        Case((1, 8, 8, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8),
             wants([1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 22.0], global_load_sectors=1,
                   global_store_sectors=1)),
        _map(1, 32, 20),
        _map(2, 32, 64),
        _map(3, 24, 70),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n: wrote([3 * (x + 1) for x in a]),
                "This is 3 (a + 1): the 1 is added after the multiplication."),
        Mistake(lambda grid, block, out, a, n: wrote([3.0 * k + 1 for k in range(n)]),
                "This computes with the index i, not with the element a[i]."),
        Mistake(lambda grid, block, out, a, n: wrote([3 * x for x in a]), "The 1 is missing."),
    ),
)


def _stride(grid: int, block: int, n: int) -> Case:
    a = numbers(n)
    return Case((grid, block, n, a, n),
                wants([max(x, 0.0) for x in a], global_load_sectors=tenth_more(sectors(n)),
                      global_store_sectors=tenth_more(sectors(n))))


_NEIGHBOURS = ("At one moment neighbouring threads have to use neighbouring elements. Let a thread "
               "go on in steps of all threads of the grid, not through a piece of its own.")

_ONCE = ("Let neighbouring threads use neighbouring elements. And read each once, into a variable, "
         "and write it once: of an `if`, both ways take their turn.")

STRIDE = Question(
    id="gpu/stride",
    title="Fewer threads than elements",
    function="relu",
    parameters=("grid", "block", "out", "a", "n"),
    answer=KernelAnswer({"global_load_sectors": _ONCE, "global_store_sectors": _ONCE},
                        scattered=_NEIGHBOURS),
    points=4,
    program=KernelProgram(),
    cases=(
        Case((1, 8, 10, [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0, -10.0], 10),
             wants([1.0, 0.0, 3.0, 0.0, 5.0, 0.0, 7.0, 0.0, 9.0, 0.0], global_load_sectors=2,
                   global_store_sectors=2)),
        _stride(1, 32, 100),
        _stride(2, 32, 256),
        _stride(2, 64, 70),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n: wrote(
            [max(x, 0.0) if k < grid * block else float("nan") for k, x in enumerate(a)]),
                "Only one element per thread is written: the other threads' work is done, theirs "
                "is not. Go on in a loop, until n."),
        Mistake(lambda grid, block, out, a, n: wrote([abs(x) for x in a]),
                "This is the absolute value; below 0 the result is 0."),
        Mistake(lambda grid, block, out, a, n: wrote([min(x, 0.0) for x in a]),
                "This keeps the negative numbers; the positive ones are asked for."),
    ),
)


def _outer(grid: tuple[int, int], block: tuple[int, int], rows: int, columns: int) -> Case:
    col, row = numbers(rows), numbers(columns, 5)
    return Case((grid, block, (rows, columns), col, row),
                wants([[x + y for y in row] for x in col],
                      global_store_sectors=tenth_more(row_sectors(rows, columns))))


_ALONG_ROWS = ("Each warp writes a column. The threads of a warp differ in `threadIdx.x`: let x "
               "run along a row of `out`, the second index.")

OUTER = Question(
    id="gpu/outer",
    title="Two dimensions",
    function="outer_sum",
    parameters=("grid", "block", "out", "col", "row"),
    answer=KernelAnswer({"global_store_sectors": _ALONG_ROWS}, scattered=_ALONG_ROWS),
    points=4,
    program=KernelProgram(),
    cases=(
        Case(((1, 1), (4, 4), (2, 3), [10.0, 20.0], [1.0, 2.0, 3.0]),
             wants([[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]], global_store_sectors=2)),
        _outer((1, 4), (32, 2), 8, 32),
        _outer((2, 2), (32, 8), 10, 40),
        _outer((3, 1), (32, 4), 3, 70),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, col, row: wrote([[x * y for y in row] for x in col]),
                "This is the product of the two; their sum is asked for."),
        Mistake(lambda grid, block, out, col, row: wrote(
            [[x + y if i < grid[0] * block[0] and j < grid[1] * block[1] else float("nan")
              for j, y in enumerate(row)] for i, x in enumerate(col)]),
                "x is taken for the row here: `cuda.grid(2)` is (x, y), and x is to run along "
                "a row, which is the second index."),
    ),
)


def _rotated(a: list[float], c: float, s: float) -> list[float]:
    pairs = [(a[k], a[k + 1]) for k in range(0, len(a), 2)]
    return [value for x, y in pairs for value in (c * x - s * y, s * x + c * y)]


def _rotate(grid: int, block: int, n: int, c: float, s: float) -> Case:
    a = numbers(n)
    return Case((grid, block, n, a, n, c, s),
                wants(_rotated(a, c, s), divergent_branches=1,
                      global_load_sectors=tenth_more(2 * sectors(n))))


ROTATE = Question(
    id="gpu/rotate",
    title="A warp goes one way",
    function="rotate_pairs",
    parameters=("grid", "block", "out", "a", "n", "c", "s"),
    answer=KernelAnswer({
        "divergent_branches": (
            "The threads of a warp take different ways, one after the other. What differs between "
            "the first and the second of a pair is only a sign and a neighbour: compute both."),
        "global_load_sectors": "Two reads per element are enough, by neighbouring threads: keep "
                               "in a variable what is used again.",
    }),
    points=4,
    program=KernelProgram(),
    cases=(
        Case((1, 8, 4, [1.0, 0.0, 0.0, 1.0], 4, 3.0, 4.0),
             wants([3.0, 4.0, -4.0, 3.0], divergent_branches=1, global_load_sectors=2)),
        _rotate(1, 32, 32, 0.0, 1.0),
        _rotate(2, 32, 50, 3.0, 4.0),
        _rotate(4, 64, 200, 0.5, -2.0),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n, c, s: wrote(_rotated(a, c, -s)),
                "This turns the other way: the minus belongs to the first of a pair."),
        Mistake(lambda grid, block, out, a, n, c, s: wrote(
            [c * x + s * y for x, y in zip(a, [a[k ^ 1] for k in range(n)], strict=True)]),
                "The sign is missing: the first of a pair subtracts."),
        Mistake(lambda grid, block, out, a, n, c, s: wrote(
            [c * x - s * y for x, y in zip(a, [a[k ^ 1] for k in range(n)], strict=True)]),
                "Both elements of a pair subtract here; the second adds."),
    ),
)


def _transpose(rows: int, columns: int, a: Matrix | None = None) -> Case:
    a = a or matrix(rows, columns)
    grid = (-(-columns // 32), -(-rows // 32))
    return Case((grid, (32, 32), (columns, rows), a),
                wants([[a[r][c] for r in range(rows)] for c in range(columns)],
                      global_load_sectors=tenth_more(row_sectors(rows, columns)),
                      global_store_sectors=tenth_more(row_sectors(columns, rows)),
                      bank_conflicts=0))


_ROUND_TRIP = ("Read rows and write rows: through a tile in shared memory, which is written by "
               "rows and read by columns. Swap the block's x and y for the second half.")

TRANSPOSE = Question(
    id="gpu/transpose",
    title="Transpose without detours",
    function="transpose",
    parameters=("grid", "block", "out", "a"),
    answer=KernelAnswer({
        "global_load_sectors": _ROUND_TRIP, "global_store_sectors": _ROUND_TRIP,
        "bank_conflicts": ("A column of a tile of 32 words a row lies in one bank. Give the tile "
                           "one word more per row than it needs."),
    }, scattered=_ROUND_TRIP),
    points=6,
    program=KernelProgram(),
    cases=(
        _transpose(2, 3, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        _transpose(32, 32),
        _transpose(40, 64),
        _transpose(64, 24),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a: wrote(
            [[a[c // 32 * 32 + r % 32][r // 32 * 32 + c % 32] for c in range(out[1])]
             for r in range(out[0])]),
                "The tile is in its place, but it comes out as it went in: read its columns, "
                "`tile[x, y]`."),
    ),
)

SECTORS = Question(
    id="gpu/sectors",
    title="Count the sectors",
    function="sectors_of_warp",
    parameters=("start", "stride", "size"),
    answer=Count(),
    points=3,
    cases=(
        Case((0, 1, 4), 4),
        Case((0, 2, 4), 8),
        Case((16, 1, 4), 5),
        Case((0, 0, 8), 1),
        Case((0, 100, 4), 32),
    ),
    mistakes=(
        Mistake(lambda start, stride, size: -(-(32 * stride * size) // 32) or 1,
                "Sectors begin at multiples of 32 bytes: where the first lane starts matters, and "
                "beyond a stride of 32 bytes not every sector is touched."),
        Mistake(lambda start, stride, size: len({(start + t * stride * size) // 128
                                                 for t in range(32)}),
                "These are lines of 128 bytes; a sector has 32."),
        Mistake(lambda start, stride, size: len({(start + t * stride) // 32 for t in range(32)}),
                "The stride counts elements: in bytes it is stride * size."),
    ),
    without=("global_access",),
)


def _wavefronts(rows: int, width: int) -> int:
    return -(-rows * gcd(width, 32) // 32)


BANKS = Question(
    id="gpu/banks",
    title="Read a column",
    function="column_wavefronts",
    parameters=("rows", "width"),
    answer=Count(),
    points=3,
    cases=(
        Case((32, 32), 32),
        Case((32, 33), 1),
        Case((32, 16), 16),
        Case((8, 16), 4),
        Case((16, 36), 2),
    ),
    mistakes=(
        Mistake(lambda rows, width: gcd(width, 32),
                "This is right for 32 lanes. With fewer lanes, banks can stay below it."),
        Mistake(lambda rows, width: rows if width % 32 == 0 else 1,
                "Not only multiples of 32 collide: with 16 words a row every second row comes "
                "back to the same bank."),
        Mistake(lambda rows, width: _wavefronts(rows, width) - 1,
                "These are the conflicts, wavefronts beyond the first; all wavefronts are asked "
                "for."),
    ),
    without=("shared_access",),
)

QUESTIONS = (MAP, STRIDE, OUTER, ROTATE, SECTORS, TRANSPOSE, BANKS)
