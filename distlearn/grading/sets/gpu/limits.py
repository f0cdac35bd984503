"""Notebook gpu_3: what limits a kernel, races, CUDA C, and the cube core of an NPU."""

from __future__ import annotations

from math import ceil, prod

from distlearn.grading.answer import Number
from distlearn.grading.array_answer import Array
from distlearn.grading.kernel_answer import KernelAnswer
from distlearn.grading.programs import CubeProgram, KernelProgram
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
BLOCK = 64


def resident(threads: int, registers: int, shared: int, *, unit: int = 256, reserved: int = 1024,
             warps: int = 64, blocks: int = 32, up: bool = True, quarters: bool = True
             ) -> list[int]:
    """Blocks and warps on an SM by the rules of the question, some of them changed."""
    per_block = -(-threads // 32) if up else threads // 32
    limits = [blocks, warps // max(1, per_block)]
    if registers:
        per_warp = -(-registers * 32 // unit) * unit
        held = 4 * (16384 // per_warp) if quarters else 65536 // per_warp
        limits.append(held // max(1, per_block))
    limits.append(167936 // (shared + reserved) if shared + reserved else blocks)
    return [min(limits), min(limits) * per_block]


OCCUPANCY = Question(
    id="gpu/occupancy",
    title="How many blocks fit",
    function="resident",
    parameters=("threads", "registers", "shared"),
    answer=Array(noun="a list with the blocks and the warps on an SM"),
    points=4,
    sheet=3,
    cases=(
        Case((256, 32, 0), [8, 64]),
        Case((256, 64, 0), [4, 32]),
        Case((100, 40, 0), [12, 48]),
        Case((96, 40, 0), [16, 48]),
        Case((128, 32, 33536), [4, 16]),
        Case((1024, 16, 0), [2, 64]),
        Case((32, 16, 0), [32, 32]),
    ),
    mistakes=(
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared, up=False),
                "A block of 100 threads takes 4 whole warps: round up."),
        Mistake(lambda threads, registers, shared: resident(threads, 0, shared),
                "The registers are missing: 65,536 for all warps of the SM."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, 0),
                "The shared memory is missing."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared,
                                                            blocks=10**6),
                "An SM holds at most 32 blocks, however small they are."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared,
                                                            reserved=0),
                "Each block takes 1,024 bytes of shared memory more than it asks for."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared,
                                                            quarters=False),
                "Registers are in four quarters, each for its own warps: round down in each."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared)[::-1],
                "Blocks and warps are the other way round."),
        Mistake(lambda threads, registers, shared: resident(threads, registers, shared,
                                                            warps=2048),
                "An SM holds 2,048 threads: 64 warps."),
    ),
    without=("occupancy", "best_block"),
)

ROOFLINE = Question(
    id="gpu/roofline",
    title="Under the roof",
    function="gemm_time",
    parameters=("n", "tile", "peak", "bandwidth"),
    answer=Number(),
    points=3,
    sheet=3,
    cases=(
        Case((100, 10, 1e9, 1e9), 0.002),
        Case((100, 10, 1e9, 2e8), 0.0042),
        Case((64, 1, 1e12, 1e9), 0.002113536),
        Case((64, 64, 1e12, 1e12), 5.24288e-07),
    ),
    mistakes=(
        Mistake(lambda n, tile, peak, bandwidth: 2 * n**3 / peak + 4 * (
            2 * n**3 / tile + n**2) / bandwidth,
                "Computing and moving go on at the same time: the longer of the two counts, not "
                "their sum."),
        Mistake(lambda n, tile, peak, bandwidth: max(
            n**3 / peak, 4 * (2 * n**3 / tile + n**2) / bandwidth),
                "A multiplication and an addition are two FLOP: 2 n³ in all."),
        Mistake(lambda n, tile, peak, bandwidth: max(
            2 * n**3 / peak, (2 * n**3 / tile + n**2) / bandwidth),
                "A number has 4 bytes."),
        Mistake(lambda n, tile, peak, bandwidth: max(2 * n**3 / peak, 12 * n**2 / bandwidth),
                "This reads A and B once. Each tile reads its own rows of A and columns of B."),
        Mistake(lambda n, tile, peak, bandwidth: max(
            2 * n**3 / peak, 8 * n**3 / tile / bandwidth),
                "The result is written as well: n² numbers."),
        Mistake(lambda n, tile, peak, bandwidth: min(
            2 * n**3 / peak, 4 * (2 * n**3 / tile + n**2) / bandwidth),
                "The slower of the two decides: the longer time."),
    ),
    without=("roofline",),
)

