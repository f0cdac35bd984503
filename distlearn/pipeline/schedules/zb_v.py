"""ZB-V: two half stages per rank, placed in a V, and no bubble with the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, section 6. The last
stage is on the rank that holds the first, so a microbatch's backward starts where its forward did,
and all ranks keep equally much.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe_v import v_shape
from distlearn.pipeline.schedules.zb_v_heuristic import search

SPAN = "longest_span"


def order(p: int, m: int, v: int = 2, method: str = "handcrafted",
          costs: Costs | None = None) -> Schedule:
    """Warm up, then F0 I0 W0 F1 I1 W1 in turn, then drain input gradients first.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1. (Below 2p - 1 the order for 2p - 1 is cut
        short.)
    v : int
        Stages per rank: 2.
    method : {"handcrafted", "heuristic"}
        The order above, which needs F = I = W to be free of bubbles, or the authors' greedy search
        for given ``costs`` (section 6.2).
    costs : Costs, optional
        For the heuristic: times of one half stage. Default: all equal.
    """
    if v != 2:
        raise ValueError(f"zb_v has two stages per rank, so v must be 2; got v={v}")
    if method not in ("handcrafted", "heuristic"):
        raise ValueError(
            f"zb_v needs method 'handcrafted' or 'heuristic'; got method={method!r}")
    if method == "heuristic":
        ranks = search(p, m, costs if costs is not None else Costs())
    else:
        full = max(m, 2 * p - 1)
        ranks = tuple(
            tuple(a for a in _rank(p, full, r) if a.microbatch < m) for r in range(p))
    return Schedule("zb_v", p, m, 2, placement=v_shape(p), ranks=ranks)


def _rank(p: int, m: int, r: int) -> Iterator[Action]:
    stage = (r, 2 * p - 1 - r)
    counters = {kind + str(half): count() for kind in "FIW" for half in (0, 1)}
    done = dict.fromkeys(counters, 0)

    def do(*names: str) -> Iterator[Action]:
        for name in names:
            done[name] += 1
            yield Action(name[0], stage[int(name[1])], next(counters[name]))

    for _ in range(2 * (p - r) - 1):
        yield from do("F0")
    for _ in range(r):
        yield from do("F1", "F0")
    for _ in range(p - r):
        yield from do("F1", "I1", "W1")
    while done["F1"] < m:
        yield from do(*(("F0",) if done["F0"] < m else ()), "I0", "W0", "F1", "I1", "W1")
    for _ in range(r):
        yield from do("I0", "I1")
    for _ in range(p - r):
        yield from do("I0", "W0")
    yield from do(*["W1"] * (m - done["W1"]))
    yield from do(*["W0"] * (m - done["W0"]))


def bubble_time(p: int, m: int, costs: Costs, v: int = 2, method: str = "handcrafted") -> float:
    """Idle time within the longest rank's span: 0, for F = I = W and m >= 2p - 1."""
    F, _, I, W = costs.uniform()
    if not F == I == W or m < 2 * p - 1 or method != "handcrafted":
        raise ValueError("zb_v's bubble formula needs F = I = W, m >= 2p - 1 and the handcrafted "
                         f"order; got F={F} I={I} W={W} p={p} m={m} method={method!r}")
    return 0.0


def peak_activations(p: int, m: int, r: int, v: int = 2, method: str = "handcrafted") -> int:
    """Half-stage activations kept by rank r: ``2p``, at most 2m; p whole microbatches.

    For m >= 2p - 1; the order cut short for fewer may keep less.
    """
    if m < 2 * p - 1 or method != "handcrafted":
        raise ValueError("zb_v's peak formula needs m >= 2p - 1 and the handcrafted order; "
                         f"got p={p} m={m} method={method!r}")
    return 2 * p
