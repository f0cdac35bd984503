# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 4: tiles in shared memory. Each element read from global memory is used 32 times.

The block loads a 32 x 32 tile of A and one of B, waits, multiplies them, waits again. What lies
outside of the matrices is loaded as 0, so that ragged sizes need no case of their own.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32
TILE = 32


@cuda.jit
def shared_tiled(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of TILE**2 threads, one element of C each."""
    As = cuda.shared.array((TILE, TILE), real)
    Bs = cuda.shared.array((TILE, TILE), real)
    thread = cuda.threadIdx.x
    y = thread // TILE
    x = thread % TILE
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    M, N = C.shape
    K = A.shape[1]
    total = real(0)
    for start in range(0, K, TILE):
        As[y, x] = A[row, start + x] if row < M and start + x < K else real(0)
        Bs[y, x] = B[start + y, col] if start + y < K and col < N else real(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += As[y, k] * Bs[k, x]
        cuda.syncthreads()
    if row < M and col < N:
        if beta == 0:
            C[row, col] = alpha * total
        else:
            C[row, col] = alpha * total + beta * C[row, col]
