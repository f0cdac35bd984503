"""BPipe: 1F1B with its memory evened out, by parking activations on the other half of the ranks.

Kim, Kim, Yu and Chun, "BPipe: Memory-Balanced Pipeline Parallelism for Training Large Language
Models", ICML 2023. 1F1B fills rank 0 with p activations and the last rank with one. Rank x of the
first half evicts what it will not need soon to rank p-1-x, and loads it back before its backward.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.one_f_one_b import one_f_one_b


def order(p: int, m: int) -> Schedule:
    """1F1B's order, with evictions (E) and loads (L) on the ranks x < p/2.

    No rank keeps more than ``ceil((p+2)/2)`` activations, if a transfer takes no longer than F and
    B. A load starts one backward ahead; a forward right after an eviction waits for the room.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    """
    cap = most(p)
    ranks = tuple(
        tuple(_swapped(list(one_f_one_b(r, min(p - 1 - r, m), m)), r, cap)) for r in range(p))
    return Schedule("bpipe", p, m, 1, placement=tuple(range(p)), ranks=ranks,
                    partner=tuple(reversed(range(p))))


def most(p: int) -> int:
    """``ceil((p+2)/2)``: half of what a pair of ranks keeps in 1F1B, and one slot to swap."""
    return -(-(p + 2) // 2)


def _swapped(row: list[Action], stage: int, cap: int) -> Iterator[Action]:
    """Evict the newest activation whenever the next ones would not fit; load it when it is due."""
    here, away = 0, list[int]()
    forwards_left = sum(a.kind == "F" for a in row)
    for k, action in enumerate(row):
        yield action
        if action.kind == "F":
            here += 1
            forwards_left -= 1
            following = row[k + 1] if k + 1 < len(row) else action
            freed = following.kind == "B"
            due = freed and bool(away) and away[0] <= following.microbatch + 2
            if forwards_left and here - freed + due + 1 > cap:
                here -= 1
                away.append(action.microbatch)
                yield Action("E", stage, action.microbatch)
        else:
            here -= 1
            if away and away[0] <= action.microbatch + 2:
                here += 1
                yield Action("L", stage, away.pop(0))


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of a rank, ``(p-1)(F+B)`` as 1F1B, for free transfers."""
    F, B, _, _ = costs.uniform()
    if costs.swap:
        raise ValueError(f"bpipe's bubble formula needs swap=0; got swap={costs.swap}")
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int) -> int:
    """Activations kept by rank r, for free transfers; nowhere more than ``ceil((p+2)/2)``.

    Rank x < p/2: ``p-x``, up to that bound. Its partner: ``x+1`` of its own, what is over the
    bound, and one more while a load overlaps an eviction. For m >= 2p.
    """
    if m < 2 * p:
        raise ValueError(f"bpipe's peak formula needs m >= 2p; got p={p} m={m}")
    cap, x = most(p), min(r, p - 1 - r)
    kept = p - x
    if r == x:
        return min(kept, cap)
    parked = max(0, kept - cap)
    return x + 1 + parked + (1 if parked else 0)
