# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 12: 16 steps along K between barriers instead of 8. Fewer waits, more shared memory.

Tile sizes are parameters to search; this is what the published ladder's search found on its GPU.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 128, 16
TM, TN = 8, 8
THREADS = 256


@cuda.jit
def deeper(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 256 threads has 128 x 128 of C, a thread 8 x 8."""
    As = cuda.shared.array((BK, BM), real)
    Bs = cuda.shared.array((BK, BN), real)
    results = cuda.local.array((TM, TN), real)
    a = cuda.local.array(TM, real)
    b = cuda.local.array(TN, real)
    thread = cuda.threadIdx.x
    y = thread // (BN // TN)
    x = thread % (BN // TN)
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    a_row, a_k = thread // 4, thread % 4 * 4
    b_k, b_col = thread // 32, thread % 32 * 4
    M, N = C.shape
    K = A.shape[1]
    for i in range(TM):
        for j in range(TN):
            results[i, j] = real(0)
    for start in range(0, K, BK):
        for down in range(0, BM, THREADS // 4):
            four = cuda.float32x4(real(0), real(0), real(0), real(0))
            row = down + a_row
            if top + row < M and start + a_k < K:
                four = load4(A, (top + row, start + a_k))
            As[a_k, row] = four.x
            As[a_k + 1, row] = four.y
            As[a_k + 2, row] = four.z
            As[a_k + 3, row] = four.w
        for down in range(0, BK, THREADS // 32):
            four = cuda.float32x4(real(0), real(0), real(0), real(0))
            if start + down + b_k < K and left + b_col < N:
                four = load4(B, (start + down + b_k, left + b_col))
            store4(Bs, (down + b_k, b_col), four)
        cuda.syncthreads()
        for k in range(BK):
            for i in range(0, TM, 4):
                four = load4(As, (k, y * TM + i))
                a[i] = four.x
                a[i + 1] = four.y
                a[i + 2] = four.z
                a[i + 3] = four.w
            for j in range(0, TN, 4):
                four = load4(Bs, (k, x * TN + j))
                b[j] = four.x
                b[j + 1] = four.y
                b[j + 2] = four.z
                b[j + 3] = four.w
            for i in range(TM):
                for j in range(TN):
                    results[i, j] += a[i] * b[j]
        cuda.syncthreads()
    for i in range(TM):
        row = top + y * TM + i
        for j in range(0, TN, 4):
            col = left + x * TN + j
            if row < M and col < N:
                old = cuda.float32x4(real(0), real(0), real(0), real(0))
                if beta != 0:
                    old = load4(C, (row, col))
                store4(C, (row, col), cuda.float32x4(
                    alpha * results[i, j] + beta * old.x,
                    alpha * results[i, j + 1] + beta * old.y,
                    alpha * results[i, j + 2] + beta * old.z,
                    alpha * results[i, j + 3] + beta * old.w))
