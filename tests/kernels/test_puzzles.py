"""The 14 puzzles of srush/GPU-Puzzles, solved here, give the published outputs."""

import json
from pathlib import Path

import numpy as np
import pytest

from distlearn.kernels import kernels_from_text, launch

PUZZLES = json.loads((Path(__file__).parents[1] / "data" / "gpu" / "gpu_puzzles.json").read_text())
SOLUTIONS = kernels_from_text('''
TPB = 8
WIDE = 12
def p1(out, a):
    i = cuda.threadIdx.x
    out[i] = a[i] + float32(10.0)
def p2(out, a, b):
    i = cuda.threadIdx.x
    out[i] = a[i] + b[i]
def p3(out, a, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = a[i] + float32(10.0)
def p4(out, a, n):
    i, j = cuda.grid(2)
    if i < n and j < n:
        out[i, j] = a[i, j] + float32(10.0)
def p5(out, a, b, n):
    i, j = cuda.grid(2)
    if i < n and j < n:
        out[i, j] = a[i, 0] + b[0, j]
def p9(out, a, n):
    s = cuda.shared.array(TPB, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if i < n:
        s[t] = a[i]
    cuda.syncthreads()
    if i < n:
        acc = float32(0.0)
        for j in range(max(0, t - 2), t + 1):
            acc += s[j]
        out[i] = acc
def p10(out, a, b, n):
    s = cuda.shared.array(TPB, float32)
    t = cuda.threadIdx.x
    s[t] = a[t] * b[t]
    cuda.syncthreads()
    if t == 0:
        acc = float32(0.0)
        for j in range(n):
            acc += s[j]
        out[0] = acc
def p11(out, a, b, n, m):
    s = cuda.shared.array(WIDE, float32)
    w = cuda.shared.array(TPB, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    s[t] = a[i] if i < n else float32(0.0)
    if t < m:
        w[t] = b[t]
    elif t - m < 4:
        k = i - m + TPB
        s[TPB + t - m] = a[k] if k < n else float32(0.0)
    cuda.syncthreads()
    if i < n:
        acc = float32(0.0)
        for j in range(m):
            if i + j < n:
                acc += s[t + j] * w[j]
        out[i] = acc
def p12(out, a, n):
    s = cuda.shared.array(TPB, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    s[t] = a[i] if i < n else float32(0.0)
    cuda.syncthreads()
    step = TPB // 2
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]
def p13(out, a, n):
    s = cuda.shared.array(TPB, float32)
    t = cuda.threadIdx.x
    r = cuda.blockIdx.y
    s[t] = a[r, t] if t < n else float32(0.0)
    cuda.syncthreads()
    step = TPB // 2
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[r, 0] = s[0]
def p14(out, a, b, n):
    sa = cuda.shared.array((3, 3), float32)
    sb = cuda.shared.array((3, 3), float32)
    i, j = cuda.grid(2)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    acc = float32(0.0)
    for q in range((n + 2) // 3):
        sa[x, y] = a[i, q * 3 + y] if i < n and q * 3 + y < n else float32(0.0)
        sb[x, y] = b[q * 3 + x, j] if q * 3 + x < n and j < n else float32(0.0)
        cuda.syncthreads()
        for k in range(3):
            acc += sa[x, k] * sb[k, y]
        cuda.syncthreads()
    if i < n and j < n:
        out[i, j] = acc
''', "<puzzles>")
SAME = {6: 3, 7: 4, 8: 3}  # the guarded solutions serve these launches too


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("puzzle", PUZZLES, ids=[p["name"] for p in PUZZLES])
def test_puzzle(puzzle, executor):
    number = puzzle["puzzle"]
    out = np.zeros_like(np.array(puzzle["expected"], np.float32))
    inputs = [np.array(values, np.float32) for values in puzzle["inputs"]]
    launch(SOLUTIONS[f"p{SAME.get(number, number)}"], tuple(puzzle["blocks_per_grid"]),
           tuple(puzzle["threads_per_block"]), out, *inputs, *puzzle["scalars"], executor=executor)
    np.testing.assert_array_equal(out, np.array(puzzle["expected"], np.float32))
