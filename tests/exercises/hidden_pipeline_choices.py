"""Hidden cases of notebook pipeline_3. Never handed out: the grader alone calls with these.

Versions are counted along the order of 1F1B, times and memory by going through whole schedules;
`test_references_pipeline.py` compares them with distlearn.
"""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from typing import Any

from distlearn.grading import Case

_spec = importlib.util.spec_from_file_location(
    "orders", Path(__file__).with_name("hidden_pipeline_orders.py"))
assert _spec is not None
assert _spec.loader is not None
orders = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(orders)

SCHEMES = ("pipedream", "vertical_sync", "2bw", "flush")


def cases() -> dict[str, list[Case]]:
    """Hidden cases by question id; the same in every run."""
    return {
        "pipeline/versions": [Case(sizes, versions(*sizes)) for sizes in VERSIONS],
        "pipeline/stash": [Case((p, s, weights, scheme), weights * held(p, s, scheme))
                           for p, s, weights in STASH for scheme in SCHEMES],
        "pipeline/two_bw": [Case(case, two_bw(*case)) for case in TWO_BW],
        "pipeline/choose": [Case(case, choose(*case)) for case in CHOOSE],
        "pipeline/design": [Case(sizes, bars(*sizes)) for sizes in DESIGN],
    }


VERSIONS = [(1, 4, 0), (2, 5, 0), (2, 5, 1), (3, 1, 0), (3, 8, 1), (5, 12, 0), (5, 12, 3),
            (6, 3, 2), (8, 20, 4), (8, 9, 7)]


def one_f_one_b(p: int, m: int, s: int) -> list[tuple[str, int]]:
    """As long as fewer than p - s are in flight F, else B."""
    order: list[tuple[str, int]] = []
    forward = backward = 0
    while backward < m:
        if forward < m and forward - backward < p - s:
            order.append(("F", forward))
            forward += 1
        else:
            order.append(("B", backward))
            backward += 1
    return order


def versions(p: int, m: int, s: int) -> list[int]:
    """Go along the order, an update after every B."""
    newest, used = 0, []
    for kind, _ in one_f_one_b(p, m, s):
        if kind == "F":
            used.append(newest)
        newest += kind == "B"
    return used


STASH = [(2, 0, 10.0), (2, 1, 3.0), (3, 1, 1.5), (5, 2, 8e9), (8, 0, 1e9), (8, 6, 7.0)]


def held(p: int, s: int, scheme: str) -> int:
    """From the oldest version that a minibatch in flight reads to the newest, at every moment."""
    m, group = 6 * p, p if scheme == "2bw" else 1
    read = {
        "pipedream": versions(p, m, s),
        "vertical_sync": versions(p, m, 0),
        "2bw": [max(0, k // group - 1) for k in range(m)],
        "flush": [0] * m,
    }[scheme]
    most = done = newest = 0
    flying: list[int] = []
    for kind, i in one_f_one_b(p, m, s):
        if kind == "F":
            flying.append(i)
        most = max(most, newest + 1 - min(read[k] for k in [*flying, min(i + 1, m - 1)]))
        if kind == "B":
            flying.remove(i)
            done += 1
            newest = 0 if scheme == "flush" else done // group
    return most


TWO_BW = [(0.0, 0.5, [[2.0]]), (1.0, 1.0, [[1.0], [1.0]]), (3.0, 0.25, [[1.0, 5.0]] * 6),
          (-2.0, 0.125, [[4.0, 0.0], [8.0, -8.0], [1.0, 2.0], [0.5, 0.25]]),
          (10.0, 1.5, [[2.0, 2.0, 2.0]] * 7), (0.5, 0.75, [[float(k), k + 1.0] for k in range(9)]),
          (7.0, 0.0, [[1.0], [2.0], [3.0]]), (1.0, 2.0, [[0.0]] * 5),
          (4.0, 0.3, [[1.0, 9.0, 2.0]] * 3)]


def two_bw(w: float, lr: float, batches: list[list[float]]) -> list[float]:
    """With two buffers, as a stage has them: the newest weights and those before."""
    newest = before = Fraction(w)
    after = []
    for examples in batches:
        gradient = sum((before - Fraction(x) for x in examples), Fraction(0)) / len(examples)
        before, newest = newest, newest - Fraction(lr) * gradient
        after.append(float(newest))
    return after


CHOOSE = [(4, 16, 1.0, 16.0), (4, 16, 2.0, 16.0), (4, 16, 0.03125, 8.0), (2, 8, 1.0, 8.0),
          (8, 16, 8.0, 16.0), (4, 8, 16.0, 8.0), (4, 24, 0.5, 8.0), (2, 12, 0.0, 7.0),
          (6, 36, 0.1, 8.5), (2, 12, 0.0, 2.1), (3, 12, 0.5, 9.0), (4, 24, 3.0, 5.0)]


def choose(p: int, batch: int, c: float, limit: float) -> tuple[str, int]:
    """Go through every schedule, action by action."""
    found: list[tuple[float, str, int]] = []
    for m in (m for m in range(1, batch + 1) if batch % m == 0):
        b = batch / m
        plain = [[f"{k}{s}.{i}" for k, i in one_f_one_b(p, m, s)] for s in range(p)]
        split = [orders.zb_h1(p, m, s) for s in range(p)]
        options: list[tuple[str, list[list[str]], float, dict[str, float]]] = [
            ("1f1b", plain, b, {"F": c + b, "B": c + 2 * b}),
            ("zb_h1", split, b, dict.fromkeys("FIW", c + b)),
        ]
        if m % p == 0:
            thin = [orders.interleaved(p, m, 4, s) for s in range(p)]
            options.append(("interleaved_1f1b", thin, b / 4, {"F": c + b / 4, "B": c + b / 2}))
        for name, rows, size, times in options:
            if max(map(orders.kept, rows)) * size <= limit:
                time = orders.makespan(rows, lambda a, t=times: t[a[0]], p)
                found.append((time, name, m))
    found.sort()
    assert found[0][0] < found[1][0] * (1 - 1e-9), "two choices are equally fast"
    return found[0][1:]


DESIGN = [(2, 2), (2, 4), (3, 3), (3, 7), (4, 4), (4, 9), (5, 6), (5, 12), (6, 13), (8, 16)]


def bars(p: int, m: int) -> dict[str, Any]:
    """By going through 1F1B; the least is a last rank that starts after p - 1 and never waits."""
    times = {"F": 1.0, "B": 2.0}
    plain = [[f"{k}{s}.{i}" for k, i in one_f_one_b(p, m, s)] for s in range(p)]
    slow = orders.makespan(plain, lambda a: times[a[0]], p)
    least = p - 1 + 3 * m
    return {"ranks": p, "microbatches": m, "limit": p,
            "bars": [slow - 1, slow - (slow - least) // 2, least]}
