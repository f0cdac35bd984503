"""What the average block of a launch does, as the time model wants it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from distlearn.hardware.memory_system import SECTOR_BYTES
from distlearn.kernels.counters import NAMES, WARP

LOADS_IN_FLIGHT = 8  # of a warp in a loop without barriers: unrolled by 4, two operands each

Lines = Mapping[int, Mapping[str, float]]


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
    """

    blocks: int
    threads: int
    counts: Mapping[str, float]
    round_trips: float
    hidden_round_trips: float
    memory_bytes: float

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // WARP)


def work(lines: Lines, blocks: int, threads: int, array_bytes: float) -> Work:
    """The work of an average block from counters per source line (of all ``blocks`` together).

    Device memory carries each array (of ``array_bytes`` together) once, as if caches were perfect,
    but not more than was asked for.

    Barriers cut the listing into intervals. All loads of an interval are under way together, so
    that one that ends at a barrier costs one round trip each time it runs, unless shared memory is
    read after the loads and written after that: then the loads were for later, and computing hides
    them. Loads outside of such intervals are waited for by eights.
    """
    warps = -(-threads // WARP) * blocks
    exposed = hidden = 0.0
    interval: list[Mapping[str, float]] = []
    for _, row in sorted(lines.items()):
        interval.append(row)
        if row.get("barrier_warps"):
            if any(r.get("global_load_requests") for r in interval):
                times = min(row["barrier_warps"] / warps,
                            sum(r.get("global_load_requests", 0) for r in interval) / warps)
                if _prefetches(interval):
                    hidden += times
                else:
                    exposed += times
            interval = []
    rest = sum(r.get("global_load_requests", 0) for r in interval) / warps
    exposed += rest / LOADS_IN_FLIGHT if rest > LOADS_IN_FLIGHT else math.ceil(rest > 0)
    counts = {name: sum(row.get(name, 0) for row in lines.values()) / blocks for name in NAMES}
    return Work(blocks, threads, counts, exposed, hidden,
                min(array_bytes, blocks * sector_bytes(counts)))


def sector_bytes(counts: Mapping[str, float]) -> float:
    """What the counted accesses ask of caches and memory, in bytes."""
    return SECTOR_BYTES * (counts["global_load_sectors"] + counts["global_store_sectors"])


def _prefetches(interval: list[Mapping[str, float]]) -> bool:
    """Whether the lines load from global memory, then read shared memory, then write it."""
    steps = iter(interval)
    return all(any(row.get(name) for row in steps) for name in
               ("global_load_requests", "shared_load_requests", "shared_store_requests"))
