"""What teaching kernels in CUDA C use beyond loops and arrays: the same counts as Python's, line by
line."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from distlearn.kernels import (
    KernelError,
    cuda,
    cuda_c,
    float16,
    float32,
    int32,
    kernel,
    load4,
    store4,
)

HERE = Path(__file__).parent
PROGRAM = cuda_c.load(HERE / "language.cu")
RNG = np.random.default_rng(8)
ALL = 0xffffffff


@kernel
def warp_all_sum(value):
    mask = 16
    while mask > 0:  # z
        value += cuda.shfl_xor_sync(ALL, value, mask)  # a
        mask >>= 1
    return value


@kernel
def block_sums(in_, out, n):
    sums = cuda.shared.array(32, float32)
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    mine = float32(0)
    i = cuda.grid(1)
    while i < n:  # y
        mine += in_[i]  # b
        i += cuda.gridsize(1)
    mine = warp_all_sum(mine)
    if lane == 0:  # c
        sums[warp] = mine  # d
    cuda.syncthreads()  # e
    if warp == 0:  # f
        mine = sums[lane] if lane < (cuda.blockDim.x + 31) // 32 else float32(0)  # g
        mine = warp_all_sum(mine)
        if lane == 0:  # h
            out[cuda.blockIdx.x] = mine  # i


@kernel
def compact(in_, out, count, n):
    i, lane = cuda.grid(1), cuda.laneid
    keep = i < n and in_[i] > 0  # a
    votes = cuda.ballot_sync(ALL, keep)
    if votes == 0:  # b
        return
    leader = cuda.ffs(votes) - 1
    at = 0
    if lane == leader:  # c
        at = cuda.atomic.add(count, 0, cuda.popc(votes))  # d
    at = cuda.shfl_sync(ALL, at, leader)
    at += cuda.popc(votes & cuda.lanemask_lt())
    if keep:  # e
        out[at] = in_[i]  # f


@kernel
def match_histogram(data, bins, n):
    i = cuda.grid(1)
    if i >= n:  # a
        return
    active = cuda.activemask()
    peers = cuda.match_any_sync(active, data[i])  # b
    everybody, alike = cuda.match_all_sync(active, data[i])  # c
    if cuda.ffs(peers) - 1 == cuda.laneid:  # d
        cuda.atomic.add(bins, data[i], cuda.popc(everybody if alike else peers))  # e


@kernel
def atomic_product(array, at, factor, modulus):
    old = cuda.atomic.add(array, at, 0)  # a
    assumed = old
    old = cuda.atomic.cas(array, at, assumed, assumed * factor % modulus)  # b
    while assumed != old:  # c
        assumed = old
        old = cuda.atomic.cas(array, at, assumed, assumed * factor % modulus)  # b


@kernel
def atomics(in_, out, wrapped, modulus):
    i = cuda.threadIdx.x
    atomic_product(out, 0, in_[i], modulus)  # m
    cuda.atomic.max(out, 1, in_[i])  # d
    cuda.atomic.min(out, 2, in_[i])  # e
    cuda.atomic.exch(out, 3 + i, in_[i])  # f
    cuda.atomic.or_(out, 35, 1 << in_[i] % 31)  # g
    cuda.atomic.and_(out, 36, ~(1 << in_[i] % 31))  # h
    cuda.atomic.xor(out, 37, in_[i])  # i
    cuda.atomic.sub(out, 38, in_[i])  # j
    cuda.atomic.inc(wrapped, 0, 5)  # k
    cuda.atomic.dec(wrapped, 1, 6)  # l


@kernel
def transpose_rows(odata, idata):
    tile = cuda.shared.array((16, 17), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * 16 + tx, cuda.blockIdx.y * 16 + ty
    for j in range(0, 16, 4):
        tile[ty + j, tx] = idata[y + j, x]  # a
    cuda.syncthreads()  # b
    x, y = cuda.blockIdx.y * 16 + tx, cuda.blockIdx.x * 16 + ty
    for j in range(0, 16, 4):
        odata[y + j, x] = tile[tx, ty + j]  # c


@kernel
def argmin(in_, least, place, n):
    values = cuda.shared.array(0, float32)
    places = cuda.shared.array(0, int32)[cuda.blockDim.x:]
    t, i = cuda.threadIdx.x, cuda.grid(1)
    values[t] = in_[i] if i < n else float32("inf")  # a
    places[t] = i  # b
    s = cuda.blockDim.x // 2
    while s > 0:  # z
        cuda.syncthreads()  # c
        if t < s and values[t + s] < values[t]:  # d
            values[t] = values[t + s]  # e
            places[t] = places[t + s]  # f
        s >>= 1
    if t == 0:  # g
        least[cuda.blockIdx.x] = values[0]  # h
        place[cuda.blockIdx.x] = places[0]  # i


@kernel
def vectors(a, b, from_, out, n):
    i = cuda.grid(1)
    if 4 * i >= n:  # a
        return
    u = load4(a, 4 * i)  # b
    v = load4(b, 4 * i)  # c
    x, y, z, w = u.x + v.x, u.y + v.y, u.z - v.z, u.w * v.w  # d
    where = load4(from_, 4 * i)  # e
    out[where.x] = x  # f
    out[where.y] = y  # g
    out[where.z] = z  # h
    out[where.w] = w  # i


@kernel
def halves(a, x, y, norm):
    i = cuda.grid(1)
    made = cuda.fp16.hadd(cuda.fp16.hmul(a, x[i]), y[i])  # a
    if cuda.fp16.hgt(made, float16(2)):  # b
        made = made - a  # c
    y[i] = made  # d
    wide = float32(made)
    cuda.atomic.add(norm, 0, wide * wide)  # e


@kernel
def gemv(A, x, y, rows, columns):
    row, lane = cuda.grid(1) // 32, cuda.laneid
    if row >= rows:  # a
        return
    total = float32(0)
    for c in range(lane, columns, 32):
        total += A[row, c] * x[c]  # b
    offset = 16
    while offset:  # z
        total += cuda.shfl_down_sync(ALL, total, offset)  # c
        offset >>= 1
    if lane == 0:  # d
        y[row] = total  # d


@kernel
def alive(cells, x, y, w, h):
    return 1 if 0 <= x and x < w and 0 <= y and y < h and cells[y, x] else 0  # a


@kernel
def life(before, after, w, h):
    x, y = cuda.grid(2)
    if x >= w or y >= h:  # b
        return
    around = 0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if dx or dy:  # c
                around += alive(before, x + dx, y + dy, w, h)
    after[y, x] = around == 3 or (around == 2 and before[y, x] != 0)  # d


@kernel
def machine(program, start, result, length, most):
    t, at, turns = cuda.threadIdx.x, 0, 0
    value = start[t]  # a
    for _ in range(2**31 - 1):
        op = program[at]  # b
        at = (at + 1) % length
        if op == 0:  # c
            value += t
        elif op == 1:  # c
            if value & 1:  # d
                turns += 1
                if turns >= most:  # g
                    break
                continue
            value //= 2
        elif op == 2 or op == 3:  # c
            value = 3 * value + 1
        else:
            result[t] = value % 1000  # e
            return
        if value > 100000:  # f
            break
        turns += 1
        if turns >= most:  # g
            break
    result[t] = -turns  # h


@kernel
def order(s, a, b, up):
    if (s[a] > s[b]) == up:  # a
        held = s[a]  # b
        s[a] = s[b]  # c
        s[b] = held  # d


@kernel
def bitonic(keys):
    s = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    s[t] = keys[t]  # e
    cuda.syncthreads()  # f
    k = 2
    while k <= cuda.blockDim.x:  # g
        j = k >> 1
        while j > 0:  # h
            other = t ^ j
            if other > t:  # i
                order(s, t, other, (t & k) == 0)
            cuda.syncthreads()  # j
            j >>= 1
        k <<= 1
    keys[t] = s[t]  # k


@kernel
def horner(x, y, n, coefficients):
    i = cuda.grid(1)
    if i < n:  # a
        value = coefficients[5]  # b
        for k in range(4, -1, -1):
            value = value * x[i] + coefficients[k]  # c
        y[i] = value  # d


@kernel
def bodies(count, softening, step, system, velocity):
    tile = cuda.shared.array(4 * 32, float32)
    i = cuda.grid(1)
    mine = load4(system, 4 * i)  # g
    sx = sy = sz = float32(0)
    for first in range(0, count, cuda.blockDim.x):
        store4(tile, 4 * cuda.threadIdx.x, load4(system, 4 * (first + cuda.threadIdx.x)))  # h
        cuda.syncthreads()  # i
        for j in range(cuda.blockDim.x):
            other = load4(tile, 4 * j)  # j
            rx, ry, rz = other.x - mine.x, other.y - mine.y, other.z - mine.z  # a
            inverse = float32(1) / math.sqrt(rx * rx + ry * ry + rz * rz + softening)  # b
            force = other.w * inverse * inverse * inverse  # c
            sx += rx * force  # d
            sy += ry * force  # e
            sz += rz * force  # f
        cuda.syncthreads()  # k
    velocity[3 * i] += sx * step  # l
    velocity[3 * i + 1] += sy * step  # m
    velocity[3 * i + 2] += sz * step  # n


def floats(*shape):
    return RNG.random(shape, dtype=np.float32)


def whole(low, high, *shape):
    return RNG.integers(low, high, shape, dtype=np.int32)


def game(cells):
    padded = np.pad(cells, 1).astype(int)
    h, w = cells.shape
    around = sum(padded[y:y + h, x:x + w] for y in range(3) for x in range(3)) - cells
    return (around == 3) | ((around == 2) & (cells == 1))


def run_machine(program, value, t, most):
    at = 0
    for _ in range(most):
        op, at = program[at], (at + 1) % len(program)
        if op == 0:
            value += t
        elif op == 1:
            value = value // 2 if value % 2 == 0 else value
            if value % 2:
                continue
        elif op in (2, 3):
            value = 3 * value + 1
        else:
            return value % 1000
        if value > 100000:
            return None
    return None


def attraction(bodies):
    r = bodies[None, :, :3].astype(float) - bodies[:, None, :3]
    inverse = 1 / np.sqrt((r ** 2).sum(-1) + 0.25)
    return (r * (bodies[None, :, 3] * inverse ** 3)[..., None]).sum(1)


X, D, SIGNED, VALUES = floats(300), whole(0, 5, 100), whole(-9, 9, 150), whole(1, 99, 32)
KEYS, WEIGHTS, H = whole(0, 99, 64), floats(6), floats(32).astype(np.float16) * 3
A, V, CELLS = floats(3, 70), floats(70), whole(0, 2, 7, 13).astype(np.uint8)
TILES, FROM = floats(48, 32), RNG.permutation(96).astype(np.int32)
U, W, BODIES = floats(96), floats(96), floats(64, 4)
PROGRAM_OF = np.array([2, 1, 0, 3, 1, 1], np.int32)
ZEROS = {n: np.zeros(n, np.float32) for n in (1, 2, 3, 50, 96, 192)}
LEAST = [int(np.argmin(X[:64])), 64 + int(np.argmin(X[64:100]))]


def vectors_right(a):
    made = np.zeros(96, np.float32)
    parts = np.array([U[0::4] + W[0::4], U[1::4] + W[1::4], U[2::4] - W[2::4], U[3::4] * W[3::4]])
    made[FROM] = parts.T.ravel()
    return a[3], made


def atomics_right(a):
    product = 1
    for value in VALUES.tolist():
        product = product * value % 10007
    bits = np.bitwise_or.reduce(1 << VALUES % 31)
    rest = np.bitwise_and.reduce(~(1 << VALUES % 31))
    return a[1], [product, max(VALUES), min(VALUES), *VALUES, bits, rest,
                  np.bitwise_xor.reduce(VALUES), -VALUES.sum()]


START = np.r_[1, 0, 10**6, np.zeros(32, int), 0, -1, 0, 0].astype(np.int32)
# kernel: twin, grid, block, arguments, dynamic bytes, what comes out and what is right
CASES = {
    "block_sums": (block_sums, 2, 96, (X, ZEROS[2], 300), 0, lambda a: (
        a[1], [X[:96].sum() + X[192:288].sum(), X[96:192].sum() + X[288:].sum()])),
    "compact": (compact, 3, 64, (SIGNED, whole(0, 1, 150), np.zeros(1, np.uint32), 150), 0,
                lambda a: (a[1], np.pad(SIGNED[SIGNED > 0], (0, (SIGNED <= 0).sum())))),
    "match_histogram": (match_histogram, 2, 64, (D, whole(0, 1, 5), 100), 0, lambda a: (
        a[1], np.bincount(D, minlength=5))),
    "atomics": (atomics, 1, 32, (VALUES, START, np.zeros(2, np.uint32), 10007), 0, atomics_right),
    "transpose_rows": (transpose_rows, (2, 3), (16, 4), (floats(32, 48), TILES), 0, lambda a: (
        a[0], TILES.T)),
    "argmin": (argmin, 2, 64, (X, ZEROS[2], whole(0, 1, 2), 100), 512, lambda a: (
        np.r_[a[1], a[2]], np.r_[X[LEAST], LEAST])),
    "vectors": (vectors, 1, 32, (U, W, FROM, ZEROS[96], 96), 0, vectors_right),
    "halves": (halves, 1, 32, (np.float16(0.5), H, H, ZEROS[1]), 0, lambda a: (
        a[2], np.where(H * 1.5 > 2, H * 1.5 - 0.5, H * 1.5))),
    "gemv": (gemv, 2, 64, (A, V, ZEROS[3], 3, 70), 0, lambda a: (a[2], A.astype(float) @ V)),
    "life": (life, (2, 2), (8, 4), (CELLS, whole(0, 1, 7, 13).astype(np.uint8), 13, 7), 0,
             lambda a: (a[1], game(CELLS))),
    "machine": (machine, 1, 32, (PROGRAM_OF, whole(0, 20, 32), whole(0, 1, 32), 6, 20), 0,
                lambda a: None),
    "bitonic": (bitonic, 1, 64, (KEYS,), 256, lambda a: (a[0], np.sort(KEYS))),
    "horner": (horner, 2, 32, (X, ZEROS[50], 50), 0, lambda a: (
        a[1], np.polyval(WEIGHTS[::-1].astype(float), X[:50]))),
    "bodies": (bodies, 2, 32, (64, np.float32(0.25), np.float32(0.5), BODIES.ravel(),
                               np.zeros(192, np.float32)), 0,
               lambda a: (a[4].reshape(64, 3), 0.5 * attraction(BODIES))),
}


def tagged(counters, lines, mark):
    """Counts by the letter at the end of each line that counts something."""
    made = {}
    for number, counts in counters.by_line.items():
        letter = re.search(mark + r" ([a-z])$", lines[number - 1])
        assert letter, lines[number - 1]
        for key, count in counts.items():
            made[letter[1], key] = made.get((letter[1], key), 0) + count
    return {key: count for key, count in made.items() if count}


@pytest.mark.parametrize("name", CASES)
def test_twins_agree_line_by_line(name):
    twin, grid, block, arguments, shared, expected = CASES[name]
    theirs = (HERE / "language.cu").read_text().splitlines()
    mine_ = Path(__file__).read_text(encoding="utf-8").splitlines()
    outcomes = []
    for how in ("python", "simt", "oracle"):
        mine = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
        if how == "python":
            extra = (WEIGHTS,) if name == "horner" else ()
            report = twin[grid, block, 0, shared](*mine, *extra)
            lines = tagged(report.counters, mine_, "  #")
        else:
            passed = mine
            if name == "bodies":
                passed = {"count": mine[0], "bodies": mine[3], "constants": {
                    "softening": mine[1], "step": mine[2]}}, mine[4]
            if name == "horner":
                PROGRAM._variable("coefficients")[:] = WEIGHTS
            report = PROGRAM[name].launch(grid, block, *passed, executor=how, shared=shared)
            lines = tagged(report.counters, theirs, "  //")
        right = expected(mine)
        if right is not None:
            np.testing.assert_allclose(right[0], right[1], rtol=2e-5)
        outcomes.append(([a.tolist() for a in mine if isinstance(a, np.ndarray)],
                         dict(report.counters), lines))
    assert outcomes[1] == outcomes[2]
    assert outcomes[0][0] == outcomes[1][0]
    assert outcomes[0][2] == outcomes[1][2]
    assert outcomes[0][1] == outcomes[1][1]


WRONG = {  # body of a kernel of 64 threads, the kind of its error, its line
    "the guide's loop reads while others swap": (
        ("int old = *x, seen;\n do { seen = old;\n old = atomicCAS(x, seen, seen + 1);\n"
         "} while (seen != old);"), "global_race", 4),
    "no barrier between warps": (
        "s[t] = t;\n x[t] = s[t ^ 32];", "race", 3),
    "two views of the same bytes": (
        "int *q = (int *)(s + 16);\n s[t] = 1;\n if (t < 48) q[t] = 2;", "race", 4),
    "a view that ends": (
        "int *q = (int *)&s[64];\n q[t] = 2;", "out_of_bounds", 3),
    "half a warp returns": (
        "if (t >= 48) return;\n s[t] = 1;\n __syncthreads();", "barrier_divergence", 4),
    "nobody wrote it": (
        "if (t < 32) s[t] = 1;\n __syncthreads();\n x[t] = s[t];", "uninitialised_shared_read", 4),
    "vectors that begin between": (
        "float4 v = reinterpret_cast<float4 *>(s + 1)[t / 8];\n x[t] = v.x;",
        "misaligned_address", 2),
}


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_has_the_line_of_the_c_source(name, executor):
    body, kind, line = WRONG[name]
    program = cuda_c.load("__global__ void k(int *x) { extern __shared__ float s[]; "
                          f"int t = threadIdx.x;\n {body}\n}}\n")
    with pytest.raises(KernelError) as caught:
        program["k"].launch(1, 64, np.zeros(64, np.int32), shared=256, executor=executor)
    assert (caught.value.kind, caught.value.line) == (kind, line)


def test_bytes_whose_place_cannot_be_seen_are_refused():
    program = cuda_c.load("__global__ void k(int *x) {\n extern __shared__ char m[];\n"
                          " float *f = (float *)(m + x[0]);\n x[0] = f[0];\n}\n")
    with pytest.raises(cuda_c.SourceError, match="multiple of the 4 bytes of a float") as caught:
        program["k"].launch(1, 1, np.zeros(1, np.int32), shared=64)
    assert caught.value.lineno == 3
