# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 9: five columns of padding in B, as published. Padding is no cure for every conflict.

The rows of B become 133 words long, so that the same column of neighbouring rows lies in different
banks. But a warp reads along one row, at a stride of 8 words, and that stride is as it was: four
words a bank. And most rows no longer begin at a multiple of 16 bytes, so that a compiler needs
three loads for 8 words where two were enough, and four stores for one. This rung, too, was measured
slower than `vectorised`.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 128, 8
TM, TN = 8, 8
THREADS = 256
PITCH = 133


@cuda.jit
def extra_column(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 256 threads has 128 x 128 of C, a thread 8 x 8."""
    As = cuda.shared.array((BK, BM), real)
    Bs = cuda.shared.array((BK, PITCH), real)
    results = cuda.local.array((TM, TN), real)
    a = cuda.local.array(TM, real)
    b = cuda.local.array(TN, real)
    thread = cuda.threadIdx.x
    y = thread // (BN // TN)
    x = thread % (BN // TN)
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    a_row, a_k = thread // 2, thread % 2 * 4
    b_k, b_col = thread // 32, thread % 32 * 4
    M, N = C.shape
    K = A.shape[1]
    for i in range(TM):
        for j in range(TN):
            results[i, j] = real(0)
    for start in range(0, K, BK):
        four = cuda.float32x4(real(0), real(0), real(0), real(0))
        if top + a_row < M and start + a_k < K:
            four = load4(A, (top + a_row, start + a_k))
        As[a_k, a_row] = four.x
        As[a_k + 1, a_row] = four.y
        As[a_k + 2, a_row] = four.z
        As[a_k + 3, a_row] = four.w
        four = cuda.float32x4(real(0), real(0), real(0), real(0))
        if start + b_k < K and left + b_col < N:
            four = load4(B, (start + b_k, left + b_col))
        Bs[b_k, b_col] = four.x
        Bs[b_k, b_col + 1] = four.y
        Bs[b_k, b_col + 2] = four.z
        Bs[b_k, b_col + 3] = four.w
        cuda.syncthreads()
        for k in range(BK):
            for i in range(0, TM, 4):
                four = load4(As, (k, y * TM + i))
                a[i] = four.x
                a[i + 1] = four.y
                a[i + 2] = four.z
                a[i + 3] = four.w
            for j in range(TN):
                b[j] = Bs[k, x * TN + j]
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
