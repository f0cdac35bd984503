# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 16: several blocks share a tile of C, each with a part of K. For small C and long K.

A 256 x 256 product has 16 tiles of 64 x 64: most SMs of a large GPU would have nothing to do. Here
``gridDim.z`` blocks work on each tile and add what they have to C, with atomics. C must hold
``beta C`` before (`Gemm.multiply` sees to it), and the order of the additions is not defined: two
runs on a GPU may differ in the last bits.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32
BM, BN, BK = 64, 64, 8
TM = 8
THREADS = 512


@cuda.jit
def split_k(A, B, C, alpha, beta):
    """C += alpha A B; ``gridDim.z`` blocks of 512 threads have 64 x 64 of C together."""
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
    tiles = (K + BK - 1) // BK
    share = (tiles + cuda.gridDim.z - 1) // cuda.gridDim.z * BK
    first = cuda.blockIdx.z * share
    last = min(K, first + share)
    for i in range(TM):
        results[i] = real(0)
    for start in range(first, last, BK):
        row = top + thread // BK
        k = start + thread % BK
        As[thread // BK, thread % BK] = A[row, k] if row < M and k < last else real(0)
        k = start + y
        Bs[y, x] = B[k, left + x] if k < last and left + x < N else real(0)
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
            cuda.atomic.add(C, (row, col), alpha * results[i])
