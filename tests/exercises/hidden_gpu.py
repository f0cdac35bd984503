"""Hidden cases of the gpu set's kernels. Never handed out: the grader alone calls with these.

Wanted values are loops over definitions; what a launch needs at least is counted here warp by warp,
lane by lane, and compared with the library in `test_references_gpu.py`. The first case of each
question is one that finds nearly every mistake, so that tests of mistakes are over soon.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from distlearn.grading import Case

Matrix = list[list[float]]
NAN = float("nan")


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    dice = random.Random(9)
    return {
        "gpu/map": [elementwise(dice, *x, lambda v: 3 * v + 1) for x in MAP],
        "gpu/stride": [elementwise(dice, *x, lambda v: v if v > 0 else 0.0) for x in STRIDE],
        "gpu/outer": [outer(dice, *x) for x in OUTER],
        "gpu/rotate": [rotate(dice, *x) for x in ROTATE],
        "gpu/transpose": [transpose(dice, *x) for x in TRANSPOSE],
        "gpu/window": [window(dice, n) for n in (129, 1, 2, 63, 64, 66, 128, 190)],
        "gpu/dot": [dot(dice, n) for n in (130, 1, 2, 33, 63, 65, 128, 200)],
        "gpu/mean_square": [squares(dice, *x) for x in SQUARES],
        "gpu/conv": [conv(dice, *x) for x in CONV],
        "gpu/scan": [scan(dice, n) for n in (33, 1, 2, 3, 31, 47, 63, 64)],
        "gpu/matmul": [matmul(dice, *x) for x in MATMUL],
        "gpu/registers": [registers(dice, *x) for x in REGISTERS],
        "gpu/race": [race(dice, n) for n in (129, 1, 2, 33, 63, 65, 128, 180)],
        "gpu/cuda_c": [bias(dice, *x) for x in BIAS],
        "gpu/flags": [flags(dice, *x) for x in FLAGS],
    }


def draw(dice: random.Random, n: int) -> list[float]:
    """Small halves: float32 adds them exactly, in whatever order; whole numbers lose them."""
    return [dice.randint(-9, 9) / 2 for _ in range(n)]


def rows(dice: random.Random, m: int, n: int) -> Matrix:
    return [draw(dice, n) for _ in range(m)]


def wants(out: Any, **most: int) -> dict[str, Any]:
    return {"out": out, "most": most}


def sectors(requests: Iterable[Iterable[int]], size: int = 4) -> int:
    """Distinct sectors of each request, given as numbers of elements, added up."""
    return sum(len({item * size // 32 for item in request}) for request in requests)


def lines_of_warps(n: int) -> Iterator[range]:
    """Each warp 32 elements side by side."""
    for first in range(0, n, 32):
        yield range(first, min(first + 32, n))


def warps_along_rows(m: int, n: int, width: int = 32) -> Iterator[range]:
    """The same in each row of a matrix."""
    for r in range(m):
        for first in range(0, n, width):
            yield range(r * n + first, r * n + min(first + width, n))


# -- one thread, one element -----------------------------------------------------------------------

MAP = [(7, 8, 50), (1, 8, 1), (1, 32, 31), (1, 64, 33), (2, 64, 128), (3, 64, 130), (5, 32, 129),
       (4, 128, 401)]
STRIDE = [(4, 32, 130), (1, 32, 1), (1, 32, 33), (1, 8, 100), (3, 32, 500), (2, 64, 128),
          (2, 128, 300), (5, 64, 64)]
OUTER = [((2, 2), (64, 2), 3, 70), ((1, 1), (32, 1), 1, 1), ((2, 3), (32, 4), 9, 33),
         ((2, 2), (32, 8), 16, 64), ((3, 2), (32, 4), 5, 65), ((1, 9), (32, 1), 9, 5),
         ((1, 5), (32, 2), 9, 31), ((4, 1), (32, 2), 2, 100)]
ROTATE = [(5, 32, 148), (1, 32, 2), (1, 64, 34), (2, 32, 64), (3, 64, 130), (2, 128, 256),
          (1, 128, 66), (3, 96, 200)]


def elementwise(dice: random.Random, grid: int, block: int, n: int, of: Any) -> Case:
    a = draw(dice, n)
    least = sectors(lines_of_warps(n))
    if grid * block < n:  # the grid goes over it in steps, 8 threads or whole warps at a time
        least = sectors(range(s, min(s + 8, n)) for s in range(0, n, 8))
    return Case((grid, block, n, a, n), wants([of(x) for x in a], global_load_sectors=least,
                                              global_store_sectors=least))


def outer(dice: random.Random, grid: tuple[int, int], block: tuple[int, int], m: int, n: int
          ) -> Case:
    col, row = draw(dice, m), draw(dice, n)
    least = sectors(warps_along_rows(m, n))
    return Case((grid, block, (m, n), col, row),
                wants([[x + y for y in row] for x in col], global_store_sectors=int(1.1 * least)))


def rotate(dice: random.Random, grid: int, block: int, n: int) -> Case:
    a, c, s = draw(dice, n), float(dice.randint(-3, 3)), float(dice.randint(1, 4))
    out = [0.0] * n
    for k in range(n):
        out[k] = c * a[k] + (s * a[k - 1] if k % 2 else -s * a[k + 1])
    return Case((grid, block, n, a, n, c, s),
                wants(out, divergent_branches=1,
                      global_load_sectors=int(2.2 * sectors(lines_of_warps(n)))))


TRANSPOSE = [(40, 1), (1, 1), (1, 40), (31, 33), (33, 31), (32, 64), (50, 20), (65, 34)]


def transpose(dice: random.Random, m: int, n: int) -> Case:
    a = rows(dice, m, n)
    return Case((((n + 31) // 32, (m + 31) // 32), (32, 32), (n, m), a),
                wants([list(column) for column in zip(*a, strict=True)],
                      global_load_sectors=int(1.1 * sectors(warps_along_rows(m, n))),
                      global_store_sectors=int(1.1 * sectors(warps_along_rows(n, m))),
                      bank_conflicts=0))


# -- threads together ------------------------------------------------------------------------------


def window(dice: random.Random, n: int) -> Case:
    a = [x - 20 for x in draw(dice, n)]  # all negative: a 0 from outside would show
    out = []
    for i in range(n):
        near = [a[j] for j in (i - 1, i, i + 1) if 0 <= j < n]
        out.append(max(near))
    blocks = (n + 63) // 64
    halo = [[64 * b - 1] for b in range(1, blocks)]
    halo += [[64 * b + 64] for b in range(blocks) if 64 * b + 64 < n]
    return Case((blocks, 64, n, a, n),
                wants(out,  # a sector more for each warp whose part is shifted by the halo
                      global_load_sectors=sectors([*lines_of_warps(n), *halo]) + 2 * blocks,
                      global_load_requests=4 * blocks))


def dot(dice: random.Random, n: int) -> Case:
    a, b = draw(dice, n), draw(dice, n)
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    blocks = (n + 63) // 64
    return Case((blocks, 64, 1, a, b, n),
                wants([total], global_load_sectors=2 * sectors(lines_of_warps(n)),
                      atomic_requests=blocks, barriers=7))


SQUARES = [(2, 33), (1, 1), (1, 31), (3, 64), (1, 129), (5, 7), (4, 96), (2, 40)]


def squares(dice: random.Random, m: int, n: int) -> Case:
    x = rows(dice, m, n)
    out = []
    for row in x:
        total = 0.0
        for value in row:
            total += value * value
        out.append(total / n)
    return Case((m, 32, m, x), wants(
        out, global_load_sectors=int(1.1 * sectors(warps_along_rows(m, n))), barriers=0,
        shared_requests=0, atomic_requests=0))


CONV = [(190, 2), (1, 1), (5, 8), (64, 1), (65, 3), (63, 8), (128, 5), (129, 7)]


def conv(dice: random.Random, n: int, m: int) -> Case:
    a, w = draw(dice, n), draw(dice, m)
    padded = a + [0.0] * m
    out = [sum(w[j] * padded[i + j] for j in range(m)) for i in range(n)]
    blocks = (n + 63) // 64
    return Case((blocks, 64, n, a, w, n, m),
                wants(out, global_load_sectors=sectors(lines_of_warps(n)) + 2 * blocks))


def scan(dice: random.Random, n: int) -> Case:
    a, out, total = draw(dice, n), [], 0.0
    for x in a:
        total += x
        out.append(total)
    return Case((1, 64, n, a, n), wants(out, global_load_sectors=sectors(lines_of_warps(n)),
                                        barriers=13))


MATMUL = [(9, 9, 31), (1, 1, 1), (16, 16, 16), (17, 15, 33), (5, 20, 3), (32, 8, 40), (16, 33, 17),
          (20, 20, 20)]
REGISTERS = [(5, 31, 3, 1), (1, 1, 1, 1), (4, 32, 4, 1), (8, 33, 9, 2), (13, 20, 5, 2),
             (16, 64, 4, 2), (7, 5, 16, 1), (12, 36, 7, 1)]


def product(A: Matrix, B: Matrix) -> Matrix:
    C = [[0.0] * len(B[0]) for _ in A]
    for i, row in enumerate(A):
        for k, x in enumerate(row):
            for j, y in enumerate(B[k]):
                C[i][j] += x * y
    return C


def matmul(dice: random.Random, m: int, n: int, k: int) -> Case:
    A, B = rows(dice, m, k), rows(dice, k, n)
    across, down = (n + 15) // 16, (m + 15) // 16
    least = (across * sectors(warps_along_rows(m, k, 16))
             + down * sectors(warps_along_rows(k, n, 16)))
    return Case(((across, down), (16, 16), (m, n), A, B),
                wants(product(A, B), global_load_sectors=int(1.1 * least)))


def registers(dice: random.Random, m: int, n: int, k: int, high: int) -> Case:
    A, B = rows(dice, m, k), rows(dice, k, n)
    across, requests = (n + 31) // 32, 0
    for first in range(0, m, 4):
        for _ in range(across * k):
            requests += 1 + len(range(first, min(first + 4, m)))
    grid = (across, -(-m // (4 * high)))
    return Case((grid, (32, high), (m, n), A, B),
                wants(product(A, B), global_load_requests=int(1.1 * requests)))


# -- faults, CUDA C, the cube core -----------------------------------------------------------------


def race(dice: random.Random, n: int) -> Case:
    a = [x - 30 for x in draw(dice, n)]
    out = []
    for first in range(0, n, 64):
        part = sorted(a[first:first + 64])
        out += [x - part[-1] for x in a[first:first + 64]]
    return Case(((n + 63) // 64, 64, n, a, n),
                wants(out, barriers=7, global_load_sectors=sectors(lines_of_warps(n))))


BIAS = [(4, 33), (1, 1), (3, 31), (5, 64), (8, 65), (1, 100), (13, 3), (7, 40)]


def bias(dice: random.Random, m: int, n: int) -> Case:
    x, add = rows(dice, m, n), draw(dice, n)
    out = []
    for row in x:
        for j in range(n):
            value = row[j] + add[j]
            out.append(value if value > 0 else 0.0)
    return Case((((n + 31) // 32, (m + 3) // 4), (32, 4), m * n, [v for row in x for v in row], add,
                 m, n),
                wants(out, global_store_sectors=int(1.1 * sectors(warps_along_rows(m, n)))))


FLAGS = [(16, 192, 16), (16, 64, 32), (32, 64, 16), (16, 128, 16), (32, 128, 32), (16, 256, 32),
         (48, 192, 16), (16, 384, 16)]


def flags(dice: random.Random, m: int, k: int, n: int) -> Case:
    """The clocks step by step, for copies that follow each other without a gap."""
    A, B = rows(dice, m, k), rows(dice, k, n)
    per_clock = {"copy": 110, "L0A": 512, "L0B": 256, "out": 86}

    def clocks(nbytes: int, where: str) -> int:
        return -(-nbytes // per_clock[where])

    copied = 0
    for _ in range(0, k, 64):
        copied += clocks(m * 128, "copy") + clocks(n * 128, "copy")
    end = copied + clocks(m * 128, "L0A") + clocks(n * 128, "L0B")
    end += (m // 16) * (n // 16) * 4 + clocks(4 * m * n, "out")
    return Case((A, B), wants(product(A, B), clocks=int(1.05 * end)))
