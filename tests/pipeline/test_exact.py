"""The exact optimum of tiny pipelines, and how far heuristics are from it."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from distlearn.pipeline import Action, Costs, Schedule, ScheduleError, build, simulate, validate
from distlearn.pipeline.exact import optimum

pytest.importorskip("highspy")


def test_it_prints_nothing() -> None:
    """The solver's banner comes with the first model of a process."""
    code = "from distlearn.pipeline.exact import optimum; assert optimum(1, 1).seconds == 3"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_the_best_of_all_orders() -> None:
    """Brute force: every order of F, I, W of two microbatches on two ranks."""
    costs = Costs(F=1, I=2, W=1.5)
    orders = list(dict.fromkeys(itertools.permutations("FFIIWW")))
    rows = []
    for r in range(2):
        rows.append([])
        for order in orders:
            count = {"F": itertools.count(), "I": itertools.count(), "W": itertools.count()}
            rows[r].append(tuple(Action(kind, r, next(count[kind])) for kind in order))
    best = {"makespan": 99.0, "longest_span": 99.0}
    for ranks in itertools.product(*rows):
        schedule = Schedule("any", 2, 2, 1, placement=(0, 1), ranks=ranks)
        try:
            timeline = simulate(schedule, costs)
        except ScheduleError:
            continue
        best = {span: min(best[span], getattr(timeline, span)) for span in best}
    for span, seconds in best.items():
        found = optimum(2, 2, costs, span=span)
        assert found.proved
        assert found.seconds == seconds
        validate(found.schedule)
        assert getattr(simulate(found.schedule, costs), span) == seconds


@pytest.mark.parametrize(("p", "m"), [(2, 3), (3, 3), (3, 2)])
def test_no_order_with_a_whole_backward_beats_1f1b(p: int, m: int) -> None:
    found = optimum(p, m, split=False)
    assert found.proved
    assert found.seconds == simulate(build("1f1b", p, m)).makespan


@pytest.mark.parametrize(("p", "m", "costs"), [
    (2, 3, Costs()), (2, 4, Costs(F=18.5, I=18.1, W=9.3, comm=0.6)), (3, 3, Costs())])
def test_the_search_is_near_the_optimum(p: int, m: int, costs: Costs) -> None:
    """ZB-1p within its memory: the best possible here, or within 3% of it."""
    found = optimum(p, m, costs, mem_limit=p, after_I=0.5, span="longest_span")
    assert found.proved
    heuristic = simulate(build("zb_1p", p, m, costs=costs), costs).longest_span
    assert found.seconds <= heuristic * (1 + 1e-6)
    assert heuristic <= 1.03 * found.seconds


def test_the_unit_of_time_does_not_matter_and_transfers_may_be_long() -> None:
    for unit in (1e-9, 1e9):
        found = optimum(2, 2, Costs(F=unit, I=unit, W=unit))
        assert found.proved and found.seconds == pytest.approx(7 * unit, rel=1e-12)
    assert optimum(2, 1, Costs(comm=100)).seconds == 205  # F, 100, F I, 100, I W
    found = optimum(2, 3, Costs(F=1, I=1e-4, W=0))  # rank 1: F and I three times; I of rank 0
    assert found.seconds == pytest.approx(4 + 4e-4, rel=1e-12)


def test_memory_is_kept_within_the_limit() -> None:
    costs = Costs(activation=1, activation_after_I=0.5)
    for limit in (1, 1.5, 2):
        found = optimum(2, 3, costs, mem_limit=limit, after_I=0.5)
        assert max(simulate(found.schedule, costs).peak_bytes) <= limit
    with pytest.raises(ValueError, match="mem_limit >= 1"):
        optimum(2, 2, mem_limit=0.5)
    with pytest.raises(ValueError, match="span"):
        optimum(2, 2, span="day")
    for options in ({"p": 0}, {"m": 2.5}, {"after_I": 2.0}, {"time_limit": -1.0},
                    {"mem_limit": float("nan")}):
        with pytest.raises(ValueError, match=f"optimum needs .*{next(iter(options))}"):
            optimum(**{"p": 2, "m": 2, **options})  # type: ignore[arg-type]
