"""Hanayo: the model folded into waves, so that a rank is visited again and again.

Liu, Cheng, Zhou and You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large
Model Training Efficiency", SC 2023, section 3. With w waves there are 2wp thin stages, placed in a
zigzag over the ranks; at a turn no transfer is needed. Bidirectional schedules need two copies of
the weights for a bubble this small; waves need one.

Bubble: the paper has ``(2p-2) / (3pw + p - 1)`` of the makespan for m = p and B = 2F; this greedy
stays below it, or within 2%. Exact formulas hold for few microbatches only (`bubble_time`); for any
number, a rank idles at least ``(p-1)(F+B)``, the way to the last rank and back from it. Peak: at
most ``2w min(m, window)`` thin-stage activations, about p to 7p/4 whole microbatches; no formula.
"""

from __future__ import annotations

from heapq import heappop, heappush

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int, waves: int = 1, v: int | None = None, window: int | None = None
          ) -> Schedule:
    """A rank does what is ready: backwards first, then forwards, those furthest along first.

    The order comes from a run in which a backward takes twice as long as a forward.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    waves : int
        Waves w >= 1; a rank holds 2w thin stages.
    v : int, optional
        Stages per rank, 2w, instead of ``waves``.
    window : int, optional
        Microbatches that may be under way at once, >= 1. Default 2p; p keeps less in memory, and
        idles more once m is larger.
    """
    if v is not None and (v % 2 or waves not in (1, v // 2)):
        raise ValueError(f"hanayo has 2 * waves stages per rank; got v={v} waves={waves}")
    waves = waves if v is None else v // 2
    if waves < 1:
        raise ValueError(f"hanayo needs waves >= 1; got waves={waves}")
    down = tuple(range(p))
    placement = (down + down[::-1]) * waves
    window = 2 * p if window is None else window
    if window < 1:
        raise ValueError(f"hanayo needs window >= 1; got window={window}")
    ranks = _run(p, m, placement, window)
    return Schedule("hanayo", p, m, 2 * waves, placement=placement, ranks=ranks)


def bubble_time(p: int, m: int, costs: Costs, waves: int = 1, v: int | None = None,
                window: int | None = None) -> float:
    """Idle time of a rank, ``2w(p-1)(F+B) - (m-1)(2w(F+B) - 2 max(F,B))``; times of a thin stage.

    For m <= min(p, 3); with one wave and B >= 2F for m <= p. For a window of at least m. Each
    further microbatch follows the one before after ``2 max(F,B)``, so it fills what is idle.
    """
    F, B, _, _ = costs.uniform()
    waves = waves if v is None else v // 2
    few = m <= min(p, 3) or (m <= p and waves == 1 and B >= 2 * F)
    if not few or (window is not None and window < m):
        raise ValueError("hanayo's bubble formula needs m <= min(p, 3), or m <= p with one wave "
                         f"and B >= 2F; and window >= m; got p={p} m={m} waves={waves} F={F} B={B} "
                         f"window={window}")
    return 2 * waves * (p - 1) * (F + B) - (m - 1) * (2 * waves * (F + B) - 2 * max(F, B))


def _run(p: int, m: int, placement: tuple[int, ...], window: int
         ) -> tuple[tuple[Action, ...], ...]:
    """Simulate with F = 1 and B = 2; whenever a rank is free it takes the best ready action."""
    last = len(placement) - 1
    rows: list[list[Action]] = [[] for _ in range(p)]
    ready: list[list[tuple[int, int, int, Action]]] = [[] for _ in range(p)]
    busy = [False] * p
    events: list[tuple[int, int, Action]] = []

    def offer(kind: str, stage: int, i: int) -> None:
        key = (0, i, -stage) if kind == "B" else (1, -stage, i)
        heappush(ready[placement[stage]], (*key, Action(kind, stage, i)))

    def start(rank: int, now: int) -> None:
        if not busy[rank] and ready[rank]:
            action = heappop(ready[rank])[-1]
            busy[rank] = True
            rows[rank].append(action)
            heappush(events, (now + (1 if action.kind == "F" else 2), rank, action))

    entered = min(window, m)
    for i in range(entered):
        offer("F", 0, i)
    start(0, 0)
    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, rank, (kind, stage, i) = heappop(events)
            busy[rank] = False
            if kind == "F":
                offer(*("F", stage + 1) if stage < last else ("B", stage), i)
            elif stage > 0:
                offer("B", stage - 1, i)
            elif entered < m:
                offer("F", 0, entered)
                entered += 1
        for rank in range(p):
            start(rank, now)
    return tuple(map(tuple, rows))
