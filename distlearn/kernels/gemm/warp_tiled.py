# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 13: a tile for each warp, between those of the block and of the thread.

A warp computes 64 x 64 of C, as 4 strips of 64 x 16, of which each lane has 8 x 4: all that a warp
reads from shared memory for a step along K is 64 words of A and 64 of B, for 4,096 multiply-adds.
In `vectorised` it is 16 and 128 words for 2,048. Squares have the shortest edges.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 128, 16
WM, WN = 64, 64        # a warp's tile
STRIPS, STRIP = 4, 16  # of a warp's tile, from left to right, and the columns of one
TM, TN = 8, 4          # a lane's part of a strip
THREADS = 128


@cuda.jit
def warp_tiled(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 4 warps has 128 x 128 of C, a thread 4 times 8 x 4."""
    As = cuda.shared.array((BK, BM), real)
    Bs = cuda.shared.array((BK, BN), real)
    results = cuda.local.array((TM, 16), real)
    a = cuda.local.array(TM, real)
    b = cuda.local.array(16, real)
    thread = cuda.threadIdx.x
    warp, lane = thread // 32, thread % 32
    y = warp // (BN // WN) * WM + lane // (STRIP // TN) * TM
    x = warp % (BN // WN) * WN + lane % (STRIP // TN) * TN
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    a_row, a_k = thread // 4, thread % 4 * 4
    b_k, b_col = thread // 32, thread % 32 * 4
    M, N = C.shape
    K = A.shape[1]
    for i in range(TM):
        for j in range(STRIPS * TN):
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
                four = load4(As, (k, y + i))
                a[i] = four.x
                a[i + 1] = four.y
                a[i + 2] = four.z
                a[i + 3] = four.w
            for strip in range(STRIPS):
                j = strip * TN
                four = load4(Bs, (k, x + strip * STRIP))
                b[j] = four.x
                b[j + 1] = four.y
                b[j + 2] = four.z
                b[j + 3] = four.w
            for i in range(TM):
                for j in range(STRIPS * TN):
                    results[i, j] += a[i] * b[j]
        cuda.syncthreads()
    for i in range(TM):
        row = top + y + i
        for strip in range(STRIPS):
            j = strip * TN
            col = left + x + strip * STRIP
            if row < M and col < N:
                old = cuda.float32x4(real(0), real(0), real(0), real(0))
                if beta != 0:
                    old = load4(C, (row, col))
                store4(C, (row, col), cuda.float32x4(
                    alpha * results[i, j] + beta * old.x,
                    alpha * results[i, j + 1] + beta * old.y,
                    alpha * results[i, j + 2] + beta * old.z,
                    alpha * results[i, j + 3] + beta * old.w))
