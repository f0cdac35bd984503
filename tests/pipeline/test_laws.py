"""Laws that hold for every schedule and every size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from distlearn.pipeline import (
    NAMES,
    Costs,
    Schedule,
    bubble_time,
    build,
    peak_activations,
    simulate,
    validate,
)

TIMES = st.integers(1, 40).map(lambda quarter: quarter / 4)  # exact in binary: sums compare equal


@st.composite
def sizes(draw: st.DrawFn) -> tuple[str, int, int, int]:
    """A schedule with sizes that it accepts."""
    name = draw(st.sampled_from(NAMES))
    p, m = draw(st.integers(1, 12)), draw(st.integers(1, 40))
    v = draw(st.integers(1, 4)) if name == "interleaved_1f1b" else 1
    if v > 1 or name == "interleaved_1f1b":
        m = p * max(1, m // p)
    return name, p, m, v


@given(sizes())
def test_every_stage_does_every_microbatch_once_and_nobody_waits_forever(
    size: tuple[str, int, int, int],
) -> None:
    name, p, m, v = size
    schedule = build(name, p, m, v)
    kinds = "FIW" if name == "zb_h1" else "FB"
    done = sorted(itertools.chain.from_iterable(schedule.ranks))
    assert done == sorted(
        (kind, stage, i) for kind in kinds for stage in range(p * v) for i in range(m)
    )
    validate(schedule)


@given(sizes(), TIMES, TIMES, TIMES)
def test_bubble_formula_equals_simulation(
    size: tuple[str, int, int, int], F: float, I: float, W: float
) -> None:
    name, p, m, v = size
    assume(name != "zb_h1" or W <= min(F, I))
    costs = Costs(F=F, I=I, W=W)
    timeline = simulate(build(name, p, m, v), costs)
    ideal = m * v * (F + I + W)
    assert timeline.busy == (ideal,) * p
    assert timeline.makespan - ideal == bubble_time(name, p, m, v, costs)


@given(sizes(), TIMES, TIMES, TIMES, TIMES)
def test_peak_formula_equals_simulation_whatever_the_times(
    size: tuple[str, int, int, int], F: float, I: float, W: float, comm: float
) -> None:
    name, p, m, v = size
    timeline = simulate(build(name, p, m, v), Costs(F=F, I=I, W=W, comm=comm))
    assert timeline.peak_activations == tuple(
        peak_activations(name, p, m, v, r=r) for r in range(p)
    )


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
        assert all(
            peak == peak_activations("interleaved_1f1b", p, m, v, r=r, group=group)
            for r, peak in enumerate(timeline.peak_activations)
        )


@given(sizes(), st.data())
def test_events_respect_order_and_dependencies(
    size: tuple[str, int, int, int], data: st.DataObject
) -> None:
    name, p, m, v = size
    S = p * v
    times = {k: data.draw(st.lists(TIMES, min_size=S, max_size=S)) for k in "FIW"}
    comm = data.draw(TIMES)
    schedule = build(name, p, m, v)
    timeline = simulate(schedule, Costs(**times, comm=comm))
    end = {event.action: event.end for event in timeline.events}
    home = schedule.placement
    for event in timeline.events:
        kind, stage, i = event.action
        seconds = {**times, "B": [a + b for a, b in zip(times["I"], times["W"], strict=True)]}
        assert event.end == event.start + seconds[kind][stage]
        back = "I" if name == "zb_h1" else "B"
        if kind == "F" and stage > 0:
            hop = comm if home[stage - 1] != home[stage] else 0.0
            assert event.start >= end["F", stage - 1, i] + hop
        if kind == back and stage < S - 1:
            hop = comm if home[stage + 1] != home[stage] else 0.0
            assert event.start >= end[back, stage + 1, i] + hop
        if kind == back:
            assert event.start >= end["F", stage, i]
        if kind == "W":
            assert event.start >= end["I", stage, i]
    for r in range(p):
        row = timeline.rank_events(r)
        assert [event.action for event in row] == list(schedule.ranks[r])
        assert all(a.end <= b.start for a, b in itertools.pairwise(row))


@given(sizes())
def test_text_round_trip(size: tuple[str, int, int, int]) -> None:
    schedule = build(*size)
    assert Schedule.from_text(schedule.to_text()) == schedule


@given(sizes(), st.integers(2, 5))
def test_time_scales(size: tuple[str, int, int, int], factor: int) -> None:
    schedule = build(*size)
    one, many = (simulate(schedule, Costs(F=1 * k, B=2 * k, comm=k)) for k in (1, factor))
    assert many.makespan == factor * one.makespan
    assert many.bubble_fraction == pytest.approx(one.bubble_fraction, rel=1e-12)
