"""The wanted values of the pipeline exercises agree with distlearn's schedules and simulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from distlearn.grading import Case, find
from distlearn.pipeline import Costs, Schedule, ScheduleError, build, simulate, validate
from tests.exercises.material import hidden


def all_cases(name: str) -> Iterator[Case]:
    yield from find(name).cases
    yield from hidden()[name]


def test_bubble_equals_simulation() -> None:
    for case in all_cases("pipeline/bubble"):
        p, m = case.args
        if p * m > 2000:
            continue
        timeline = simulate(build("1f1b", p, m), Costs(F=1, B=2))
        assert case.wanted == pytest.approx(timeline.bubble_fraction, rel=1e-12, abs=1e-15)


def test_order_equals_the_schedule_that_peers_run() -> None:
    for case in all_cases("pipeline/order"):
        p, m, r = case.args
        assert case.wanted == [str(action) for action in build("1f1b", p, m).ranks[r]]


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1"])
def test_peak_equals_simulation(name: str) -> None:
    from tests.exercises.material import HERE

    definition = _module(HERE / "hidden_pipeline.py").peak
    schedule = build(name, 4, 8, 2 if name == "interleaved_1f1b" else 1)
    peaks = simulate(schedule).peak_activations
    assert [definition([str(a) for a in row]) for row in schedule.ranks] == list(peaks)


def test_peak_equals_a_running_count() -> None:
    for case in all_cases("pipeline/peak"):
        kept = [0]
        for action in case.args[0]:
            kept.append(kept[-1] + {"F": 1, "B": -1, "W": -1, "I": 0}[action[0]])
        assert case.wanted == max(kept)


def test_deadlock_agrees_with_the_validator() -> None:
    runs = hangs = 0
    for case in all_cases("pipeline/deadlock"):
        ranks = case.args[0]
        m = len(ranks[0]) // 2
        lines = [f"schedule x p={len(ranks)} m={m} v=1",
                 "placement " + " ".join(map(str, range(len(ranks))))]
        lines += [f"rank {r}: {' '.join(row)}" for r, row in enumerate(ranks)]
        schedule = Schedule.from_text("\n".join(lines))
        try:
            validate(schedule)
        except ScheduleError as error:
            hangs += 1
            assert error.problem == "deadlock"
            assert len(case.wanted) == len(ranks)
            assert str(error.action) == case.wanted[error.rank]
        else:
            runs += 1
            assert case.wanted == []
    assert runs >= 6
    assert hangs >= 10


def test_interleaving_gain_equals_simulation() -> None:
    for case in all_cases("pipeline/interleaving"):
        p, m, v = case.args
        if m % p or p * m > 2000:
            continue
        before = simulate(build("1f1b", p, m), Costs(F=1, B=2)).makespan
        after = simulate(build("interleaved_1f1b", p, m, v), Costs(F=1 / v, B=2 / v)).makespan
        assert case.wanted == pytest.approx(before / after, rel=1e-12)


def _module(path):  # type: ignore[no-untyped-def]
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
