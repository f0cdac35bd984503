# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 6: 8 x 8 results per thread. 16 words from shared memory serve 64 multiply-adds.

The outer product of 8 elements of A and 8 of B: reads grow with the edge of the register tile,
arithmetic with its area. The price is registers: fewer warps fit on an SM.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32
BM, BN, BK = 128, 128, 8
TM, TN = 8, 8
THREADS = 256


@cuda.jit
def register_2d(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 256 threads has 128 x 128 of C, a thread 8 x 8."""
    As = cuda.shared.array((BM, BK), real)
    Bs = cuda.shared.array((BK, BN), real)
    results = cuda.local.array((TM, TN), real)
    a = cuda.local.array(TM, real)
    b = cuda.local.array(TN, real)
    thread = cuda.threadIdx.x
    y = thread // (BN // TN)
    x = thread % (BN // TN)
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    M, N = C.shape
    K = A.shape[1]
    for i in range(TM):
        for j in range(TN):
            results[i, j] = real(0)
    for start in range(0, K, BK):
        for down in range(0, BM, THREADS // BK):
            row = down + thread // BK
            k = thread % BK
            As[row, k] = A[top + row, start + k] if top + row < M and start + k < K else real(0)
        for down in range(0, BK, THREADS // BN):
            k = down + thread // BN
            col = thread % BN
            Bs[k, col] = B[start + k, left + col] if start + k < K and left + col < N else real(0)
        cuda.syncthreads()
        for k in range(BK):
            for i in range(TM):
                a[i] = As[y * TM + i, k]
            for j in range(TN):
                b[j] = Bs[k, x * TN + j]
            for i in range(TM):
                for j in range(TN):
                    results[i, j] += a[i] * b[j]
        cuda.syncthreads()
    for i in range(TM):
        for j in range(TN):
            row = top + y * TM + i
            col = left + x * TN + j
            if row < M and col < N:
                if beta == 0:
                    C[row, col] = alpha * results[i, j]
                else:
                    C[row, col] = alpha * results[i, j] + beta * C[row, col]
