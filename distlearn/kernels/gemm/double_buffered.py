# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 14: two buffers. While a block multiplies one pair of tiles, the next is on its way.

Loads of the next tiles go to registers before the multiplication, from there to the other buffer
after it: the wait for memory lies behind the arithmetic, and one barrier a step is enough. The
price: twice the shared memory, and registers for what is on its way. (The published kernel lets one
half of its threads load while the other half multiplies; tile sizes are the same.)
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 256, 16
WM, WN = 128, 32
TM, TN = 8, 8
THREADS = 256


@cuda.jit
def double_buffered(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 8 warps has 128 x 256 of C, a thread twice 8 x 8."""
    As = cuda.shared.array((2, BK, BM), real)
    Bs = cuda.shared.array((2, BK, BN), real)
    results = cuda.local.array((16, TN), real)
    a = cuda.local.array(16, real)
    b = cuda.local.array(TN, real)
    next_a = cuda.local.array((2, 4), real)
    next_b = cuda.local.array((4, 4), real)
    thread = cuda.threadIdx.x
    warp, lane = thread // 32, thread % 32
    y = lane // (WN // TN) * TM
    x = warp * WN + lane % (WN // TN) * TN
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    a_row, a_k = thread // 4, thread % 4 * 4
    b_k, b_col = thread // 64, thread % 64 * 4
    M, N = C.shape
    K = A.shape[1]
    for i in range(2 * TM):
        for j in range(TN):
            results[i, j] = real(0)
    for start in range(-BK, K, BK):
        step = start // BK
        full, free = step % 2, (step + 1) % 2
        for n in range(2):
            row = top + a_row + n * (THREADS // 4)
            k = start + BK + a_k
            four = cuda.float32x4(real(0), real(0), real(0), real(0))
            if row < M and k < K:
                four = load4(A, (row, k))
            next_a[n, 0] = four.x
            next_a[n, 1] = four.y
            next_a[n, 2] = four.z
            next_a[n, 3] = four.w
        for n in range(4):
            k = start + BK + b_k + n * (THREADS // 64)
            four = cuda.float32x4(real(0), real(0), real(0), real(0))
            if k < K and left + b_col < N:
                four = load4(B, (k, left + b_col))
            next_b[n, 0] = four.x
            next_b[n, 1] = four.y
            next_b[n, 2] = four.z
            next_b[n, 3] = four.w
        if start >= 0:
            for k in range(BK):
                for i in range(0, TM, 4):
                    for half in range(2):
                        four = load4(As, (full, k, half * 64 + y + i))
                        a[half * TM + i] = four.x
                        a[half * TM + i + 1] = four.y
                        a[half * TM + i + 2] = four.z
                        a[half * TM + i + 3] = four.w
                for j in range(0, TN, 4):
                    four = load4(Bs, (full, k, x + j))
                    b[j] = four.x
                    b[j + 1] = four.y
                    b[j + 2] = four.z
                    b[j + 3] = four.w
                for i in range(2 * TM):
                    for j in range(TN):
                        results[i, j] += a[i] * b[j]
        for n in range(2):
            for i in range(4):
                As[free, a_k + i, a_row + n * (THREADS // 4)] = next_a[n, i]
        for n in range(4):
            store4(Bs, (free, b_k + n * (THREADS // 64), b_col), cuda.float32x4(
                next_b[n, 0], next_b[n, 1], next_b[n, 2], next_b[n, 3]))
        cuda.syncthreads()
    for i in range(2 * TM):
        row = top + i // TM * 64 + y + i % TM
        for j in range(0, TN, 4):
            col = left + x + j
            if row < M and col < N:
                old = cuda.float32x4(real(0), real(0), real(0), real(0))
                if beta != 0:
                    old = load4(C, (row, col))
                store4(C, (row, col), cuda.float32x4(
                    alpha * results[i, j] + beta * old.x,
                    alpha * results[i, j + 1] + beta * old.y,
                    alpha * results[i, j + 2] + beta * old.z,
                    alpha * results[i, j + 3] + beta * old.w))
