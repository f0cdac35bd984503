"""1F1B-V: a V-shaped building block with the backward in one piece.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.4
and appendix (adaptive to an unsplit backward). About 3/4 of 1F1B's memory, and a slightly shorter
bubble, without splitting B.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe_v import v_shape

F_DOWN, F_UP, B_DOWN, B_UP, W_DOWN, W_UP = range(6)  # a B takes two slots: the second is called W


def order(p: int, m: int, v: int = 2) -> Schedule:
    """Repeat a block every 6 slots; then move every pass forward as far as memory allows.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    v : int
        Stages per rank: 2.
    """
    if v != 2:
        raise ValueError(f"1f1b_v has two stages per rank, so v must be 2; got v={v}")
    block = _block(p)
    slots = [[list(range(x, x + 6 * m, 6)) for x in passes] for passes in block]
    _move_up(slots)
    stages = [(r, 2 * p - 1 - r, 2 * p - 1 - r, r) for r in range(p)]
    ranks = tuple(
        tuple(Action(kind, stage, i) for _, kind, stage, i in sorted(
            (slot, "FFBB"[n], stages[r][n], i)
            for n in range(4) for i, slot in enumerate(slots[r][n])))
        for r in range(p))
    return Schedule("1f1b_v", p, m, 2, placement=v_shape(p), ranks=ranks)


def _block(p: int) -> list[list[int]]:
    """Slots of one microbatch's six passes on each rank.

    F takes one slot and B two, with a pause of three after every third B, so that passes of
    different microbatches never meet.
    """
    block = [[0] * 6 for _ in range(p)]
    now = 0
    for r in range(p):
        block[r][F_DOWN], now = now, now + 1
    for r in reversed(range(p)):
        block[r][F_UP], now = now, now + 1
    now += 3 if p % 3 == 0 else 0
    turn = -(p + 2) % 3
    for n, way in ((B_DOWN, range(p)), (B_UP, range(p - 1, -1, -1))):
        for r in way:
            block[r][n], block[r][n + 2] = now, now + 1
            turn += 1
            now += 2 if turn % 3 else 5
    return block


def _move_up(slots: list[list[list[int]]]) -> None:
    """In order of time, into the first empty slot that dependencies and the peak leave open."""
    everything = sorted((slot, r, n, i) for r, row in enumerate(slots)
                        for n, passes in enumerate(row) for i, slot in enumerate(passes))
    size = everything[-1][0] + 2
    taken = [bytearray(size) for _ in slots]
    held = [[0] * size for _ in slots]
    for slot, r, n, _ in everything:
        taken[r][slot] = 1
        held[r][slot] += {F_DOWN: 1, F_UP: 1, W_DOWN: -1, W_UP: -1}.get(n, 0)
    for curve in held:
        for t in range(1, size):
            curve[t] += curve[t - 1]
    peak = max(map(max, held))
    for slot, r, n, i in everything:
        first = 1 + max(_needed(slots, r, n, i), default=-1)
        if n in (F_DOWN, F_UP):
            first = max(first, taken[r].find(0, first, slot))
            room = slot
            while room > first and held[r][room - 1] < peak:
                room -= 1
            first = room
        new = taken[r].find(b"\0\0" if n in (B_DOWN, B_UP) else 0, first, slot)
        if new < 0:
            continue
        slots[r][n][i] = new
        taken[r][new], taken[r][slot] = 1, 0
        change = {F_DOWN: 1, F_UP: 1, W_DOWN: -1, W_UP: -1}.get(n, 0)
        for t in range(new, slot if change else new):
            held[r][t] += change


def _needed(slots: list[list[list[int]]], r: int, n: int, i: int) -> Iterator[int]:
    """The slots of the passes that must come before this one."""
    last = len(slots) - 1
    if i:
        yield slots[r][n][i - 1]
    if n in (W_DOWN, W_UP):
        yield slots[r][n - 2][i]
    elif n in (F_DOWN, B_DOWN):
        if r:
            yield slots[r - 1][n if n == F_DOWN else W_DOWN][i]
        elif n == B_DOWN:
            yield slots[r][F_UP][i]
    elif r < last:
        yield slots[r + 1][n if n == F_UP else W_UP][i]
    else:
        yield slots[r][F_DOWN if n == F_UP else W_DOWN][i]


def bubble_time(p: int, m: int, costs: Costs, v: int = 2) -> float:
    """Idle time of a rank, ``5(p-1) F``, for B = 2F, m >= p and p = 1, 4, 7, ...: 5/6 of 1F1B's.

    For other p the pauses of the block do not fit as well, and there is no such formula.
    """
    F, B, _, _ = costs.uniform()
    if p % 3 != 1 or B != 2 * F or m < p:
        raise ValueError("1f1b_v's bubble formula needs p % 3 == 1, B = 2F and m >= p; got "
                         f"p={p} m={m} F={F} B={B}")
    return 5 * (p - 1) * F


def peak_activations(p: int, m: int, r: int, v: int = 2) -> int:
    """Half-stage activations kept by rank r: ``2 ceil((2p+1)/3)``; 1F1B keeps 2p.

    For m >= 2p.
    """
    if m < 2 * p:
        raise ValueError(f"1f1b_v's peak formula needs m >= 2p; got p={p} m={m}")
    return 2 * -(-(2 * p + 1) // 3)
