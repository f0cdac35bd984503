"""Accesses of one block in one barrier interval, and which of them conflict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple


class Touch(NamedTuple):
    """One thread's access to a word: op "R", "W" or "A" (atomic).

    ``epoch`` is how many syncwarps came before it: of its own thread in the oracle, of the launch
    in the fast executor.
    """

    op: str
    thread: int
    epoch: int
    line: int


Ordered = Callable[[Touch, Touch], bool]  # a syncwarp of both threads lies between
Word = tuple[str, int, int]  # "shared" or "global", number of the array, element


class Interval:
    """What a block's threads touched since its last barrier; a touch may be any such tuple."""

    def __init__(self) -> None:
        self.words: defaultdict[Word, set[tuple[str, int, int, int]]] = defaultdict(set)

    def races(self, space: str, ordered: Ordered
              ) -> tuple[dict[str, str], list[tuple[Touch, Touch, Word]]]:
        """Kinds of conflicts in a space ("cross_warp" beats "same_warp"), and the pairs."""
        kinds: dict[str, str] = {}
        pairs = []
        for word, touches in self.words.items():
            if word[0] != space or len(touches) == 1 or all(t[0] == "R" for t in touches):
                continue
            for a, b in combinations(map(Touch._make, sorted(touches)), 2):
                if conflict(a, b, ordered):
                    kind = "WW" if "R" not in (a.op, b.op) else "RW"
                    cross = a.thread // 32 != b.thread // 32
                    if cross or kind not in kinds:
                        kinds[kind] = "cross_warp" if cross else "same_warp"
                    pairs.append((a, b, word))
        return kinds, pairs


def conflict(a: Touch, b: Touch, ordered: Ordered) -> bool:
    """Whether nothing orders two accesses to a word of which one writes."""
    if a.thread == b.thread or a.op == b.op == "R" or a.op == b.op == "A":
        return False
    return a.thread // 32 != b.thread // 32 or not ordered(a, b)
