# mypy: ignore-errors
# Kernels: numba.cuda's types, not Python's.
"""Rung 14: two buffers. Half of a block's threads load while the other half multiplies.

Two steps along K are a round of three parts, with a barrier after each. First the lower half
multiplies the tiles in the first buffer while the upper half fills the second; then both halves
multiply, each from the buffer that it has not used yet; at last the upper half multiplies what is
left in the second, and the lower fills the first for the next round. So the wait for memory lies
beside arithmetic. The price: twice the shared memory, registers that leave room for one block on an
SM, and two parts of three in which half of the warps compute nothing.
"""

from __future__ import annotations

from distlearn.kernels.dialect import cuda, float32
from distlearn.kernels.intrinsics import load4, store4

real = float32
BM, BN, BK = 128, 256, 16
WM, WN = 128, 32
TM, TN = 8, 8
HALF = 128  # threads


@cuda.jit(device=True)
def fill(A, B, As, Bs, buffer, place, top, left, start):
    """Half of the threads bring tiles of A and B from step ``start`` on to a buffer."""
    a_row, a_k = place // 4, place % 4 * 4
    b_k, b_col = place // 64, place % 64 * 4
    for down in range(0, BM, HALF // 4):
        row = top + a_row + down
        four = cuda.float32x4(real(0), real(0), real(0), real(0))
        if row < A.shape[0] and start + a_k < A.shape[1]:
            four = load4(A, (row, start + a_k))
        As[buffer, a_k, a_row + down] = four.x
        As[buffer, a_k + 1, a_row + down] = four.y
        As[buffer, a_k + 2, a_row + down] = four.z
        As[buffer, a_k + 3, a_row + down] = four.w
    for down in range(0, BK, HALF // 64):
        k = start + b_k + down
        four = cuda.float32x4(real(0), real(0), real(0), real(0))
        if k < B.shape[0] and left + b_col < B.shape[1]:
            four = load4(B, (k, left + b_col))
        store4(Bs, (buffer, b_k + down, b_col), four)


@cuda.jit(device=True)
def multiply(As, Bs, buffer, y, x, a, b, results):
    """A thread adds the product of its parts of a buffer's tiles."""
    for k in range(BK):
        for i in range(0, TM, 4):
            for half in range(2):
                four = load4(As, (buffer, k, half * 64 + y + i))
                a[half * TM + i] = four.x
                a[half * TM + i + 1] = four.y
                a[half * TM + i + 2] = four.z
                a[half * TM + i + 3] = four.w
        for j in range(0, TN, 4):
            four = load4(Bs, (buffer, k, x + j))
            b[j] = four.x
            b[j + 1] = four.y
            b[j + 2] = four.z
            b[j + 3] = four.w
        for i in range(2 * TM):
            for j in range(TN):
                results[i, j] += a[i] * b[j]


@cuda.jit
def double_buffered(A, B, C, alpha, beta):
    """C = alpha A B + beta C; a block of 8 warps has 128 x 256 of C, a thread twice 8 x 8."""
    As = cuda.shared.array((2, BK, BM), real)
    Bs = cuda.shared.array((2, BK, BN), real)
    results = cuda.local.array((16, TN), real)
    a = cuda.local.array(16, real)
    b = cuda.local.array(TN, real)
    thread = cuda.threadIdx.x
    upper, place = thread // HALF, thread % HALF
    warp, lane = thread // 32, thread % 32
    y = lane // (WN // TN) * TM
    x = warp * WN + lane % (WN // TN) * TN
    top = cuda.blockIdx.y * BM
    left = cuda.blockIdx.x * BN
    M, N = C.shape
    K = A.shape[1]
    for i in range(2 * TM):
        for j in range(TN):
            results[i, j] = real(0)
    if upper == 0:
        fill(A, B, As, Bs, 0, place, top, left, 0)
    cuda.syncthreads()
    for start in range(0, K, 2 * BK):
        if upper == 0:
            multiply(As, Bs, 0, y, x, a, b, results)
        else:
            fill(A, B, As, Bs, 1, place, top, left, start + BK)
        cuda.syncthreads()
        multiply(As, Bs, 1 - upper, y, x, a, b, results)
        cuda.syncthreads()
        if upper == 0:
            fill(A, B, As, Bs, 0, place, top, left, start + 2 * BK)
        else:
            multiply(As, Bs, 1, y, x, a, b, results)
        cuda.syncthreads()
    for i in range(2 * TM):
        row = top + i // TM * 64 + y + i % TM
        for j in range(0, TN, 4):
            col = left + x + j
            if row < M and col < N:
                old = cuda.float32x4(real(0), real(0), real(0), real(0))
                if beta != 0:
                    old = load4(C, (row, col))
                store4(C, (row, col), cuda.float32x4(
                    alpha * results[i, j] + beta * old.x,
                    alpha * results[i, j + 1] + beta * old.y,
                    alpha * results[i, j + 2] + beta * old.z,
                    alpha * results[i, j + 3] + beta * old.w))
