"""Hidden cases of the plain functions of gpu. Never handed out: the grader alone calls with these.

Wanted values are counted one by one: lanes, blocks, tiles; `test_references_gpu.py` compares them
with the library's formulas.
"""

from __future__ import annotations

import random
from fractions import Fraction

from distlearn.grading import Case


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    return {
        "gpu/sectors": [Case(x, sectors(*x)) for x in SECTORS],
        "gpu/banks": [Case(x, wavefronts(*x)) for x in BANKS],
        "gpu/occupancy": [Case(x, resident(*x)) for x in OCCUPANCY],
        "gpu/roofline": [Case(x, gemm_time(*x)) for x in ROOFLINE],
        "gpu/waves": [Case(x, utilisation(*x)) for x in WAVES],
        "gpu/counters": [Case((x,), efficiencies(x)) for x in profiles()],
        "gpu/cube": [Case(x, tile(*x)) for x in CUBE],
    }


SECTORS = [(0, 3, 4), (4, 1, 4), (28, 1, 4), (0, 8, 4), (0, 1, 8), (8, 1, 8), (24, 2, 8), (0, 0, 4),
           (12, 7, 4), (64, 5, 8), (96, 1, 4), (20, 9, 4)]


def sectors(start: int, stride: int, size: int) -> int:
    """Mark every byte that a lane takes."""
    touched = set()
    for lane in range(32):
        for byte in range(size):
            touched.add((start + lane * stride * size + byte) // 32)
    return len(touched)


BANKS = [(32, 1), (32, 2), (32, 8), (32, 48), (32, 64), (16, 32), (16, 64), (4, 8), (1, 32),
         (20, 24), (5, 16), (31, 40)]


def wavefronts(rows: int, width: int) -> int:
    """Serve one word of each bank at a time until all have theirs."""
    waiting = [lane * width for lane in range(rows)]
    count = 0
    while waiting:
        count += 1
        served = {word % 32: word for word in waiting}
        waiting = [word for word in waiting if word != served[word % 32]]
    return count


OCCUPANCY = [(32, 0, 0), (64, 33, 0), (1024, 32, 0), (1024, 64, 0), (96, 40, 8192),
             (256, 63, 16384), (1, 16, 0), (33, 24, 1024), (512, 48, 83968), (128, 8, 166912),
             (640, 30, 0), (192, 56, 32768), (256, 32, 167936), (33, 9, 128)]


def resident(threads: int, registers: int, shared: int) -> list[int]:
    """Add blocks as long as one more fits."""
    warps = len(range(0, threads, 32))
    per_warp = 0
    while per_warp < 32 * registers:
        per_warp += 256
    quarter = 0
    while (quarter + 1) * per_warp <= 16384 and quarter < 16:
        quarter += 1
    blocks = 0
    while (blocks < 32 and (blocks + 1) * warps <= 64
           and (blocks + 1) * warps <= 4 * quarter
           and (blocks + 1) * (shared + 1024) <= 167936):
        blocks += 1
    return [blocks, blocks * warps]


ROOFLINE = [(16, 1, 1e9, 1e9), (16, 16, 1e9, 1e9), (128, 32, 1e10, 1e9), (128, 32, 1e9, 1e10),
            (1024, 64, 19.5e12, 2.039e12), (1024, 8, 19.5e12, 2.039e12),
            (512, 128, 3.12e14, 2e12), (96, 12, 7e9, 3e9), (1, 1, 1e3, 1e3)]


def gemm_time(n: int, tile: int, peak: float, bandwidth: float) -> float:
    """Tile by tile."""
    flops = moved = 0
    for _ in range(0, n, tile):
        for _ in range(0, n, tile):
            moved += 4 * (tile * n + n * tile)  # rows of A, columns of B
            moved += 4 * tile * tile
            flops += tile * tile * n * 2
    return float(max(Fraction(flops) / Fraction(peak), Fraction(moved) / Fraction(bandwidth)))


WAVES = [(128, 128, 128, 128, 1), (129, 128, 128, 128, 1), (1024, 1024, 128, 128, 108),
         (100, 300, 64, 32, 7), (1, 1, 16, 16, 4), (4096, 50257, 128, 256, 108),
         (300, 300, 64, 64, 8), (512, 512, 128, 128, 16), (512, 513, 128, 128, 16),
         (96, 96, 32, 48, 2), (70, 500, 64, 16, 3)]


def utilisation(m: int, n: int, tile_m: int, tile_n: int, sms: int) -> float:
    """Deal out the tiles, one to each SM, round by round."""
    rounds, at = 1, 0
    for _ in range(0, m, tile_m):
        for _ in range(0, n, tile_n):
            if at == sms:
                rounds, at = rounds + 1, 0
            at += 1
    return float(Fraction(m * n, rounds * sms * tile_m * tile_n))


def profiles() -> list[dict[str, int]]:
    """Counters of launches, some without shared memory, loads or branches."""
    dice = random.Random(3)
    found = []
    for k in range(10):
        loads, shared, branches = dice.randint(1, 90), dice.randint(1, 90), dice.randint(1, 90)
        if k in (2, 7):
            loads = 0
        if k in (3, 7):
            shared = 0
        if k in (4, 7):
            branches = 0
        found.append({
            "global_load_requests": loads, "global_load_sectors": loads * dice.randint(4, 32),
            "shared_load_requests": shared, "shared_load_wavefronts": shared * dice.randint(1, 32),
            "branches": branches, "divergent_branches": branches // dice.randint(1, 4)})
    return found


def efficiencies(counters: dict[str, int]) -> list[float]:
    """Exact fractions of the counts."""
    pairs = [(4 * counters["global_load_requests"], counters["global_load_sectors"]),
             (counters["shared_load_requests"], counters["shared_load_wavefronts"]),
             (counters["branches"] - counters["divergent_branches"], counters["branches"])]
    return [float(Fraction(a, b)) if b else 1.0 for a, b in pairs]


CUBE = [(65536, 65536, 131072, 32), (65536, 65536, 131072, 256), (65536, 65536, 131072, 16),
        (32768, 65536, 131072, 64), (65536, 65536, 65536, 64), (65536, 65536, 262144, 32),
        (65536, 16384, 131072, 64), (65536, 65536, 131072, 48), (65536, 65536, 131072, 1040),
        (131072, 65536, 262144, 96), (65536, 65536, 512, 64)]


def tile(l0a: int, l0b: int, l0c: int, k: int) -> list[int]:
    """Every tile up to 4096 rows and columns."""
    best, found = Fraction(0), [0, 0]
    for m in range(16, 4097, 16):
        if 2 * (m * k * 2) > l0a:
            break
        for n in range(16, 4097, 16):
            if 2 * (n * k * 2) > l0b or m * n * 4 > l0c:
                break
            value = Fraction(m * n, m + n)
            if value > best or (value == best and m > found[0]):
                best, found = value, [m, n]
    return found
