"""Laws that hold for every schedule and every size."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distlearn.pipeline import (
    NAMES,
    Costs,
    Schedule,
    bubble_span,
    bubble_time,
    build,
    peak_activations,
    simulate,
    validate,
)
from distlearn.pipeline.action import TRANSFERS
from tests.pipeline.strategies import TIMES, Case, cases


def accepted(case: Case) -> Schedule:
    """The schedule, if the sizes are legal; if not, the error names the schedule and a rule."""
    try:
        return case.build()
    except ValueError as error:
        base = case.options.get("base", case.name)
        assert re.match(rf"({case.name}|{base})('s \w+)? (needs|has)", str(error)), error
        assert "got" in str(error) or "does not" in str(error)
        assume(False)
        raise


@settings(max_examples=200)
@given(cases())
def test_every_stage_does_every_microbatch_once_and_nobody_waits_forever(case: Case) -> None:
    schedule = accepted(case)
    validate(schedule)
    done = Counter(part for row in schedule.ranks for action in row for part in action.parts)
    assert set(done.values()) == {1}
    units = schedule.stages * schedule.m * schedule.slices
    kinds = Counter(part.kind for part in done)
    assert kinds["F"] == kinds["B"] + kinds["I"] == units
    assert kinds["W"] == kinds["I"]
    assert schedule.p == case.p
    assert schedule.batches == case.options.get("batches", 3 if case.name in (
        "pipedream_2bw", "xpipe", "amdp") else 1)
    assert schedule.m == case.m * schedule.batches


COSTS = st.builds(
    lambda F, I, W, alike, pair, comm: Costs(
        F=F, **({"I": F, "W": F} if alike == 1 else {"I": F / 2, "W": 1.5 * F} if alike == 2
                else {"I": I, "W": W}),
        pair=None if pair is None or alike != 1 else F * (2 + pair / 4), comm=comm),
    TIMES, TIMES, TIMES, st.integers(0, 2), st.none() | st.integers(0, 4), st.just(0) | TIMES)


@settings(max_examples=250)
@given(cases(), COSTS)
def test_bubble_formula_equals_simulation(case: Case, costs: Costs) -> None:
    name, p, m, v, options = case
    schedule = accepted(case)
    try:
        bubble = bubble_time(name, p, m, v, costs, **options)
    except ValueError as error:
        assert re.search("needs|no closed formula", str(error))
        return
    timeline = simulate(schedule, costs)
    assert getattr(timeline, bubble_span(name)) - min(timeline.busy) == bubble


@settings(max_examples=200)
@given(cases(), COSTS)
def test_peak_formula_equals_simulation_whatever_the_times(case: Case, costs: Costs) -> None:
    name, p, m, v, options = case
    timeline = simulate(accepted(case), costs)
    try:
        peaks = tuple(peak_activations(name, p, m, v, r=r, **options) for r in range(p))
    except ValueError as error:
        assert re.search("needs|no closed formula", str(error))
        return
    if name == "bpipe" and costs.comm:  # who parks how much, when, then depends on the times
        assert max(timeline.peak_activations) <= max(peaks)
    else:
        assert timeline.peak_activations == peaks


WITHOUT_PEAK = ("hanayo", "v_auto")  # bounds only: test_heuristics.py


@pytest.mark.parametrize("name", NAMES)
def test_closed_formulas_are_tried(name: str) -> None:
    """The two laws above do not pass for want of a case: each formula holds at least here."""
    p, m = {"1f1b_v": (7, 28), "hanayo": (8, 3), "v_auto": (2, 8), "zb_2p": (8, 40),
            "mario": (4, 12)}.get(name, (8, 32))
    alike = Costs(F=1, I=1, W=1)
    schedule = build(name, p, m)
    timeline = simulate(schedule, alike)
    bubble = bubble_time(name, p, m, costs=alike)
    assert getattr(timeline, bubble_span(name)) - min(timeline.busy) == bubble
    if name in WITHOUT_PEAK:
        with pytest.raises(ValueError, match=f"{name} has no closed formula for its peak"):
            peak_activations(name, p, m, r=0)
    else:
        peaks = tuple(peak_activations(name, p, m, r=r) for r in range(p))
        assert timeline.peak_activations == peaks


@given(st.integers(1, 8), st.integers(1, 30), st.integers(1, 3), st.integers(1, 32))
def test_interleaved_accepts_the_groups_that_run(p: int, m: int, v: int, group: int) -> None:
    """Accepted orders run (validate says so); Megatron-LM's sufficient rule is never refused."""
    try:
        schedule = build("interleaved_1f1b", p, m, v, group=group)
    except ValueError as error:
        assert "needs p <= group <= m" in str(error)
        assert group < p or 0 < m % group < p
    else:
        validate(schedule)
        timeline = simulate(schedule)
        if group >= p and (m % group == 0 or m % group >= p):
            bubble = bubble_time("interleaved_1f1b", p, m, v, group=group)
            assert timeline.makespan == 3 * m * v + bubble


