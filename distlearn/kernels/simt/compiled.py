"""What the time model wants of a launch, and a source listing does not tell.

**Loads of shared memory as they are when compiled.** ``for j in range(8): b[j] = Bs[k, 8 * x + j]``
unrolls to eight loads of consecutive words; nvcc makes two of them, of 16 bytes each, if all
threads' addresses are the same distance from a multiple of 16 bytes. It does so across all loops
that it unrolls: in ``As[8 * y + i, k]`` it is the steps along ``k`` that are neighbours, and of a
row that begins one word after such a multiple, the first three words come with one load that begins
at the multiple. (Seen in the code of nvcc 13.0 for compute capability 8.6: 16 + 16 loads for 8 x 8
register tiles and 8 steps; 38 where rows are padded by 5 words.)

**What such a load costs.** It returns 128 bytes to a warp per clock, so that 16 bytes a lane take
four clocks; but two if lanes n and n ^ 1, or n and n ^ 2, read the same address throughout (NVIDIA
staff, developer forum, "Unexpected shared memory bank conflict", 2019).

**How the work lies in time**: see `distlearn.kernels.counters.Flow`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from distlearn.hardware.memory_system import BANK_BYTES, shared_access
from distlearn.kernels.counters import INDEX, WARP, Flow, Tally
from distlearn.kernels.intrinsics import BYTES
from distlearn.kernels.simt.access import Storage, known_cost, shared_cost, warp_rows
from distlearn.kernels.simt.numbers import Whole
from distlearn.kernels.simt.space import Mask, Space
from distlearn.kernels.simt.vectors import Array, Sym, Vec

REQUESTS, WAVEFRONTS = INDEX["shared_load_requests"], INDEX["shared_load_wavefronts"]


class Compiled:
    """Sees the instructions of a launch, one interval between barriers after another."""

    def __init__(self, space: Space, tally: Tally, flow: Flow) -> None:
        self.space, self.tally, self.flow = space, tally, flow
        self.open: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        self.done: Counter[Mask] = Counter()
        self.loads: Counter[Mask] = Counter()
        self.stage = 0

    def load_global(self, mask: Mask) -> None:
        """A load of global memory."""
        self.done[mask] += 1
        self.loads[mask] += 1
        self.stage = self.stage or 1

    def store_shared(self, mask: Mask) -> None:
        """A store to shared memory: what was loaded before it is not merged with what comes."""
        self.done[mask] += 1
        self.stage = 3 if self.stage == 2 else self.stage
        self._merge()

    def load_shared(self, line: int, storage: Storage, size: int, at: Whole, mask: Mask, width: int
                    ) -> None:
        """A load of shared memory, counted at once or, if it might be merged, later."""
        self.done[mask] += 1
        self.stage = 2 if self.stage == 1 else self.stage
        vec, const = (at.vec, at.const) if isinstance(at, Sym) else (None, at)
        known = mask.static and (
            vec is None or (vec.static and vec.unit % (BYTES // size) == 0))
        if width == 1 and size < BYTES and known:
            self.open[line, storage, size, vec, mask][const] += 1
        else:
            self._count(line, size, vec, const, mask, width)

    def barrier(self, mask: Mask) -> None:
        """The interval ends for these blocks."""
        self._merge()
        busy, blocks = self._work(), mask.warps / self.space.warps_per_block
        if self.loads:
            loading = sum(_warps(loads) for loads in self.loads)
            least = np.where(loading, busy, 0).max(axis=1), busy.max(axis=1)
            beside = (self.stage == 3) | (least[0] < least[1])
            self.flow.hidden += blocks * float(np.mean(beside))
            self.flow.exposed += blocks * float(np.mean(~beside))
        self.loads.clear()
        self.stage = 0

    def finish(self) -> None:
        """The launch ends."""
        self._merge()
        self._work()
        self.flow.last_loads += sum(mask.warps * times for mask, times in self.loads.items())

    def _work(self) -> Array:
        """Instructions of every warp, a row a block, that the interval had."""
        rows = np.zeros((self.space.blocks, self.space.warps_per_block), np.int64)
        for mask, times in self.done.items():
            rows += times * _warps(mask)
        self.done.clear()
        totals = rows.sum(axis=1)
        busy = np.rint(totals / np.maximum(rows.max(axis=1), 1)).astype(int)
        for warps in np.unique(busy[totals > 0]).tolist():
            self.flow.busy[warps] = (self.flow.busy.get(warps, 0.0)
                                     + float(totals[busy == warps].sum()))
        return rows

    def _merge(self) -> None:
        """For each 16 bytes, count the narrowest load that has all that is used of them."""
        for (line, _, size, vec, mask), times in self.open.items():
            pieces: defaultdict[int, list[int]] = defaultdict(list)
            for const in times:
                pieces[const // (BYTES // size)].append(const)
            for used in pieces.values():
                width = 1
                while min(used) // width != max(used) // width:
                    width *= 2
                for _ in range(max(times[const] for const in used)):
                    self._count(line, size, vec, min(used) // width * width, mask, width)
        self.open.clear()

    def _count(self, line: int, size: int, vec: Vec | None, const: int, mask: Mask, width: int
               ) -> None:
        row = self.tally.row(line)
        row[REQUESTS] += mask.warps
        row[WAVEFRONTS] += known_cost(
            self.space, shared_cost if width == 1 else wide_cost, vec, const, size, mask, width,
            max(BANK_BYTES, size * width))


def _warps(mask: Mask) -> Array:
    """Whether each warp has active threads, a row a block."""
    found: Array = (mask.lane_bits != 0).reshape(mask.space.blocks, -1)
    return found


def wide_cost(space: Space, vec: Vec | None, const: int, size: int, mask: Mask, width: int) -> int:
    """Wavefronts of a load of more than 4 bytes a lane."""
    elements, active, times = warp_rows(space, vec, const, mask)
    elements = np.where(active, elements - int(elements.min()) // WARP * WARP, 0)
    active, alone = active.copy(), np.ones(len(elements), bool)
    lanes = np.arange(WARP)
    for bit in (1, 2):
        left, right = (lanes[lanes & bit == side] for side in (0, bit))
        on = active[:, left] | active[:, right]
        differ = active[:, left] & active[:, right] & (elements[:, left] != elements[:, right])
        pairs = alone & ~differ.any(axis=1)
        # One lane of each pair is left, so that twice as many take their turn together.
        one = np.where(active[:, left], elements[:, left], elements[:, right])
        elements[pairs], active[pairs] = (
            np.pad(half[pairs], ((0, 0), (0, WARP // 2))) for half in (one, on))
        alone &= ~pairs
    turns = shared_access(elements * size, size * width, active)
    return int(turns.wavefronts.sum()) * times
