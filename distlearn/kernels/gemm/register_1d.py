# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 5: a column of 8 results per thread. One element of B from shared memory serves 8 of A.

Each multiply-add of `shared_tiled` reads two shared words; here 8 of them read 9. Shared memory
delivers one word a bank and clock, so fewer reads are more speed.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32
BM, BN, BK = 64, 64, 8
TM = 8
THREADS = 512


@cuda.jit
def register_1d(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 512 threads has 64 x 64 of C, a thread 8 x 1."""
    As = cuda.shared.array((BM, BK), real)
    Bs = cuda.shared.array((BK, BN), real)
    results = cuda.local.array(TM, real)
    thread = cuda.threadIdx.x
    y = thread // BN
    x = thread % BN
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    M, N = C.shape
    K = A.shape[1]
    for i in range(TM):
        results[i] = real(0)
    for start in range(0, K, BK):
        row = top + thread // BK
        k = start + thread % BK
        As[thread // BK, thread % BK] = A[row, k] if row < M and k < K else real(0)
        k = start + y
        Bs[y, x] = B[k, left + x] if k < K and left + x < N else real(0)
        cuda.syncthreads()
        for k in range(BK):
            b = Bs[k, x]
            for i in range(TM):
                results[i] += As[y * TM + i, k] * b
        cuda.syncthreads()
    col = left + x
    for i in range(TM):
        row = top + y * TM + i
        if row < M and col < N:
            if beta == 0:
                C[row, col] = alpha * results[i]
            else:
                C[row, col] = alpha * results[i] + beta * C[row, col]