@settings(max_examples=80)
@given(cases(), st.data())
def test_events_respect_order_and_dependencies(case: Case, data: st.DataObject) -> None:
    schedule = accepted(case)
    S = schedule.stages
    times = {k: data.draw(st.lists(TIMES, min_size=S, max_size=S)) for k in "FIWR"}
    comm, swap = data.draw(TIMES), data.draw(TIMES)
    timeline = simulate(schedule, Costs(**times, comm=comm, swap=swap))
    seconds = {**times, "B": [a + b for a, b in zip(times["I"], times["W"], strict=True)]}
    end = {part: event.end for event in timeline.events for part in event.action.parts}

    def hop(stage: int, other: int, i: int) -> float:
        return comm if schedule.home(stage, i) != schedule.home(other, i) else 0.0

    for event in timeline.events:
        if event.action.kind in TRANSFERS:
            assert event.end == event.start + swap
        else:
            assert event.end == event.start + sum(
                seconds[part.kind][part.stage] for part in event.action.parts)
        for part in event.action.parts:
            kind, stage, i = part[:3]
            rest = part[2:]
            if kind == "F" and stage > 0:
                assert event.start >= end["F", stage - 1, *rest] + hop(stage - 1, stage, i)
            if kind in "BI" and stage < S - 1:
                ended = end.get(("B", stage + 1, *rest), end.get(("I", stage + 1, *rest)))
                assert ended is not None
                assert event.start >= ended + hop(stage + 1, stage, i)
            for before in {"F": "", "W": "I", "L": "E", "P": "O"}.get(kind, "F"):
                assert event.start >= end[before, stage, *rest]
            for before in "RLP" if kind in "BI" else "":
                assert event.start >= end.get((before, stage, *rest), 0.0)
    for r in range(schedule.p):
        row = timeline.rank_events(r)
        assert [event.action for event in row] == list(schedule.ranks[r])
        busy = [event for event in row if event.action.kind not in TRANSFERS]
        assert all(a.end <= b.start for a, b in itertools.pairwise(busy))


@given(cases())
def test_text_round_trip(case: Case) -> None:
    schedule = accepted(case)
    assert Schedule.from_text(schedule.to_text()) == schedule


@given(cases(), st.integers(2, 5))
def test_time_scales(case: Case, factor: int) -> None:
    schedule = accepted(case)
    one, many = (simulate(schedule, Costs(F=1 * k, B=2 * k, comm=k, swap=k)) for k in (1, factor))
    assert many.makespan == factor * one.makespan
    assert many.bubble_fraction == pytest.approx(one.bubble_fraction, rel=1e-12)


@settings(max_examples=80)
@given(cases(), TIMES, TIMES)
def test_memory_curves_and_peaks_agree(case: Case, comm: float, after: float) -> None:
    """The curve over time, sampled event by event, has the peak that the order alone gives."""
    timeline = simulate(accepted(case), Costs(comm=comm, activation=10, activation_after_I=after))
    for r in range(case.p):
        assert max(kept for _, kept in timeline.memory_curve(r)) == timeline.peak_activations[r]
        assert max(size for _, size in timeline.byte_curve(r)) == pytest.approx(
            timeline.peak_bytes[r])
        assert timeline.memory_curve(r)[-1][1] == 0
        assert timeline.byte_curve(r)[-1][1] == pytest.approx(0)


@given(cases(), TIMES)
def test_bytes_sent_are_conserved(case: Case, size: float) -> None:
    """Each hop between ranks carries one message per unit, forward and backward alike."""
    schedule = accepted(case)
    swaps = sum(a.kind in "EL" for row in schedule.ranks for a in row)
    hops = sum(
        schedule.slices for i in range(schedule.m) for stage in range(schedule.stages - 1)
        if schedule.home(stage, i) != schedule.home(stage + 1, i))
    timeline = simulate(schedule, Costs(message=size, activation=100))
    assert sum(timeline.link_bytes.values()) == pytest.approx(2 * hops * size + 100 * swaps)
