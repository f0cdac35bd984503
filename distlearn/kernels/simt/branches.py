"""Tests of branches under masks that depend on data, counted many at once."""

from __future__ import annotations

import numpy as np

from distlearn.kernels.counters import INDEX
from distlearn.kernels.simt.space import Mask, Space

BRANCHES, DIVERGENT = INDEX["branches"], INDEX["divergent_branches"]
MOST = 1 << 20  # threads whose masks are kept


class Branches:
    """Notes every test, and which threads go on, and counts warps when there are enough."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.masks: dict[Mask, int] = {}  # numbers
        self.notes: list[tuple[list[int], int, int]] = []

    def count(self, row: list[int], mask: Mask, yes: Mask | None = None) -> None:
        """A test by the threads of a mask; ``yes`` are those for which it holds, if some differ."""
        if mask.space is not self.space or (mask.static and (yes is None or yes.static)):
            row[BRANCHES] += mask.warps
            if yes is not None:
                key = ("divergent", yes)
                torn = mask.memo.get(key)
                if torn is None:
                    bits, on = mask.lane_bits, yes.lane_bits
                    torn = mask.memo[key] = int(np.count_nonzero((on != 0) & (bits != on)))
                row[DIVERGENT] += torn
            return
        number = self.masks.setdefault(mask, len(self.masks))
        other = -1 if yes is None else self.masks.setdefault(yes, len(self.masks))
        self.notes.append((row, number, other))
        if len(self.masks) * self.space.size > MOST:
            self.flush()

    def flush(self) -> None:
        """Count what has been noted."""
        space = self.space
        if not self.notes:
            return
        lanes = np.empty((len(self.masks), *space.shape), bool)
        for mask, number in self.masks.items():
            lanes[number] = mask.array
        rows = space.spread(lanes.reshape(-1, space.threads), False)
        bits = np.packbits(rows, axis=None, bitorder="little").view(np.uint32).reshape(
            len(lanes), -1)
        warps = np.count_nonzero(bits, axis=1).tolist()
        pairs = [note for note in self.notes if note[2] >= 0]
        if pairs:
            all_, some = (bits[[note[n] for note in pairs]] for n in (1, 2))
            torn = np.count_nonzero((some != 0) & (some != all_), axis=1).tolist()
            for (row, _, _), count in zip(pairs, torn, strict=True):
                row[DIVERGENT] += count
        for row, number, _ in self.notes:
            row[BRANCHES] += warps[number]
        self.masks.clear()
        self.notes.clear()
