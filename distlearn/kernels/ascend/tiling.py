"""How a GEMM is cut for the cube core, what that costs, and the search for the best cut.

C (m, n) is cut into tiles that fit L0C; each tile walks along k in chunks that fit L1, each chunk
in steps that fit L0A and L0B. Larger tiles need fewer bytes for each multiplication:
(1/tile_m + 1/tile_n) of an operand's row. The capacities stop them, and so do whole waves of tiles
over the cores: 25 tiles on 24 cores take as long as 48.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from distlearn.hardware import DeviceSpec, device
from distlearn.hardware.ai_core import AICore, ai_core
from distlearn.hardware.dtypes import dtype_name, itemsize
from distlearn.kernels.ascend.errors import BufferOverflowError


@dataclass(frozen=True)
class Tiling:
    """A cut.

    Attributes
    ----------
    m, n : int
        Rows and columns of a tile of C.
    k : int
        Depth of one step from L0A and L0B.
    k_l1 : int
        Depth of one chunk in L1, a multiple of k.
    l1_depth, l0_depth, l0c_depth : int
        Buffers of each queue: 2 is ping-pong.
    """

    m: int
    n: int
    k: int
    k_l1: int
    l1_depth: int = 2
    l0_depth: int = 2
    l0c_depth: int = 1

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "k_l1", "l1_depth", "l0_depth", "l0c_depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)} must be at least 1")
        if self.k_l1 % self.k:
            raise ValueError(f"k_l1 = {self.k_l1} must be a multiple of k = {self.k}")

    def fill(self, dtype: object) -> dict[str, int]:
        """Bytes of each buffer that it takes.

        Examples
        --------
        >>> fill = Tiling(128, 256, 64, 256).fill("float16")
        >>> {name: size // 1024 for name, size in fill.items()}
        {'L1': 384, 'L0A': 32, 'L0B': 64, 'L0C': 128}
        """
        size = itemsize(dtype)
        unit = 32 // size
        m, n = _up(self.m, 16), _up(self.n, 16)
        deep, step = _up(self.k_l1, unit), _up(self.k, unit)
        wide = _up(self.n, unit)
        return {"L1": self.l1_depth * size * (m * deep + _up(self.k_l1, 16) * wide),
                "L0A": self.l0_depth * size * m * step,
                "L0B": self.l0_depth * size * step * n,
                "L0C": self.l0c_depth * 4 * m * n}

    def check(self, core: AICore, dtype: object) -> None:
        """See that it fits.

        Raises
        ------
        BufferOverflowError
            Naming the first buffer that is too small, and by how much.

        Examples
        --------
        >>> Tiling(256, 256, 64, 128).check(ai_core("Ascend-910B2"), "float16")
        Traceback (most recent call last):
        distlearn.kernels.ascend.errors.BufferOverflowError: L0C overflows by 131,072 bytes: \
a tile of 256 x 256 makes 262,144 of 131,072 bytes
        """
        what = {"L0C": f"a tile of {self.m} x {self.n}",
                "L0A": f"{self.l0_depth} steps of {self.m} x {self.k}",
                "L0B": f"{self.l0_depth} steps of {self.k} x {self.n}",
                "L1": f"{self.l1_depth} chunks of ({self.m} + {self.n}) x {self.k_l1}"}
        fill = self.fill(dtype)
        for name, text in what.items():
            if fill[name] > core.buffers[name]:
                raise BufferOverflowError(name, fill[name], core.buffers[name], text)


@dataclass(frozen=True)
class Prediction:
    """What a tiling takes on a device.

    Attributes
    ----------
    tiling : Tiling
    time_s : float
    utilisation : float
        Of the cube peak of the whole device, for the 2 m n k FLOP asked for.
    bound : str
        ``"cube"``, ``"MTE1"``, ``"MTE2"`` or ``"memory"``: what takes longest.
    waves : int
        Tiles of the core that has most.
    terms : dict of str to float
        Seconds of each on that core; ``"memory"`` of the device.
    """

    tiling: Tiling
    time_s: float
    utilisation: float
    bound: str
    waves: int
    terms: dict[str, float]


def predict(m: int, n: int, k: int, tiling: Tiling, spec: DeviceSpec | str = "Ascend-910B2",
            dtype: object = "float16") -> Prediction:
    """Time of C (m, n) = A (m, k) @ B (k, n) with this tiling on all cores of a device.

    The core with most tiles counts. Chunk by chunk, MTE2 loads into a free buffer of L1 while MTE1
    and the cube unit work on the one before, as fast as the slower of the two; with one buffer in
    L0C the cube unit waits for each result to leave. Device memory delivers what a wave of tiles
    needs; the level-2 cache holds it for that long. Issuing instructions takes no time here.

    Raises
    ------
    BufferOverflowError
        If the tiling does not fit.
    ValueError
        For a device without AI cores, or sizes below 1.

    Examples
    --------
    >>> best = predict(8192, 8192, 8192, Tiling(128, 256, 64, 256))
    >>> best.bound, round(best.utilisation, 2)
    ('cube', 0.98)
    """
    for name, value in (("m", m), ("n", n), ("k", k)):
        if value < 1:
            raise ValueError(f"{name} = {value} must be at least 1")
    spec = device(spec) if isinstance(spec, str) else spec
    core = ai_core(spec)
    tiling.check(core, dtype)
    size = itemsize(dtype)
    tm, tn = min(tiling.m, m), min(tiling.n, n)
    down, across = -(-m // tm), -(-n // tn)
    waves = -(-down * across // spec.cores)
    a, b = _up(tm, 16) * size / core.rates["L1-L0A"], _up(tn, 16) * size / core.rates["L1-L0B"]
    chunks = []
    for deep in range(0, k, tiling.k_l1):
        depth = min(tiling.k_l1, k - deep)
        steps, rest = divmod(depth, tiling.k)
        cube = steps * core.cube_clocks(tm, tn, tiling.k, dtype) + (
            core.cube_clocks(tm, tn, rest, dtype) if rest else 0)
        chunks.append(_Chunk(depth * (tm + tn) * size / core.rates["global-L1"],
                             _up(depth, 32 // size) * (a + b), cube, steps + (rest > 0)))
    out = tm * tn * max(size, 2) / core.rates["L0C-global"]
    clocks = _clocks(chunks, out, waves, tiling, min(tiling.k, k) * (a + b))
    terms = {"cube": sum(c.cube for c in chunks), "MTE1": sum(c.mte1 for c in chunks),
             "MTE2": sum(c.mte2 for c in chunks), "FIXP": out}
    seconds = {name: waves * value / core.clock_hz for name, value in terms.items()}
    seconds["memory"] = _memory_bytes(m, n, k, tm, tn, spec, size) / spec.memory_bytes_per_s
    time_s = max(clocks / core.clock_hz, seconds["memory"])
    peak = spec.peak_flops(dtype, "matrix")
    bound = max(("cube", "MTE1", "MTE2", "memory"), key=lambda name: seconds[name])
    return Prediction(tiling, time_s, 2 * m * n * k / time_s / peak, bound, waves, seconds)


def search(m: int, n: int, k: int, spec: DeviceSpec | str = "Ascend-910B2",
           dtype: object = "float16", *, top: int = 5) -> list[Prediction]:
    """The best tilings for a GEMM, best first; of equal ones, that with the least traffic.

    Errors as `predict`.

    Examples
    --------
    >>> best = search(4096, 4096, 4096)[0]
    >>> best.tiling.m * best.tiling.n * 4 <= 128 * 1024
    True
    """
    if top < 1:
        raise ValueError(f"top = {top} must be at least 1")
    spec = device(spec) if isinstance(spec, str) else spec
    core = ai_core(spec)
    found = [predict(m, n, k, tiling, spec, dtype)
             for tiling in _candidates(core, dtype_name(dtype), m, n, k)]
    found.sort(key=lambda p: (p.time_s, p.terms["MTE2"], -p.tiling.k_l1, -p.tiling.k))
    return found[:top]


def _candidates(core: AICore, dtype: str, m: int, n: int, k: int) -> Iterator[Tiling]:
    """Tiles of multiples of 16, each with the deepest steps and chunks that fit."""
    size = itemsize(dtype)
    unit = 32 // size
    sides = range(16, 513, 16)
    for tm in sides:
        for tn in sides:
            if tm >= m + 16 or tn >= n + 16 or tm * tn * 4 > core.buffers["L0C"]:
                continue
            step = min(core.buffers["L0A"] // (2 * size * tm),
                       core.buffers["L0B"] // (2 * size * tn), _up(k, unit)) // unit * unit
            if not step:
                continue
            step = max(unit, 1 << (step.bit_length() - 1))
            per_step = 2 * size * (tm + _up(tn, unit)) * _up(step, 16)
            whole = _up(k, step) // step
            most = max(1, min(core.buffers["L1"] // per_step, whole))
            even = -(-whole // -(-whole // most))  # as many chunks, of equal depth
            for steps, depth in itertools.product({most, even}, (1, 2)):
                tiling = Tiling(tm, tn, step, step * steps, l0c_depth=depth)
                fill = tiling.fill(dtype)
                if all(fill[name] <= core.buffers[name] for name in fill):
                    yield tiling


class _Chunk(NamedTuple):
    """Clocks that the pipes take for one chunk in L1."""

    mte2: float
    mte1: float
    cube: float
    steps: int


def _clocks(chunks: list[_Chunk], out: float, waves: int, tiling: Tiling, step: float) -> float:
    """Clocks of a core for its tiles; after a few tiles they repeat."""
    loaded, tiles = 0.0, min(waves, 6)
    freed = [0.0] * tiling.l1_depth  # when each buffer of L1 is free again, oldest first
    left = [0.0] * tiling.l0c_depth  # the same of L0C
    done, ends = 0.0, []
    for _ in range(tiles):
        done = max(done, left.pop(0))
        for chunk in chunks:
            loaded = max(loaded, freed.pop(0)) + chunk.mte2
            done = max(done, loaded + step) + max(chunk.cube, chunk.mte1)
            # MTE1 is done with a chunk a few steps before the cube unit is.
            ahead = max(0.0, tiling.l0_depth * chunk.cube / chunk.steps - step)
            freed.append(max(loaded + chunk.mte1, done - ahead))
        left.append(max(done, left[-1] if left else 0.0) + out)
        ends.append(left[-1])
    if waves == tiles:
        return ends[-1]
    period = (ends[-1] - ends[1]) / (tiles - 2)
    return ends[-1] + (waves - tiles) * period


def _memory_bytes(m: int, n: int, k: int, tm: int, tn: int, spec: DeviceSpec, size: int) -> float:
    """Bytes from and to device memory.

    Everything moves once if both operands fit the level-2 cache. Otherwise each wave of tiles, as
    near to a square as it can be, reads its rows of A and columns of B anew.
    """
    once = (m * k + k * n + m * n) * size
    if (m * k + k * n) * size <= spec.l2_bytes:
        return once
    down, across = -(-m // tm), -(-n // tn)
    least = min(rows * tm + -(-spec.cores // rows) * tn
                for rows in range(1, min(down, spec.cores) + 1))
    waves = -(-down * across // spec.cores)
    return max(once, waves * least * k * size + m * n * size)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