WAVES = Question(
    id="gpu/waves",
    title="Tiles and waves",
    function="utilisation",
    parameters=("m", "n", "tile_m", "tile_n", "sms"),
    answer=Number(),
    points=3,
    sheet=3,
    cases=(
        Case((256, 256, 128, 128, 4), 1.0),
        Case((256, 256, 128, 128, 5), 0.8),
        Case((256, 320, 128, 128, 5), 0.5),
        Case((100, 100, 128, 128, 1), 0.6103515625),
    ),
    mistakes=(
        Mistake(lambda m, n, tile_m, tile_n, sms: m * n / (
            ceil(m / tile_m) * ceil(n / tile_n) * tile_m * tile_n),
                "This is the loss at the edges alone. The last wave does not fill all SMs "
                "either."),
        Mistake(lambda m, n, tile_m, tile_n, sms: ceil(m / tile_m) * ceil(n / tile_n) / (
            ceil(ceil(m / tile_m) * ceil(n / tile_n) / sms) * sms),
                "This is the loss of the last wave alone. Tiles at the edges are not full either."),
        Mistake(lambda m, n, tile_m, tile_n, sms: m * n / (
            ceil(m * n / (tile_m * tile_n) / sms) * sms * tile_m * tile_n),
                "Round up along each side: tiles at the right and at the bottom stick out."),
    ),
)

_COUNTERS = {"global_load_requests": 100, "global_load_sectors": 400, "shared_load_requests": 50,
             "shared_load_wavefronts": 50, "branches": 40, "divergent_branches": 0}

COUNTERS = Question(
    id="gpu/counters",
    title="Read the counters",
    function="efficiencies",
    parameters=("counters",),
    answer=Array(noun="a list with three fractions"),
    points=3,
    sheet=3,
    cases=(
        Case((_COUNTERS,), [1.0, 1.0, 1.0]),
        Case(({**_COUNTERS, "global_load_sectors": 3200},), [0.125, 1.0, 1.0]),
        Case(({**_COUNTERS, "shared_load_wavefronts": 1600},), [1.0, 0.03125, 1.0]),
        Case(({**_COUNTERS, "divergent_branches": 10},), [1.0, 1.0, 0.75]),
        Case(({**_COUNTERS, "shared_load_requests": 0, "shared_load_wavefronts": 0},),
             [1.0, 1.0, 1.0]),
    ),
    mistakes=(
        Mistake(lambda counters: [
            counters["global_load_sectors"] / counters["global_load_requests"],
            counters["shared_load_wavefronts"] / max(1, counters["shared_load_requests"]),
            counters["divergent_branches"] / counters["branches"]],
                "These are the ratios as a profiler shows them. The share that is useful is asked "
                "for: needed over counted, 1 at best."),
        Mistake(lambda counters: [
            counters["global_load_requests"] / counters["global_load_sectors"],
            counters["shared_load_requests"] / max(1, counters["shared_load_wavefronts"]),
            1 - counters["divergent_branches"] / counters["branches"]],
                "A request of 32 lanes for 4 bytes each needs 4 sectors, not 1."),
        Mistake(lambda counters: [
            4 * counters["global_load_requests"] / counters["global_load_sectors"],
            counters["shared_load_requests"] / counters["shared_load_wavefronts"]
            if counters["shared_load_wavefronts"] else 0.0,
            1 - counters["divergent_branches"] / counters["branches"]],
                "A kernel that does not use shared memory wastes nothing there: 1."),
        Mistake(lambda counters: [
            4 * counters["global_load_requests"] / counters["global_load_sectors"],
            counters["shared_load_requests"] / max(1, counters["shared_load_wavefronts"]) or 1.0,
            counters["divergent_branches"] / counters["branches"]],
                "This is the share of branches that diverge; those that do not are asked for."),
    ),
)


