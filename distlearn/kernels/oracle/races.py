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
              ) -> tuple[dict[str, str], tuple[Touch, Touch, Word] | None]:
        """Kinds of conflicts in a space ("cross_warp" beats "same_warp"), and the first pair.

        Nothing orders threads of different warps: of those it is enough to know which warps read
        and write, so that a word which all threads touch does not cost all their pairs.
        """
        kinds: dict[str, str] = {}
        pairs: list[tuple[Touch, Touch, Word]] = []
        within: list[list[Touch]] = []
        for word, touched in self.words.items():
            if word[0] != space or len(touched) == 1 or all(t[0] == "R" for t in touched):
                continue
            touches = [*map(Touch._make, sorted(touched))]
            first = next(((a, b) for a, b in combinations(touches, 2) if conflict(a, b, ordered)),
                         None)
            if first is None:
                continue
            pairs.append((*first, word))
            warps: defaultdict[int, list[Touch]] = defaultdict(list)
            for touch in touches:
                warps[touch.thread // 32].append(touch)
            within += warps.values()
            plain, all_ = ({t.thread // 32 for t in touches if t.op in ops} for ops in ("W", "WA"))
            readers = {t.thread // 32 for t in touches if t.op == "R"}
            if plain and len(all_) > 1:
                kinds["WW"] = "cross_warp"
            if readers and len(readers | all_) > 1:
                kinds["RW"] = "cross_warp"
        for touches in within:
            if len(kinds) == 2:
                break
            for a, b in combinations(touches, 2):
                if conflict(a, b, ordered):
                    kinds.setdefault("WW" if "R" not in (a.op, b.op) else "RW", "same_warp")
        return kinds, min(pairs, default=None)


def conflict(a: Touch, b: Touch, ordered: Ordered) -> bool:
    """Whether nothing orders two accesses to a word of which one writes."""
    if a.thread == b.thread or a.op == b.op == "R" or a.op == b.op == "A":
        return False
    return a.thread // 32 != b.thread // 32 or not ordered(a, b)
