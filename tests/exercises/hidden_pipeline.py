"""Hidden cases of the pipeline exercises. Never handed out: the grader alone calls with these.

The wanted values are worked out here without the package's own code, each by a definition rather
than by the short rule that is asked for; `test_references.py` compares them with distlearn's
schedules and simulator.
"""

from __future__ import annotations

import random
from fractions import Fraction

from distlearn.grading import Case


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    return {
        "pipeline/bubble": [Case((p, m), bubble(p, m)) for p, m in BUBBLE],
        "pipeline/order": [Case(sizes, greedy_order(*sizes)) for sizes in ORDER],
        "pipeline/peak": [Case((actions,), peak(actions)) for actions in peak_inputs()],
        "pipeline/deadlock": [Case((ranks,), stuck(ranks)) for ranks in deadlock_inputs()],
        "pipeline/interleaving": [Case(sizes, gain(*sizes)) for sizes in GAIN],
    }


BUBBLE = [(1, 1), (2, 1), (3, 7), (5, 2), (8, 64), (64, 512), (16, 16), (7, 3), (4, 8), (1, 9),
          (12, 1000), (4, 16), (8, 5)]


def bubble(p: int, m: int) -> float:
    """Step through 1F1B in units of a third of a slot (F = 1, B = 2) and count idle units."""
    finish = step_time(p, m, 1)
    return float(1 - Fraction(3 * m) / finish)


def step_time(p: int, m: int, v: int) -> Fraction:
    """Step time by the critical path: up all p ranks with F = 1/v, m slots, down with B = 2/v."""
    up = sum((Fraction(1, v) for _ in range(p - 1)), Fraction(0))
    down = sum((Fraction(2, v) for _ in range(p - 1)), Fraction(0))
    return up + 3 * m + down


ORDER = [(1, 1, 0), (2, 1, 0), (3, 5, 1), (4, 3, 0), (4, 4, 3), (4, 12, 0), (5, 2, 1), (5, 2, 4),
         (6, 9, 2), (8, 8, 0), (8, 8, 7), (8, 3, 4), (3, 5, 1)]


def greedy_order(p: int, m: int, r: int) -> list[str]:
    """1F1B by its definition, all ranks at once: a backward as soon as one can run, else a
    forward, never more than p - s microbatches in flight on rank s."""
    forward, backward = [0] * p, [0] * p
    orders: list[list[str]] = [[] for _ in range(p)]
    while min(backward) < m:
        before = (list(forward), list(backward))
        for s in range(p):
            has_gradient = (before[0][s] if s == p - 1 else before[1][s + 1]) > backward[s]
            has_input = (m if s == 0 else before[0][s - 1]) > forward[s]
            if has_gradient and _turn(orders[s], p - s, forward[s], m):
                orders[s].append(f"B{s}.{backward[s]}")
                backward[s] += 1
            elif has_input and forward[s] - backward[s] < p - s:
                orders[s].append(f"F{s}.{forward[s]}")
                forward[s] += 1
    return orders[r]


def _turn(done: list[str], limit: int, forward: int, m: int) -> bool:
    """Whether rank s may start its backwards: it is as full as it may be, or nothing is left."""
    kept = sum(1 if action[0] == "F" else -1 for action in done)
    return kept == limit or forward == m


