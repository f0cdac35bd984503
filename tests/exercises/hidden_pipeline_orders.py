"""Hidden cases of notebook pipeline_2. Never handed out: the grader alone calls with these.

Orders come from another rule than the one that is asked for, times from stepping through them,
memory from counting; `test_references_pipeline.py` compares all of it with distlearn.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from distlearn.grading import Case

Rows = list[list[str]]


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    return {
        "pipeline/warmup": [Case(sizes, warmup(*sizes)) for sizes in INTERLEAVED],
        "pipeline/interleaved": [Case(sizes, interleaved(*sizes)) for sizes in INTERLEAVED],
        "pipeline/zb_h1": [Case(sizes, zb_h1(*sizes)) for sizes in ZB_H1],
        "pipeline/zb_bubble": [Case(case, idle(*case)) for case in ZB_BUBBLE],
        "pipeline/memory": [Case((*sizes, model), model / (sizes[0] * sizes[2]) * kept(
            interleaved(*sizes))) for sizes, model in zip(INTERLEAVED, MODEL, strict=True)],
        "pipeline/bpipe": [Case((p,), pairs(p)) for p in (1, 3, 5, 6, 9, 10, 11, 12, 15, 16)],
    }


INTERLEAVED = [(1, 3, 2, 0), (2, 2, 4, 0), (2, 6, 2, 1), (3, 3, 2, 2), (3, 6, 3, 1), (3, 9, 2, 0),
               (4, 4, 4, 0), (4, 12, 3, 2), (4, 8, 2, 1), (5, 10, 2, 4), (6, 6, 2, 0),
               (8, 16, 2, 3)]
MODEL = [1.0, 64.0, 3.5, 6e9, 18.0, 7.0, 128.0, 2.4e10, 0.5, 11.0, 1e12, 33.0]


def interleaved(p: int, m: int, v: int, r: int) -> list[str]:
    """By the number of a forward: Megatron-LM reads chunk and microbatch off its digits."""
    def turn(k: int, last: bool) -> str:
        group, rest = divmod(k, p * v)
        chunk, i = divmod(rest, p)
        stage = (v - 1 - chunk if last else chunk) * p + r
        return f"{'B' if last else 'F'}{stage}.{group * p + i}"

    order, forward, backward = [], 0, 0
    ahead = p * (v - 1) + sum(2 for _ in range(r, p - 1))
    while backward < m * v:
        if forward < m * v and forward - backward <= ahead:
            order.append(turn(forward, last=False))
            forward += 1
        else:
            order.append(turn(backward, last=True))
            backward += 1
    return order


def warmup(p: int, m: int, v: int, r: int) -> int:
    """Forwards before the first backward, less the one that is a pair with it, if there is one."""
    order = interleaved(p, m, v, r)
    first = next(k for k, action in enumerate(order) if action[0] == "B")
    return first - 1 if first < m * v or p * (v - 1) + 2 * (p - 1 - r) < m * v else first


ZB_H1 = [(1, 1, 0), (1, 3, 0), (2, 1, 1), (2, 4, 0), (3, 5, 2), (4, 4, 2), (4, 9, 3), (5, 2, 4),
         (5, 3, 1), (6, 8, 3), (8, 8, 7), (8, 12, 1), (6, 2, 1)]


def zb_h1(p: int, m: int, r: int) -> list[str]:
    """F and I where 1F1B has F and B, and a W wherever otherwise more than p would be kept."""
    order: list[str] = []
    forward = inputs = weights = 0
    while weights < m:
        if inputs > r + weights or (inputs == m and forward == m):
            order.append(f"W{r}.{weights}")
            weights += 1
        elif forward < m and forward - inputs < p - r:
            order.append(f"F{r}.{forward}")
            forward += 1
        else:
            order.append(f"I{r}.{inputs}")
            inputs += 1
    return order


ZB_BUBBLE = [(1, 1, 2.0, 2.0, 1.0), (2, 2, 1.0, 1.0, 1.0), (2, 9, 1.5, 1.25, 1.0),
             (3, 4, 2.0, 5.0, 2.0), (4, 4, 1.0, 1.0, 0.5), (5, 8, 4.0, 3.0, 2.5),
             (6, 12, 1.0, 1.5, 1.0), (8, 16, 7.0, 8.0, 6.0), (8, 8, 10.0, 10.0, 1.0)]


def idle(p: int, m: int, F: float, I: float, W: float) -> float:
    """Step through it, and take away what a rank works."""
    times = {"F": F, "I": I, "W": W}
    rows = [zb_h1(p, m, r) for r in range(p)]
    return makespan(rows, lambda action: times[action[0]], p) - m * (F + I + W)


def makespan(rows: Rows, time: Callable[[str], float], p: int) -> float:
    """Do every list in order, each action once what it needs is done. Stage s is on rank s % p."""
    end: dict[str, float] = {}
    clock, position = [0.0] * len(rows), [0] * len(rows)
    last = max(int(a[1:].split(".")[0]) for row in rows for a in row)
    while any(position[r] < len(row) for r, row in enumerate(rows)):
        for r, row in enumerate(rows):
            while position[r] < len(row):
                action = row[position[r]]
                stage, i = map(int, action[1:].split("."))
                if action[0] == "F":
                    needs = [f"F{stage - 1}.{i}"] if stage else []
                elif action[0] == "W":
                    needs = [f"I{stage}.{i}"]
                else:
                    needs = [f"F{stage}.{i}"] + [f"{action[0]}{stage + 1}.{i}"] * (stage < last)
                if not all(x in end for x in needs):
                    break
                clock[r] = max([clock[r], *(end[x] for x in needs)]) + time(action)
                end[action] = clock[r]
                position[r] += 1
    return max(clock)


def kept(order: list[str]) -> int:
    """The most forwards whose B or W has not ended."""
    most = now = 0
    for action in order:
        now += (action[0] == "F") - (action[0] in "BW")
        most = max(most, now)
    return most


def pairs(p: int) -> list[list[int]]:
    """Fold the ranks in two, and look at what each keeps in a long 1F1B."""
    ranks = list(range(p))
    partner = dict(zip(ranks, reversed(ranks), strict=True))
    keeps = {x: len(range(x, p)) for x in ranks}  # one more for each rank between it and the last
    bound = math.ceil((keeps[0] + 1) / 2 + 1 / 2)
    return [[x, partner[x], keeps[x] - bound] for x in ranks if keeps[x] > bound]
