"""Kernels as a tester would write them: against plain numpy, and all counters with the oracle."""

import itertools

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch

TEXT = """
import math
N = 64

def swap_if(s, i, j, up):
    if (s[i] > s[j]) == up:
        s[i], s[j] = s[j], s[i]

def bitonic(out, a):
    s = cuda.shared.array(N, float32)
    t = cuda.threadIdx.x
    s[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    k = 2
    while k <= N:
        j = k // 2
        while j > 0:
            other = t ^ j
            if other > t:
                swap_if(s, t, other, (t & k) == 0)
            cuda.syncthreads()
            j >>= 1
        k <<= 1
    out[cuda.grid(1)] = s[t]

def blelloch(out, a):
    s = cuda.shared.array(N, float32)
    t = cuda.threadIdx.x
    s[t] = a[cuda.grid(1)]
    d = 1
    while d < N:
        cuda.syncthreads()
        i = (t + 1) * 2 * d - 1
        if i < N:
            s[i] += s[i - d]
        d *= 2
    if t == 0:
        s[N - 1] = 0
    while d > 1:
        d //= 2
        cuda.syncthreads()
        i = (t + 1) * 2 * d - 1
        if i < N:
            s[i - d], s[i] = s[i], s[i] + s[i - d]
    cuda.syncthreads()
    out[cuda.grid(1)] = s[t]

def hillis(out, a):
    s = cuda.shared.array((2, N), float32)
    t = cuda.threadIdx.x
    here, d = 0, 1
    s[0, t] = a[cuda.grid(1)]
    cuda.syncthreads()
    while d < N:
        s[1 - here, t] = s[here, t] + (s[here, t - d] if t >= d else float32(0))
        here = 1 - here
        cuda.syncthreads()
        d *= 2
    out[cuda.grid(1)] = s[here, t]

def spmv(out, start, column, value, x):
    row = cuda.grid(1)
    if row < out.shape[0]:
        acc = 0.0
        for k in range(start[row], start[row + 1]):
            acc += value[k] * x[column[k]]
        out[row] = acc

def softmax(out, a):
    s = cuda.shared.array(0, float32)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    most = -math.inf
    for j in range(t, a.shape[1], cuda.blockDim.x):
        most = max(most, a[row, j])
    for d in (16, 8, 4, 2, 1):
        most = max(most, cuda.shfl_xor_sync(0xffffffff, most, d))
    total = 0.0
    for j in range(t, a.shape[1], cuda.blockDim.x):
        total += math.exp(a[row, j] - most)
    s[t] = total
    cuda.syncthreads()
    if t == 0:
        for j in range(1, cuda.blockDim.x):
            s[0] += s[j]
    cuda.syncthreads()
    for j in range(t, a.shape[1], cuda.blockDim.x):
        out[row, j] = math.exp(a[row, j] - most) / s[0]

def mandelbrot(out, low, step, most):
    x, y = cuda.grid(2)
    if x >= out.shape[1] or y >= out.shape[0]:
        return
    cr, ci = low + x * step, low + y * step
    re = im = 0.0
    for n in range(most):
        re, im = re * re - im * im + cr, 2 * re * im + ci
        if re * re + im * im > 4.0:
            break
    else_n = n
    out[y, x] = else_n

def life(out, a):
    x, y = cuda.grid(2)
    h, w = a.shape
    n = 0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dx or dy:
                n += a[(y + dy) % h, (x + dx) % w]
    out[y, x] = 1 if n == 3 or (n == 2 and a[y, x]) else 0

def compact(out, taken, a):
    i = cuda.grid(1)
    keep = a[i] > 0
    ballot = cuda.ballot_sync(0xffffffff, keep)
    base = 0
    if cuda.laneid == 0:
        base = cuda.atomic.add(taken, 0, cuda.popc(ballot))
    base = cuda.shfl_sync(0xffffffff, base, 0)
    if keep:
        out[base + cuda.popc(ballot & cuda.lanemask_lt())] = a[i]

def fft(re, im):
    t = cuda.threadIdx.x
    sr = cuda.shared.array(N, float64)
    si = cuda.shared.array(N, float64)
    back = cuda.brev(uint32(t)) >> 26
    sr[t], si[t] = re[back], im[back]
    half = 1
    while half < N:
        cuda.syncthreads()
        if t < N // 2:
            i = t // half * 2 * half + t % half
            angle = -math.pi * (t % half) / half
            c, s = math.cos(angle), math.sin(angle)
            pr = sr[i + half] * c - si[i + half] * s
            pi = sr[i + half] * s + si[i + half] * c
            sr[i], sr[i + half] = sr[i] + pr, sr[i] - pr
            si[i], si[i + half] = si[i] + pi, si[i] - pi
        half *= 2
    cuda.syncthreads()
    re[t], im[t] = sr[t], si[t]

def kmeans(out, count, points, centres):
    i = cuda.grid(1)
    best, least = -1, math.inf
    for k in range(centres.shape[0]):
        d = 0.0
        for j in range(2):
            d += (points[i, j] - centres[k, j]) ** 2
        if d < least:
            best, least = k, d
    out[i] = best
    cuda.atomic.add(count, best, 1)

def search(first, text, word):
    i = cuda.grid(1)
    if i + word.size > text.size:
        return
    for k, letter in enumerate(word):
        if text[i + k] != letter:
            return
    cuda.atomic.min(first, 0, i)

def heat3(out, a):
    x, y, z = cuda.grid(3)
    nz, ny, nx = a.shape
    if 0 < x < nx - 1 and 0 < y < ny - 1 and 0 < z < nz - 1:
        out[z, y, x] = (a[z, y, x - 1] + a[z, y, x + 1] + a[z, y - 1, x] + a[z, y + 1, x]
                        + a[z - 1, y, x] + a[z + 1, y, x]) / 6

def transpose(out, a):
    s = cuda.shared.array((16, 17), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        s[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 16 + tx
    y = cuda.blockIdx.x * 16 + ty
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = s[tx, ty]

def warp_sum(v):
    for d in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xffffffff, v, d)
    return v

def layernorm(out, a, eps):
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    v = a[row, t]
    mean = cuda.shfl_sync(0xffffffff, warp_sum(v), 0) / 32
    var = cuda.shfl_sync(0xffffffff, warp_sum((v - mean) ** 2), 0) / 32
    out[row, t] = (v - mean) / math.sqrt(var + eps)

def nbody(out, p, soft):
    i = cuda.grid(1)
    for k in range(p.shape[0]):
        d = p[k] - p[i]
        out[i] += d / (d * d + soft) ** 1.5 + d ** (k % 4) * 1e-6

def topk(out, a):
    own = cuda.local.array(3, float32)
    for k in range(3):
        own[k] = -1e30
    row = cuda.grid(1)
    for v in a[row]:
        for k in range(3):
            if v > own[k]:
                own[k], v = v, own[k]
    for k in range(3):
        out[row, k] = own[k]
"""
KERNELS = kernels_from_text(TEXT, "<hostile>")
RNG = np.random.default_rng(5)
A = RNG.integers(-9, 9, 128).astype(np.float32)
M = RNG.random((5, 70)).astype(np.float32)
BOARD = RNG.integers(0, 2, (16, 16)).astype(np.int32)
CUBE = RNG.random((5, 6, 9))
POINTS, CENTRES = RNG.random((64, 2)), RNG.random((5, 2))
WORD = np.frombuffer(b"ring", np.uint8)
TALE = np.frombuffer(b"bring a string of rings to the ring", np.uint8)
ROWS = A.reshape(2, 64).astype(float)
START = np.array([0, 2, 2, 5, 9], np.int32)
COLUMN, VALUES, VECTOR = RNG.integers(0, 6, 9).astype(np.int32), RNG.random(9), RNG.random(6)
PART = RNG.random((21, 30)).astype(np.float32)


