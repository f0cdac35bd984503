# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 11: no bank conflicts, without padding. The row of A is XORed with 16 in every other group.

Columns 4 to 7 of the tile of A are stored with bit 4 of the row flipped. The lanes that stored to
one bank before are 16 banks apart, no word is wasted, and a group of 4 stays together, at an
aligned address. Reading flips the same bit. (The columns of C are split as in `padded`.)
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 128, 8
TM, TN = 8, 8
THREADS = 256


@cuda.jit
def swizzled(A, B, C, alpha, beta):
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
        place = a_row ^ (a_k * 4)  # a_k is 0 or 4
        As[a_k, place] = four.x
        As[a_k + 1, place] = four.y
        As[a_k + 2, place] = four.z
        As[a_k + 3, place] = four.w
        four = cuda.float32x4(real(0), real(0), real(0), real(0))
        if start + b_k < K and left + b_col < N:
            four = load4(B, (start + b_k, left + b_col))
        store4(Bs, (b_k, b_col), four)
        cuda.syncthreads()
        for k in range(BK):
            for i in range(0, TM, 4):
                four = load4(As, (k, (y * TM + i) ^ (k // 4 * 16)))
                a[i] = four.x
                a[i + 1] = four.y
                a[i + 2] = four.z
                a[i + 3] = four.w
            for j in range(0, TN, 4):
                four = load4(Bs, (k, x * 4 + j * 16))
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
            col = left + x * 4 + j * 16
            if row < M and col < N:
                old = cuda.float32x4(real(0), real(0), real(0), real(0))
                if beta != 0:
                    old = load4(C, (row, col))
                store4(C, (row, col), cuda.float32x4(
                    alpha * results[i, j] + beta * old.x,
                    alpha * results[i, j + 1] + beta * old.y,
                    alpha * results[i, j + 2] + beta * old.z,
                    alpha * results[i, j + 3] + beta * old.w))
