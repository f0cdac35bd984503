"""What a block of each rung of the GEMM ladder does, for any size: a straight line in K."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from distlearn.hardware import DeviceSpec
from distlearn.kernels.gemm import GEMM
from distlearn.kernels.gemm.rung import Gemm
from distlearn.kernels.timing import Prediction, Resources, Work, predict
from distlearn.kernels.timing.work import sector_bytes

RUNGS = {
    "float32": ("naive_rows", "coalesced", "shared_tiled", "register_1d", "register_2d",
                "vectorised", "warp_tiled"),
    "float16": ("naive_rows", "coalesced", "shared_tiled", "tensor_core"),
}
"""By number format, the rungs that the explorer shows."""
_K = 1024


class Line(NamedTuple):
    """A rung, the work of a block at K = 1024 and what each step along K adds."""

    rung: Gemm
    needs: Resources
    base: Work
    counts: dict[str, float]
    round_trips: float
    hidden_round_trips: float

    def steps(self, K: int) -> float:
        """Steps along K of a block."""
        return -(-K // self.rung.tile[2]) / self.rung.splits

    def work(self, M: int, N: int, K: int) -> Work:
        """As `Gemm.work`, for sizes that are multiples of 128."""
        more, (rows, columns, _) = self.steps(K) - self.steps(_K), self.rung.tile
        blocks = -(-M // rows) * -(-N // columns) * self.rung.splits
        counts = {n: v + more * self.counts[n] for n, v in self.base.counts.items()}
        size, out = self.rung.dtype.itemsize, self.rung.result_dtype.itemsize
        return Work(blocks, self.base.threads, counts,
                    self.base.round_trips + more * self.round_trips,
                    self.base.hidden_round_trips + more * self.hidden_round_trips,
                    min((M * K + K * N) * size + M * N * out, blocks * sector_bytes(counts)),
                    self.base.busy)

    def predict(self, M: int, N: int, K: int, spec: DeviceSpec) -> Prediction:
        """As `Gemm.predict`."""
        return predict(self.work(M, N, K), self.needs, spec, self.rung.dtype)


@cache
def line_of(name: str, dtype: str) -> Line:
    """A rung's line; it runs one block of the kernel a few times."""
    rung = GEMM[name]
    if rung.dtype != dtype:
        rung = rung.astype(dtype)
    one, two = (rung.work(1024, 1024, K) for K in (_K, 2 * _K))
    steps = _K / rung.tile[2] / rung.splits
    return Line(rung, rung.needs, one,
                {n: (two.counts[n] - v) / steps for n, v in one.counts.items()},
                (two.round_trips - one.round_trips) / steps,
                (two.hidden_round_trips - one.hidden_round_trips) / steps)
