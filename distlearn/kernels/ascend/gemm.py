"""GEMM on cube cores: data_copy, load_data, mmad and fixpipe, joined by queues.

Five steps in the order of Ascend C, each on a pipe of its own so that they overlap:

==========  =====  ========================================
CopyIn      MTE2   chunks of A and B, global → L1
Split       MTE1   steps of them, L1 → L0A, L0B
Compute     M      multiply and add, L0A, L0B → L0C
(Fixpipe)   FIXP   the finished tile, L0C → global
==========  =====  ========================================

On the split architecture fixpipe is what Aggregate and CopyOut were before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from distlearn.hardware import DeviceSpec, device
from distlearn.kernels.ascend.core import CubeCore
from distlearn.kernels.ascend.formats import Array
from distlearn.kernels.ascend.tiling import Tiling, search
from distlearn.kernels.ascend.timeline import Timeline

Tile = tuple[int, int]


@dataclass(frozen=True)
class GemmReport:
    """What the cores did.

    Attributes
    ----------
    tiling : Tiling
    cores : tuple of Timeline
        One for each core that had a tile.
    time_s : float
        Until the last core is done.
    utilisation : float
        Of the cube peak of the whole device, for the 2 m n k FLOP asked for.
    """

    tiling: Tiling
    cores: tuple[Timeline, ...]
    time_s: float
    utilisation: float


def gemm(A: Array, B: Array, C: Array, *, spec: DeviceSpec | str = "Ascend-910B2",
         tiling: Tiling | None = None, scale: float = 1.0, relu: bool = False,
         compute: bool = True) -> GemmReport:
    """``C[...] = A @ B`` on all cores of a device, accumulated in float32.

    Parameters
    ----------
    A, B, C : array, shapes (m, k), (k, n), (m, n)
        A and B float16, bfloat16 or float32 (int8: accumulated in int32); C of any number format.
    spec : DeviceSpec or str
    tiling : Tiling, optional
        Default: the best of `search`.
    scale, relu
        What fixpipe does on the way out.
    compute : bool
        False: times and checks only; C stays as it is.

    Raises
    ------
    BufferOverflowError
        If the tiling does not fit, naming the buffer and by how much.
    ValueError
        For shapes that do not match, or a device without AI cores.

    Examples
    --------
    >>> A, B = np.ones((50, 70), np.float16), np.ones((70, 33), np.float16)
    >>> C = np.zeros((50, 33), np.float32)
    >>> report = gemm(A, B, C)
    >>> float(C.min()), float(C.max()), len(report.cores) > 1
    (70.0, 70.0, True)
    """
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0] or (
            C.shape != (A.shape[0], B.shape[1])):
        raise ValueError(f"A (m, k), B (k, n), C (m, n) must match; got {A.shape}, {B.shape}, "
                         f"{C.shape}")
    spec = device(spec) if isinstance(spec, str) else spec
    (m, k), n = A.shape, B.shape[1]
    dtype = A.dtype.name
    if tiling is None:
        tiling = search(m, n, k, spec, dtype, top=1)[0].tiling
    tiles = [(i, j) for i in range(0, m, tiling.m) for j in range(0, n, tiling.n)]
    timelines = []
    for first in range(min(spec.cores, len(tiles))):
        core = CubeCore(spec.name)
        tiling.check(core.core, dtype)
        gemm_program(core, A, B, C, tiling, tiles[first::spec.cores], scale=scale, relu=relu)
        timelines.append(core.run(compute=compute))
    time_s = max(line.time_s for line in timelines)
    peak = spec.peak_flops(dtype, "matrix")
    return GemmReport(tiling, tuple(timelines), time_s, 2 * m * n * k / time_s / peak)


def gemm_program(core: CubeCore, A: Array, B: Array, C: Array, tiling: Tiling,
                 tiles: Iterable[Tile], *, scale: float = 1.0, relu: bool = False) -> None:
    """Write the program of one core: the tiles of C that start at these rows and columns."""
    dtype, wide = A.dtype, "int32" if A.dtype == np.int8 else "float32"
    (m, K), n = A.shape, B.shape[1]
    t, c, unit = tiling, A.dtype.itemsize, 32 // A.dtype.itemsize
    high, across, lane = _up(t.m, 16), _up(t.n, 16), _up(t.n, unit)
    a1 = core.queue("A1", t.l1_depth, high * _up(t.k_l1, unit) * c)
    b1 = core.queue("B1", t.l1_depth, _up(t.k_l1, 16) * lane * c)
    a2 = core.queue("A2", t.l0_depth, high * _up(t.k, unit) * c)
    b2 = core.queue("B2", t.l0_depth, _up(t.k, unit) * across * c)
    co1 = core.queue("CO1", t.l0c_depth, high * across * 4)
    for i, j in tiles:
        rows, columns = min(t.m, m - i), min(t.n, n - j)
        out = co1.allocate((rows, columns), wide)
        for deep in range(0, K, t.k_l1):
            chunk = min(t.k_l1, K - deep)
            # CopyIn
            for queue, part in ((a1, A[i:i + rows, deep:deep + chunk]),
                                (b1, B[deep:deep + chunk, j:j + columns])):
                into = queue.allocate((part.shape[0], part.shape[1]), dtype.name)
                core.data_copy(into, part)
                queue.enqueue(into)
            left, right = a1.dequeue(), b1.dequeue()
            for at in range(0, chunk, t.k):
                step = min(t.k, chunk - at)
                # Split
                into = a2.allocate((rows, step), dtype.name)
                core.load_data(into, left, column=at)
                a2.enqueue(into)
                into = b2.allocate((step, columns), dtype.name)
                core.load_data(into, right, row=at)
                b2.enqueue(into)
                # Compute
                a, b = a2.dequeue(), b2.dequeue()
                core.mmad(out, a, b, accumulate=deep + at > 0)
                a2.free(a)
                b2.free(b)
            a1.free(left)
            b1.free(right)
        co1.enqueue(out)
        # Fixpipe
        out = co1.dequeue()
        core.fixpipe(C[i:i + rows, j:j + columns], out, scale=scale, relu=relu)
        co1.free(out)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