def _less_max(a: list[float], block: int = BLOCK) -> list[float]:
    return [x - max(a[k // block * block:k // block * block + block]) for k, x in enumerate(a)]


def _falling(n: int) -> list[float]:
    """All negative; each block has other numbers, and its largest in the second half."""
    return [x - 30 - k // BLOCK + k % BLOCK // 32 * 3 for k, x in enumerate(numbers(n))]


def _race(n: int, a: list[float] | None = None) -> Case:
    a, grid = a or _falling(n), -(-n // BLOCK)
    return Case((grid, BLOCK, n, a, n),
                wants(_less_max(a), barriers=7, global_load_sectors=sectors(n)))


RACE = Question(
    id="gpu/race",
    title="Three faults",
    function="subtract_max",
    parameters=("grid", "block", "out", "a", "n"),
    answer=KernelAnswer({
        "barriers": ("It waits more often than it has to: one barrier after loading, and one in "
                     "each of the 6 rounds."),
        "global_load_sectors": "Each element is read once: keep it in a variable.",
    }),
    points=5,
    sheet=3,
    program=KernelProgram(),
    cases=(
        _race(4, [1.0, 5.0, 2.0, -1.0]),
        _race(64),
        _race(70),
        _race(192),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, a, n: wrote([x - max(a) for x in a]),
                "This takes the largest of all; each block has its own."),
        Mistake(lambda grid, block, out, a, n: wrote(
            [min(x, y) if k >= n // BLOCK * BLOCK else y
             for k, (x, y) in enumerate(zip(a, _less_max(a), strict=True))]),
                "Threads behind the end must not put 0 into shared memory: 0 can be larger than "
                "all elements. What is never the largest?"),
        Mistake(lambda grid, block, out, a, n: wrote(
            [x - y for x, y in zip(a, _less_max(a), strict=True)]),
                "This is the largest element itself; subtract it from a[i]."),
    ),
)


def _bias(rows: int, columns: int, x: Matrix | None = None, bias: list[float] | None = None
          ) -> Case:
    x, bias = x or matrix(rows, columns), bias or numbers(columns, 5)
    flat = [v for row in x for v in row]
    grid = (-(-columns // 32), -(-rows // 4))
    return Case((grid, (32, 4), rows * columns, flat, bias, rows, columns),
                wants([max(v + b, 0.0) for row in x for v, b in zip(row, bias, strict=True)],
                      global_store_sectors=tenth_more(row_sectors(rows, columns))))


_ALONG_ROWS = "Each warp writes a column. threadIdx.x has to run along the columns of a row."

CUDA_C = Question(
    id="gpu/cuda_c",
    title="In CUDA C",
    function="bias_relu_source",
    parameters=("grid", "block", "out", "x", "bias", "rows", "columns"),
    answer=KernelAnswer({"global_store_sectors": _ALONG_ROWS}, scattered=_ALONG_ROWS),
    points=5,
    sheet=3,
    program=KernelProgram(language="cuda", kernel="bias_relu"),
    cases=(
        _bias(2, 3, [[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], [0.0, 1.0, -1.0]),
        _bias(4, 32),
        _bias(6, 40),
        _bias(9, 17),
    ),
    mistakes=(
        Mistake(lambda grid, block, out, x, bias, rows, columns: wrote(
            [v + bias[k % columns] for k, v in enumerate(x)]),
                "Negative results become 0: that is missing."),
        Mistake(lambda grid, block, out, x, bias, rows, columns: wrote(
            [max(v, 0.0) + bias[k % columns] for k, v in enumerate(x)]),
                "The bias is added first, and what is then below 0 becomes 0."),
        Mistake(lambda grid, block, out, x, bias, rows, columns: wrote(
            [max(v, 0.0) for v in x]), "The bias is missing."),
    ),
)


def best_tile(l0a: int, l0b: int, l0c: int, k: int, *, buffers: int = 2, wide: int = 4,
              square: bool = False, area: bool = False) -> list[int]:
    """The best tile by the rules of the question, some of them changed."""
    rows = l0a // (buffers * 2 * k) // 16 * 16
    columns = l0b // (buffers * 2 * k) // 16 * 16
    found = [(m, n) for m in range(16, rows + 1, 16) for n in range(16, columns + 1, 16)
             if m * n * wide <= l0c and (m == n or not square)]
    if not found:
        return [0, 0]
    return list(max(found, key=lambda t: (prod(t) if area else prod(t) / sum(t), t)))


CUBE = Question(
    id="gpu/cube",
    title="A tile for the cube core",
    function="largest_tile",
    parameters=("l0a", "l0b", "l0c", "k"),
    answer=Array(noun="a list with m and n"),
    points=4,
    sheet=3,
    cases=(
        Case((65536, 65536, 131072, 64), [176, 176]),
        Case((65536, 65536, 131072, 128), [128, 128]),
        Case((65536, 32768, 131072, 64), [256, 128]),
        Case((65536, 65536, 262144, 64), [256, 256]),
        Case((1024, 1024, 131072, 64), [0, 0]),
    ),
    mistakes=(
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, l0c, k, buffers=1),
                "L0A and L0B hold two parts each, one that is multiplied and one that is loaded."),
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, l0c, k, wide=2),
                "The results in L0C have 4 bytes each."),
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, 10**12, k),
                "The results do not fit into L0C."),
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, l0c, k, square=True),
                "This is the best square; m and n may differ."),
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, l0c, k, area=True),
                "This is the largest area. What counts is m n / (m + n): results for each row and "
                "column that is loaded."),
        Mistake(lambda l0a, l0b, l0c, k: best_tile(l0a, l0b, l0c, k)[::-1],
                "Of two equally good tiles take the one with more rows."),
    ),
    without=("search", "predict"),
)