def peak_inputs() -> list[list[str]]:
    """Orders of known schedules' shapes, and random ones with B or with I and W."""
    dice = random.Random(20)
    inputs: list[list[str]] = [
        ["F3.0", "B3.0"],
        [f"F0.{i}" for i in range(12)] + [f"B0.{i}" for i in range(12)],
        [f"{kind}5.{i}" for i in range(10) for kind in "FB"],
        [f"{kind}5.{i}" for i in range(10) for kind in "FIW"],
        ["F0.0", "F4.0", "F0.1", "B4.0", "F4.1", "B0.0", "B4.1", "B0.1"],
        ["F0.0", "I0.0", "F0.1", "I0.1", "F0.2", "I0.2", "W0.0", "W0.1", "W0.2"],
        ["F0.0", "B0.0", "F0.1", "B0.1", "F0.2", "F0.3", "F0.4", "B0.2", "B0.3", "B0.4"],
        ["F1.10", "F1.11", "B1.10", "B1.11"],
        [],
    ]
    for trial in range(8):
        split, m = trial % 2 == 1, dice.randint(2, 15)
        parts = [["F", "I", "W"] if split else ["F", "B"] for _ in range(m)]
        order = []
        while any(parts):
            i = dice.choice([i for i in range(m) if parts[i]])
            order.append(f"{parts[i].pop(0)}2.{i}")
        inputs.append(order)
    return inputs


def peak(actions: list[str]) -> int:
    """For each moment, count the microbatches whose F has begun and whose B or W has not ended."""
    most = 0
    for now in range(len(actions)):
        begun = {a[1:] for a in actions[: now + 1] if a[0] == "F"}
        ended = {a[1:] for a in actions[:now] if a[0] in "BW"}
        most = max(most, len(begun - ended))
    return most


def deadlock_inputs() -> list[list[list[str]]]:
    """Schedules that run and schedules that hang, made by hand and by swapping actions."""
    dice = random.Random(7)
    inputs = [
        [["F0.0", "B0.0"]],
        [["B0.0", "F0.0"]],
        [["F0.0", "F0.1", "B0.1", "B0.0"], ["F1.0", "F1.1", "B1.1", "B1.0"]],
        [["F0.1", "F0.0", "B0.0", "B0.1"], ["F1.0", "B1.0", "F1.1", "B1.1"]],
        [["F0.0", "F0.1", "B0.0", "B0.1"], ["B1.0", "F1.0", "F1.1", "B1.1"]],
        [["F0.0", "F0.1", "B0.1", "B0.0"], ["F1.0", "B1.0", "F1.1", "B1.1"],
         ["F2.0", "B2.0", "F2.1", "B2.1"]],
    ]
    for trial in range(26):
        p, m = dice.randint(2, 5), dice.randint(2, 4)
        ranks = [greedy_order(p, m, s) for s in range(p)]
        if trial % 3 == 0:
            ranks = [[f"{k}{s}.{i}" for k in "FB" for i in range(m)] for s in range(p)]
        for _ in range(trial % 4):
            row = dice.choice(ranks)
            k = dice.randrange(len(row) - 1)
            row[k], row[k + 1] = row[k + 1], row[k]
        inputs.append(ranks)
    inputs.append([greedy_order(12, 11, s) for s in range(12)])
    return inputs


def stuck(ranks: list[list[str]]) -> list[str]:
    """Take away, again and again, every action all of whose forerunners are gone; see what stays.

    The forerunners of an action are the one before it on its rank and the one it needs.
    """
    last = len(ranks) - 1
    waits: dict[str, set[str]] = {}
    for s, row in enumerate(ranks):
        for k, action in enumerate(row):
            kind, i = action[0], action.split(".")[1]
            before = {row[k - 1]} if k else set()
            if kind == "F" and s > 0:
                before.add(f"F{s - 1}.{i}")
            if kind == "B":
                before.add(f"F{s}.{i}")
                if s < last:
                    before.add(f"B{s + 1}.{i}")
            waits[action] = before
    while True:
        free = [action for action, before in waits.items() if not before & waits.keys()]
        if not free:
            break
        for action in free:
            del waits[action]
    return [next(a for a in row if a in waits) for row in ranks if any(a in waits for a in row)]


GAIN = [(1, 1, 1), (2, 2, 2), (4, 8, 4), (4, 16, 2), (8, 8, 2), (8, 64, 3), (16, 16, 6), (3, 9, 5),
        (64, 512, 2), (6, 6, 1)]


def gain(p: int, m: int, v: int) -> float:
    """Ratio of the two critical paths."""
    return float(step_time(p, m, 1) / step_time(p, m, v))
