"""The wanted values of pipeline_2 and pipeline_3 agree with distlearn's schedules and simulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from distlearn.grading import Case, find
from distlearn.pipeline import Costs, build, simulate
from distlearn.pipeline.schedules.bpipe import most
from tests.exercises.material import hidden

HIDDEN = hidden()


def all_cases(name: str) -> Iterator[Case]:
    yield from find(name).cases
    yield from HIDDEN[name]


def test_warmup_is_that_of_the_schedule() -> None:
    for case in all_cases("pipeline/warmup"):
        p, m, v, r = case.args
        row = [str(a) for a in build("interleaved_1f1b", p, m, v).ranks[r]]
        before = next(k for k, a in enumerate(row) if a[0] == "B")
        assert case.wanted in (before - 1, m * v)
        assert case.wanted == before - 1 or before == m * v


def test_orders_are_those_of_the_schedules() -> None:
    for case in all_cases("pipeline/interleaved"):
        p, m, v, r = case.args
        assert case.wanted == [str(a) for a in build("interleaved_1f1b", p, m, v).ranks[r]]
    for case in all_cases("pipeline/zb_h1"):
        p, m, r = case.args
        assert case.wanted == [str(a) for a in build("zb_h1", p, m).ranks[r]]


def test_idle_time_equals_simulation() -> None:
    for case in all_cases("pipeline/zb_bubble"):
        p, m, f, i, w = case.args
        time = simulate(build("zb_h1", p, m), Costs(F=f, I=i, W=w)).makespan
        assert case.wanted == pytest.approx(time - m * (f + i + w), abs=1e-9)


def test_memory_equals_simulation() -> None:
    for case in all_cases("pipeline/memory"):
        p, m, v, r, model = case.args
        peak = simulate(build("interleaved_1f1b", p, m, v)).peak_activations[r]
        assert case.wanted == pytest.approx(peak * model / (p * v), rel=1e-12)


def test_pairs_are_those_that_bpipe_swaps_between() -> None:
    for case in all_cases("pipeline/bpipe"):
        p = case.args[0]
        keeps = simulate(build("1f1b", p, 2 * p)).peak_activations
        swaps = build("bpipe", p, 2 * p)
        evict = [r for r, row in enumerate(swaps.ranks) if any(a.kind == "E" for a in row)]
        assert case.wanted == [[x, swaps.partner[x], keeps[x] - most(p)] for x in evict]


def test_versions_are_those_of_pipedream() -> None:
    for case in all_cases("pipeline/versions"):
        p, m, s = case.args
        schedule = build("pipedream", p, m)
        pairs = zip(schedule.ranks[s], schedule.versions[s], strict=True)
        assert case.wanted == [version for action, version in pairs if action.kind == "F"]


def test_stash_equals_versions_kept() -> None:
    for case in all_cases("pipeline/stash"):
        p, s, weights, scheme = case.args
        schedule = {
            "pipedream": lambda p=p: build("pipedream", p, 4 * p),
            "vertical_sync": lambda p=p: build("pipedream", p, 4 * p, vertical_sync=True),
            "2bw": lambda p=p: build("pipedream_2bw", p, 2 * p, batches=4),
            "flush": lambda p=p: build("1f1b", p, 4 * p),
        }[scheme]()
        assert case.wanted == weights * max(1, simulate(schedule).versions_kept[s]), case


def test_choice_is_the_fastest_that_fits() -> None:
    for case in all_cases("pipeline/choose"):
        p, batch, c, limit = case.args
        found = []
        for m in (m for m in range(1, batch + 1) if batch % m == 0):
            b = batch / m
            tries = [("1f1b", 1, Costs(F=c + b, B=c + 2 * b)),
                     ("zb_h1", 1, Costs(F=c + b, I=c + b, W=c + b))]
            tries += [("interleaved_1f1b", 4, Costs(F=c + b / 4, B=c + b / 2))] * (m % p == 0)
            for name, v, costs in tries:
                run = simulate(build(name, p, m, v) if v > 1 else build(name, p, m), costs)
                if max(run.peak_activations) * b / v <= limit:
                    found.append((run.makespan, name, m))
        first, second = sorted(found)[:2]
        assert case.wanted == first[1:]
        assert first[0] < second[0] * (1 - 1e-9), "no two are equally fast"


def test_bars_lie_between_1f1b_and_zb_h1() -> None:
    costs = Costs(F=1, B=2, I=1, W=1)
    for case in all_cases("pipeline/design"):
        p, m = case.args
        slow, best = (simulate(build(name, p, m), costs) for name in ("1f1b", "zb_h1"))
        assert max(best.peak_activations) == case.wanted["limit"] == p
        first, middle, last = case.wanted["bars"]
        assert slow.makespan > first >= middle >= last == best.makespan
