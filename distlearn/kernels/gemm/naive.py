# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rungs 1 and 2: a thread an element of C, neighbouring threads below or beside one another.

``threadIdx.x`` runs fastest within a warp. In `naive_rows` it walks down the rows: 32 lanes read 32
rows of A (32 sectors) and one element of B. In `naive_columns` it walks along the columns: one
element of A for all lanes, 32 neighbours of B (4 sectors). Nothing else differs.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32

real = float32


@cuda.jit
def naive_rows(A, B, C, alpha, beta):
    """C = alpha A B + beta C; lanes of a warp lie below one another."""
    row, col = cuda.grid(2)
    M, N = C.shape
    if row < M and col < N:
        total = real(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        if beta == 0:
            C[row, col] = alpha * total
        else:
            C[row, col] = alpha * total + beta * C[row, col]


@cuda.jit
def naive_columns(A, B, C, alpha, beta):
    """C = alpha A B + beta C; lanes of a warp lie side by side."""
    col, row = cuda.grid(2)
    M, N = C.shape
    if row < M and col < N:
        total = real(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        if beta == 0:
            C[row, col] = alpha * total
        else:
            C[row, col] = alpha * total + beta * C[row, col]
