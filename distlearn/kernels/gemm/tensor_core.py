# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 15: tensor cores. A warp multiplies 16 x 16 matrices as one instruction.

float16 in, float32 sums. A block of 4 warps has 64 x 64 of C, each warp 32 x 32 as 2 x 2 fragments.
Rows of the shared tiles are 8 elements (16 bytes) longer than they need to be: without, the 8 rows
that are read together would lie in the same banks.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float16, float32
from distlearn.kernels.intrinsics import wmma

real = float16
BM, BN, BK = 64, 64, 32
THREADS = 128
PITCH_A, PITCH_B, PITCH_C = 40, 72, 72


@cuda.jit
def tensor_core(A, B, C, alpha, beta):
    """C = alpha A B + beta C; A and B float16, C float32; a block has 64 x 64 of C."""
    As = cuda.shared.array((BM, PITCH_A), real)
    Bs = cuda.shared.array((BK, PITCH_B), real)
    Cs = cuda.shared.array((BM, PITCH_C), float32)
    thread = cuda.threadIdx.x
    warp = thread // 32
    y, x = warp // 2 * 32, warp % 2 * 32
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    M, N = C.shape
    K = A.shape[1]
    c00 = wmma.fill_fragment(0)
    c01 = wmma.fill_fragment(0)
    c10 = wmma.fill_fragment(0)
    c11 = wmma.fill_fragment(0)
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
        for k in range(0, BK, 16):
            a0 = wmma.load_matrix_sync(As, (y, k))
            a1 = wmma.load_matrix_sync(As, (y + 16, k))
            b0 = wmma.load_matrix_sync(Bs, (k, x))
            b1 = wmma.load_matrix_sync(Bs, (k, x + 16))
            c00 = wmma.mma_sync(a0, b0, c00)
            c01 = wmma.mma_sync(a0, b1, c01)
            c10 = wmma.mma_sync(a1, b0, c10)
            c11 = wmma.mma_sync(a1, b1, c11)
        cuda.syncthreads()
    wmma.store_matrix_sync(Cs, (y, x), c00)
    wmma.store_matrix_sync(Cs, (y, x + 16), c01)
    wmma.store_matrix_sync(Cs, (y + 16, x), c10)
    wmma.store_matrix_sync(Cs, (y + 16, x + 16), c11)
    cuda.syncthreads()
    for down in range(0, BM, THREADS // BN):
        i = down + thread // BN
        row = top + i
        col = left + thread % BN
        if row < M and col < N:
            if beta == 0:
                C[row, col] = alpha * Cs[i, thread % BN]
            else:
                C[row, col] = alpha * Cs[i, thread % BN] + beta * C[row, col]
