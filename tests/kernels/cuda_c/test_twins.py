"""Kernels in CUDA C and in Python: the same outputs and, counter by counter, the same counts."""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from distlearn.kernels import cuda, cuda_c, float32, int32, kernel

HERE = Path(__file__).parent
PROGRAM = cuda_c.load(HERE / "teaching.cu")
RNG = np.random.default_rng(5)


@kernel
def saxpy(n, a, x, y):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        y[i] = a * x[i] + y[i]


@kernel
def tiled(A, B, C):
    As = cuda.shared.array((8, 8), float32)
    Bs = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for t in range((A.shape[1] + 7) // 8):
        As[ty, tx] = A[row, t * 8 + tx] if (
            row < A.shape[0] and t * 8 + tx < A.shape[1]) else float32(0)
        Bs[ty, tx] = B[t * 8 + ty, col] if (
            t * 8 + ty < B.shape[0] and col < B.shape[1]) else float32(0)
        cuda.syncthreads()
        for k in range(8):
            total += As[ty, k] * Bs[k, tx]
        cuda.syncthreads()
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = total


@kernel
def transpose(out, in_, width, height):
    tile = cuda.shared.array((8, 9), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < width and y < height:
        tile[ty, tx] = in_[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 8 + tx
    y = cuda.blockIdx.x * 8 + ty
    if x < height and y < width:
        out[y, x] = tile[tx, ty]


@kernel
def reduce(in_, out, n):
    partial = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x * 2 + t
    mine = in_[i] if i < n else float32(0)
    if i + cuda.blockDim.x < n:
        mine += in_[i + cuda.blockDim.x]
    partial[t] = mine
    cuda.syncthreads()
    s = cuda.blockDim.x // 2
    while s > 0:
        if t < s:
            partial[t] += partial[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@kernel
def histogram(data, counts, n):
    local = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        local[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(local, data[i] % 16, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(counts, t, local[t])


@kernel
def stencil(in_, out, n, weights):
    window = cuda.shared.array(36, float32)
    t = cuda.threadIdx.x
    g = cuda.grid(1)
    window[t + 2] = in_[min(max(g, 0), n - 1)]
    if t < 2:
        window[t] = in_[min(max(g - 2, 0), n - 1)]
        window[t + 34] = in_[min(max(g + 32, 0), n - 1)]
    cuda.syncthreads()
    total = float32(0)
    for o in range(-2, 3):
        total += weights[o + 2] * window[t + 2 + o]
    if g < n:
        out[g] = total


@kernel
def warp_sum(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(0xffffffff, value, offset)
        offset //= 2
    return value


@kernel
def dots(a, b, out):
    i = cuda.grid(1)
    total = warp_sum(a[i] * b[i])
    if cuda.threadIdx.x % 32 == 0:
        out[i // 32] = total


@kernel
def scan(in_, out, n):
    buffer = cuda.shared.array((2, 64), int32)
    t, source, to = cuda.threadIdx.x, 0, 1
    buffer[0, t] = in_[t] if t < n else 0
    cuda.syncthreads()
    step = 1
    while step < n:
        if t >= step:
            buffer[to, t] = buffer[source, t] + buffer[source, t - step]
        else:
            buffer[to, t] = buffer[source, t]
        source, to = to, source
        cuda.syncthreads()
        step *= 2
    if t < n:
        out[t] = buffer[source, t]


@kernel
def register_tile(A, B, C, n):
    acc = cuda.local.array((2, 2), float32)
    a = cuda.local.array(2, float32)
    b = cuda.local.array(2, float32)
    x, y = cuda.grid(2)
    row, col = 2 * y, 2 * x
    for i in range(2):
        for j in range(2):
            acc[i, j] = float32(0)
    for k in range(n):
        for i in range(2):
            a[i] = A[row + i, k]
        for j in range(2):
            b[j] = B[k, col + j]
        for i in range(2):
            for j in range(2):
                acc[i, j] += a[i] * b[j]
    for i in range(2):
        for j in range(2):
            C[row + i, col + j] = acc[i, j]


@kernel
def spmv(rows, start, column, value, x, y):
    row = cuda.grid(1)
    if row >= rows:
        return
    dot = float32(0)
    for at in range(start[row], start[row + 1]):
        dot += value[at] * x[column[at]]
    y[row] = dot


@kernel
def mandelbrot(out, width, height, most):
    px, py = cuda.grid(2)
    cx = float32(3) * float32(px) / float32(width) - float32(2)
    cy = float32(2) * float32(py) / float32(height) - float32(1)
    x = float32(0)
    y = float32(0)
    turns = 0
    while turns < most:
        following = x * x - y * y + cx
        y = float32(2) * x * y + cy
        x = following
        if x * x + y * y > float32(4):
            break
        turns += 1
    out[py, px] = turns


@kernel
def centre(p, out, n):
    first = cuda.threadIdx.x * n
    weight = float32(0)
    x = float32(0)
    y = float32(0)
    for k in range(n):
        x += p[first + k, 2] * p[first + k, 0]
        y += p[first + k, 2] * p[first + k, 1]
        weight += p[first + k, 2]
    out[cuda.threadIdx.x, 0] = x / weight
    out[cuda.threadIdx.x, 1] = y / weight


def floats(*shape):
    return RNG.random(shape, dtype=np.float32)


def whole(most, *shape):
    return RNG.integers(0, most, shape, dtype=np.int32)


def matrix(array):
    return {"width": array.shape[1], "height": array.shape[0], "elements": array}


A, B, X, V = floats(13, 21), floats(21, 10), floats(200), floats(2, 96)
S, T = floats(16, 16), floats(16, 16)
D, P, W = whole(1000, 100), whole(9, 50), floats(5)
START, COLUMN = np.array([0, 3, 3, 7, 12], np.int32), whole(8, 12)

# kernel: twin, grid, block, arguments (arrays with "out" in mind last changed), expected
CASES = {
    "saxpy": (saxpy, 2, 32, (200, np.float32(3), X, floats(200)), lambda a: None),
    "tiled": (tiled, (2, 2), (8, 8), (A, B, np.zeros((13, 10), np.float32)), lambda a: (
        a[2], A.astype(float) @ B)),
    "transpose": (transpose, (3, 2), (8, 8), (np.zeros((21, 13), np.float32), A, 21, 13),
                  lambda a: (a[0], A.T)),
    "reduce": (reduce, 2, 64, (X, np.zeros(2, np.float32), 200), lambda a: (
        a[1], [X[:128].sum(), X[128:].sum()])),
    "histogram": (histogram, 4, 32, (D, np.zeros(16, np.int32), 100), lambda a: (
        a[1], np.bincount(D % 16, minlength=16))),
    "stencil": (stencil, 7, 32, (X, np.zeros(200, np.float32), 200), lambda a: (
        a[1], np.convolve(np.pad(X, 2, mode="edge"), W[::-1], "valid"))),
    "dots": (dots, 3, 32, (V[0], V[1], np.zeros(3, np.float32)), lambda a: (
        a[2], (V[0] * V[1]).reshape(3, 32).sum(1))),
    "scan": (scan, 1, 64, (P, np.zeros(50, np.int32), 50), lambda a: (a[1], np.cumsum(P))),
    "register_tile": (register_tile, (2, 2), (4, 4), (S, T, np.zeros((16, 16), np.float32), 16),
                      lambda a: (a[2], S.astype(float) @ T)),
    "spmv": (spmv, 1, 32, (4, START, COLUMN, floats(12), floats(8), np.zeros(4, np.float32)),
             lambda a: (a[5], [np.dot(a[3][i:j], a[4][COLUMN[i:j]])
                               for i, j in pairwise(START)])),
    "mandelbrot": (mandelbrot, (2, 2), (8, 4), (np.zeros((8, 16), np.int32), 16, 8, 30),
                   lambda a: None),
    "centre": (centre, 1, 4, (floats(20, 3), np.zeros((4, 2), np.float32), 5), lambda a: None),
}


@pytest.mark.parametrize("name", CASES)
def test_twins(name):
    twin, grid, block, arguments, expected = CASES[name]
    outcomes = []
    for how in ("python", "simt", "oracle"):
        mine = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
        if how == "python":
            extra = (W,) if name == "stencil" else ()
            report = twin[grid, block](*mine, *extra)
        else:
            passed = tuple(map(matrix, mine)) if name == "tiled" else mine
            if name == "stencil":
                PROGRAM._variable("weights")[:] = W
            report = PROGRAM[name].launch(grid, block, *passed, executor=how,
                                          shared=4 * 64 if name == "reduce" else 0)
        outcomes.append(([a.tolist() for a in mine if isinstance(a, np.ndarray)],
                         dict(report.counters)))
        if how != "python":
            outcomes[-1] += (report.counters.by_line,)
    right = expected(mine)
    if right is not None:
        np.testing.assert_allclose(right[0], right[1], rtol=2e-6)
    assert outcomes[0] == outcomes[1][:2]
    assert outcomes[1] == outcomes[2]


def test_lines_are_those_of_the_c_source():
    y = X.copy()
    report = PROGRAM["saxpy"][2, 32](200, 2.0, X, y)
    line = next(n for n, text in enumerate((HERE / "teaching.cu").read_text().splitlines(), 1)
                if "y[i] = a * x[i]" in text)
    assert list(report.counters.by_line) == [line]
    assert "y[i] = a * x[i] + y[i];" in report.listing().splitlines()[line - report.first_line]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_compiles_the_same_text(tmp_path):
    text = f'#include "{HERE / "teaching.cu"}"\n#define Matrix NoteMatrix\n'
    text += "typedef struct { int width, height; float *elements; } Matrix;\n"
    for name in ("listing.cu", "language.cu"):
        text += f'#include "{HERE / name}"\n'
    (tmp_path / "all.cu").write_text(text)
    made = subprocess.run(["nvcc", "-ptx", "-o", tmp_path / "all.ptx", tmp_path / "all.cu"],
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    more = (HERE / "language.cu").read_text().count("\n__global__ void")
    assert (tmp_path / "all.ptx").read_text().count(".entry") == len(CASES) + 1 + more
