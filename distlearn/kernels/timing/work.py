"""What the average block of a launch does, as the time model wants it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from distlearn.hardware.memory_system import SECTOR_BYTES
from distlearn.kernels.counters import BUSY, NAMES, WARP

LOADS_IN_FLIGHT = 8  # of a warp: a loop unrolled by 4, two operands each


@dataclass(frozen=True)
class Work:
    """One block's share of a launch.

    Attributes
    ----------
    blocks : int
        Of the launch.
    threads : int
        Of a block.
    counts : mapping of str to float
        Counters of a block, as `distlearn.kernels.counters`.
    round_trips : float
        How often a warp waits for global memory with nothing to do in the meantime.
    hidden_round_trips : float
        How often it computes between a load and the use of what was loaded (double buffering).
    memory_bytes : float
        Bytes that the whole launch moves between device memory and chip, at least.
    busy : mapping of int to float, optional
        Warps of a block that work at the same time -> share of its work. Default: all of them.
    """

    blocks: int
    threads: int
    counts: Mapping[str, float]
    round_trips: float
    hidden_round_trips: float
    memory_bytes: float
    busy: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "busy", self.busy or {self.warps: 1.0})

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // WARP)


def work(one: Mapping[str, float], blocks: int, threads: int, array_bytes: float) -> Work:
    """The work of an average block.

    Device memory carries each array (of ``array_bytes`` together) once, as if caches were perfect,
    but not more than was asked for. All loads of an interval between barriers are under way
    together, so that it costs one round trip. Loads after the last barrier are waited for by
    eights.

    Parameters
    ----------
    one : mapping of str to float
        Counters of a block of the compiled kernel, and its `distlearn.kernels.counters.Flow`.
    """
    warps, counts = -(-threads // WARP), {name: one[name] for name in NAMES}
    rest = one["last_loads"] / warps
    exposed = one["exposed"] + (
        rest / LOADS_IN_FLIGHT if rest > LOADS_IN_FLIGHT else math.ceil(rest > 0))
    busy = {int(name.removeprefix(BUSY)): n for name, n in one.items() if name.startswith(BUSY)}
    busy = {warps: n / sum(busy.values()) for warps, n in busy.items()}
    return Work(blocks, threads, counts, exposed, one["hidden"],
                min(array_bytes, blocks * sector_bytes(counts)), busy)


def sector_bytes(counts: Mapping[str, float]) -> float:
    """What the counted accesses ask of caches and memory, in bytes."""
    return SECTOR_BYTES * (counts["global_load_sectors"] + counts["global_store_sectors"])
