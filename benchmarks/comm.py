"""Virtual collectives: small ones by the clock, large ones beside bare memory copies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Result, cpu_seconds
from distlearn.comm import Communicator, plan, run
from distlearn.comm.moves import bind, traffic

TITLE = "Collectives over 8 virtual ranks"
RANKS, SMALL, LARGE_BYTES = 8, 10_000, 64 * 2**20
LIMIT_S, LIMIT_RATIO = 1.0, 3.0
FLOOR = "numpy copies of as many bytes"


def results() -> Iterator[Result]:
    """10,000 small collectives of each kind; one large all_reduce by each algorithm."""
    for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier"):
        seconds, _ = cpu_seconds(partial(run, small, RANKS, args=(name,)))
        yield Result(f"{SMALL:,} x {name}, 256 bytes", seconds, limit=LIMIT_S)
    arrays = [np.full(LARGE_BYTES // 4, r, np.float32) for r in range(RANKS)]
    for algorithm in ("ring", "halving_doubling", "tree", "recursive_doubling"):
        seconds, _ = cpu_seconds(partial(run, large, RANKS, args=(arrays, algorithm)))
        copied_s, sent = floor(algorithm)
        yield Result(f"all_reduce of 64 MiB, {algorithm}", seconds / copied_s, unit="x the floor",
                     limit=LIMIT_RATIO, note=f"{1e3 * seconds:.0f} ms; {FLOOR}, {sent / 2**20:.0f} "
                                             f"MiB: {1e3 * copied_s:.0f} ms")


async def small(comm: Communicator, name: str) -> None:
    """Many collectives on 256 bytes."""
    x, call = np.ones(64, np.float32), getattr(comm, name)
    for _ in range(SMALL):
        await (call() if name == "barrier" else call(x))


async def large(comm: Communicator, arrays: list[NDArray[Any]], algorithm: str) -> Any:
    """One collective on arrays that are there already."""
    return await comm.all_reduce(arrays[comm.rank], algorithm=algorithm)


def floor(algorithm: str) -> tuple[float, int]:
    """Seconds to copy, and number of, the bytes that all ranks send, between warm buffers."""
    made = plan("all_reduce", algorithm, RANKS)
    elements = LARGE_BYTES // 4
    sizes = (elements // made.chunks,) * made.chunks
    sent = sum(rank.sent for rank in traffic(bind(made, sizes)))
    source, target = np.ones(elements, np.float32), np.zeros(elements, np.float32)

    def copy() -> None:
        for _ in range(sent // elements):
            np.copyto(target, source)

    return cpu_seconds(copy)[0], sent * 4