def mandelbrot():
    found = np.zeros((9, 11), np.int64)
    for y in range(9):
        for x in range(11):
            c, z = complex(-1.5 + 0.25 * x, -1.5 + 0.25 * y), 0j
            for n in range(20):
                z = z * z + c
                found[y, x] = n
                if abs(z) ** 2 > 4:
                    break
    return found


def alive():
    n = sum(np.roll(BOARD, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)
            if dx or dy)
    return (n == 3) | ((n == 2) & (BOARD == 1))


def heat():
    found, a = np.zeros_like(CUBE), CUBE
    found[1:-1, 1:-1, 1:-1] = (
        a[1:-1, 1:-1, :-2] + a[1:-1, 1:-1, 2:] + a[1:-1, :-2, 1:-1] + a[1:-1, 2:, 1:-1]
        + a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1]) / 6
    return found


def nearest():
    return ((POINTS[:, None] - CENTRES) ** 2).sum(2).argmin(1)


WAVE = np.fft.fft(A[:64] + 1j * A[64:])
SOFT = np.exp(M - M.max(1, keepdims=True))
H, D = M[:, :32], A[:64].astype(float) - A[:64, None]
# name -> grid, block, arguments, bytes of dynamic shared memory, what the first arguments become
CASES = {
    "bitonic": (2, 64, (A * 0, A), 0, [np.sort(ROWS).ravel()]),
    "blelloch": (2, 64, (A * 0, A), 0, [(ROWS.cumsum(1) - ROWS).ravel()]),
    "hillis": (2, 64, (A * 0, A), 0, [ROWS.cumsum(1).ravel()]),
    "spmv": (1, 32, (np.zeros(4), START, COLUMN, VALUES, VECTOR), 0, [
        [VALUES[a:b] @ VECTOR[COLUMN[a:b]] for a, b in itertools.pairwise(START)]]),
    "softmax": (5, 32, (M * 0, M), 128, [SOFT / SOFT.sum(1, keepdims=True)]),
    "mandelbrot": ((2, 2), (8, 8), (np.zeros((9, 11), np.int64), -1.5, 0.25, 20), 0,
                   [mandelbrot()]),
    "life": ((2, 4), (8, 4), (BOARD * 0, BOARD), 0, [alive()]),
    "compact": (4, 32, (A * 0, np.zeros(1, np.int32), A), 0, [
        np.concatenate([A[A > 0], 0 * A[A <= 0]]), [(A > 0).sum()]]),
    "fft": (1, 64, (A[:64].astype(float), A[64:].astype(float)), 0, [WAVE.real, WAVE.imag]),
    "kmeans": (2, 32, (np.zeros(64, np.int32), np.zeros(5, np.int32), POINTS, CENTRES), 0, [
        nearest(), np.bincount(nearest(), minlength=5)]),
    "search": (2, 32, (np.full(1, 99), TALE, WORD), 0, [[TALE.tobytes().find(b"ring")]]),
    "heat3": ((2, 2, 2), (5, 3, 3), (CUBE * 0, CUBE), 0, [heat()]),
    "transpose": ((2, 2), (16, 16), (np.zeros((30, 21), np.float32), PART), 0, [PART.T]),
    "layernorm": (5, 32, (H * 0, H, 1e-5), 0, [
        (H - H.mean(1, keepdims=True)) / np.sqrt(H.var(1, keepdims=True) + 1e-5)]),
    "nbody": (1, 64, (A[:64] * 0.0, A[:64], 0.01), 0, [
        (D / (D * D + 0.01) ** 1.5 + D ** (np.arange(64) % 4) * 1e-6).sum(1)]),
    "topk": (1, 5, (np.zeros((5, 3), np.float32), M), 0, [np.sort(M)[:, :-4:-1]]),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy_and_the_oracle(name):
    grid, block, arguments, shared, expected = CASES[name]
    found = []
    for executor in ("simt", "oracle"):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        report = launch(KERNELS[name], grid, block, *own, executor=executor, shared_bytes=shared)
        found.append((own, report.counters.by_line))
    for one, right in zip(found[0][0], expected, strict=False):
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-9)
    for one, other in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_lock_between_blocks_is_refused(executor):
    lock = kernels_from_text(
        "def f(lock, total):\n    while cuda.atomic.cas(lock, 0, 0, 1) != 0:\n        pass\n"
        "    total[0] += 1.0\n    cuda.atomic.exch(lock, 0, 0)\n")["f"]
    with pytest.raises(KernelError) as caught:
        launch(lock, 2, 32, np.zeros(1, np.int32), np.zeros(1), executor=executor)
    assert caught.value.kind == "spin_wait"
