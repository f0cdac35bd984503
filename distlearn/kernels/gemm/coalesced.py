# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 3: coalesced by hand. A linear block of 1,024 threads, 32 by 32 elements of C.

``thread % 32`` walks the columns, so that the 32 lanes of a warp read one element of A and 128
neighbouring bytes of B, whatever the shape of the block was.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32


@cuda.jit
def coalesced(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a warp is one row of a 32 x 32 tile."""
    thread = cuda.threadIdx.x
    row = cuda.blockIdx.x * 32 + thread // 32
    col = cuda.blockIdx.y * 32 + thread % 32
    M, N = C.shape
    if row < M and col < N:
        total = real(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        if beta == 0:
            C[row, col] = alpha * total
        else:
            C[row, col] = alpha * total + beta * C[row, col]