STEP = 64


def clocks(m: int, k: int, n: int) -> int:
    """Clocks of a program whose copies into L1 never wait: all of them, and then the last step.

    The rates are those of a 910B2 in the catalogue, in bytes a clock.
    """
    copies = ceil(m * 2 * STEP / 110) + ceil(STEP * 2 * n / 110)
    loads = ceil(m * 2 * STEP / 512) + ceil(STEP * 2 * n / 256)
    return (k // STEP * copies + loads + m // 16 * (n // 16) * (STEP // 16)
            + ceil(m * n * 4 / 86))


def _flags(m: int, k: int, n: int) -> Case:
    A, B = matrix(m, k), matrix(k, n, 5)
    return Case((A, B), wants(product(A, B), clocks=clocks(m, k, n) * 21 // 20))


FLAGS = Question(
    id="gpu/flags",
    title="Flags for a cube core",
    function="multiply",
    parameters=("A", "B"),
    answer=KernelAnswer({"clocks": (
        "The pipes wait for each other more than they have to. With two buffers at each place, "
        "used in turn, one is filled while the other is read.")}),
    points=6,
    sheet=3,
    program=CubeProgram(),
    without=("gemm", "gemm_program"),
    cases=(
        _flags(16, 64, 16),
        _flags(16, 128, 32),
        _flags(32, 192, 16),
        _flags(16, 320, 16),
    ),
    mistakes=(
        Mistake(lambda A, B: wrote(product([row[-STEP:] for row in A], B[-STEP:])),
                "This is the product of the last step alone: `mmad` adds to what is there only "
                "with accumulate=True."),
        Mistake(lambda A, B: wrote(product([row[:STEP] for row in A], B[:STEP])),
                "This is the product of the first step alone: go on along k."),
    ),
)

QUESTIONS = (OCCUPANCY, ROOFLINE, WAVES, COUNTERS, RACE, CUDA_C, CUBE, FLAGS)
