"""What searches and greedy orders promise: limits kept, never worse than the orders by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.pipeline import Costs, bubble_time, build, peak_activations, simulate, validate
from distlearn.pipeline.schedules.mario import WHOLE
from tests.pipeline.strategies import TIMES

ANY = st.builds(lambda F, I, W, comm: Costs(F=F, I=I, W=W, comm=comm),
                TIMES, TIMES, TIMES, st.just(0) | TIMES)
NEARLY = 1 + 1e-9


@settings(max_examples=150)
@given(st.sampled_from(("zb_1p", "zb_2p", "zb_auto")), st.integers(1, 12), st.integers(1, 40), ANY,
       st.none() | st.integers(1, 24), st.none() | st.sampled_from((0.0, 0.25, 1.0)))
def test_zero_bubble_searches(name: str, p: int, m: int, costs: Costs, limit: int | None,
                              after_I: float | None) -> None:
    """Within the memory limit; where ZB-H1 fits, no rank's span is longer than its longest."""
    schedule = build(name, p, m, mem_limit=limit, costs=costs, after_I=after_I)
    validate(schedule)
    share = 0.5 if after_I is None else after_I
    costs = replace(costs, activation=1, activation_after_I=share)
    timeline = simulate(schedule, costs)
    allowed = limit if limit is not None else {"zb_1p": p, "zb_2p": 2 * p, "zb_auto": m}[name]
    assert max(timeline.peak_bytes) <= allowed + 1e-6
    by_hand = simulate(build("zb_h1", p, m), costs)
    if max(by_hand.peak_bytes) <= allowed:
        assert timeline.longest_span <= by_hand.longest_span * NEARLY
    # Nobody can be faster: own work; and the first microbatch's way down, its way back, one W.
    there_and_back = p * (costs.F + costs.I) + costs.W  # type: ignore[operator]
    assert timeline.longest_span >= timeline.ideal / NEARLY
    assert timeline.makespan >= there_and_back / NEARLY


@given(st.sampled_from(("zb_1p", "zb_2p", "zb_auto")), st.integers(1, 12), st.integers(1, 40),
       TIMES)
def test_formulas_of_the_searches_hold_for_orders_made_for_the_times(
        name: str, p: int, m: int, seconds: float) -> None:
    costs = Costs(F=seconds, I=seconds, W=seconds)
    timeline = simulate(build(name, p, m, costs=costs), costs)
    assert timeline.longest_span - min(timeline.busy) == bubble_time(name, p, m, costs=costs)
    if name != "zb_2p" or m <= 2 * p or m >= 5 * p:
        assert timeline.peak_activations == tuple(
            peak_activations(name, p, m, r=r, costs=costs) for r in range(p))


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 12), st.none() | st.integers(1, 10), ANY)
def test_v_auto(p: int, m: int, limit: int | None, costs: Costs) -> None:
    """Within the limit, and no longer than ZB-V, V-Half and V-Min where they fit."""
    allowed = 2 * p if limit is None else limit
    rivals = [simulate(build(name, p, m), costs) for name in ("zb_v", "v_half", "v_min")]
    spans = [t.longest_span for t in rivals if max(t.peak_activations) <= allowed]
    try:
        schedule = build("v_auto", p, m, mem_limit=limit, costs=costs)
    except ValueError as error:
        assert "v_auto needs mem_limit >=" in str(error)
        assert not spans
        return
    validate(schedule)
    timeline = simulate(schedule, costs)
    assert max(timeline.peak_activations) <= allowed
    assert timeline.longest_span <= min(spans, default=float("inf")) * NEARLY


@given(st.integers(1, 10), st.integers(1, 24), ANY)
def test_zb_v_heuristic(p: int, m: int, costs: Costs) -> None:
    """p whole microbatches are never exceeded; the span is no less than a rank's work."""
    schedule = build("zb_v", p, m, method="heuristic", costs=costs)
    validate(schedule)
    timeline = simulate(schedule, costs)
    assert max(timeline.peak_activations) <= 2 * p
    assert timeline.longest_span >= timeline.ideal / NEARLY


@given(st.integers(1, 10), st.integers(1, 30), st.integers(1, 4), st.none() | st.integers(1, 30),
       TIMES, TIMES)
def test_hanayo(p: int, m: int, waves: int, window: int | None, F: float, B: float) -> None:
    """At least the way to the last rank and back; at most ``2w min(m, window)`` thin stages."""
    timeline = simulate(build("hanayo", p, m, waves=waves, window=window), Costs(F=F, B=B))
    assert timeline.makespan - min(timeline.busy) >= (p - 1) * (F + B)
    most = 2 * waves * min(m, 2 * p if window is None else window)
    assert max(timeline.peak_activations) <= most


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 3), TIMES, st.booleans())
def test_formulas_of_hanayo(p: int, waves: int, F: float, wide: bool) -> None:
    """One wave: any m up to p, for B >= 2F; and up to three microbatches for any times."""
    for m in range(1, min(p, 3) + 1 if waves > 1 or not wide else p + 1):
        costs = Costs(F=F, B=2.5 * F if wide else 0.5 * F)
        timeline = simulate(build("hanayo", p, m, waves=waves), costs)
        assert timeline.makespan - min(timeline.busy) == bubble_time(
            "hanayo", p, m, costs=costs, waves=waves)


@pytest.mark.parametrize("base", WHOLE)
@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (6, 12)])
def test_mario_keeps_one_whole_activation(base: str, p: int, m: int) -> None:
    for prepose in (False, True):
        timeline = simulate(build("mario", p, m, base=base, prepose=prepose),
                            Costs(F=1.25, B=0.75, R=2))
        assert timeline.peak_activations == (1,) * p == tuple(
            peak_activations("mario", p, m, r=r, base=base, prepose=prepose) for r in range(p))


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 24), st.booleans(), TIMES, TIMES, TIMES)
def test_bubble_of_mario(p: int, m: int, prepose: bool, F: float, B: float, R: float) -> None:
    for base, costs in (("1f1b", Costs(F=F, B=2 * F)), ("gpipe", Costs(F=F, B=B, R=R))):
        timeline = simulate(build("mario", p, m, base=base, prepose=prepose), costs)
        assert timeline.makespan - min(timeline.busy) == bubble_time(
            "mario", p, m, costs=costs, base=base, prepose=prepose)
