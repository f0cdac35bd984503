"""Sizes, options, costs and schedules of every wrong kind: a clear ValueError, nothing else."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import math
import re
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from distlearn.pipeline import (
    NAMES,
    Action,
    Costs,
    Pair,
    Schedule,
    ScheduleError,
    Slice,
    bubble_time,
    build,
    definition,
    peak_activations,
    simulate,
    validate,
)

ODD: list[Any] = [None, "4", 2.5, True, -1, 0, 10**9, [], math.nan, math.inf, np.int64(2),
                  np.float64(0.5), {}, "x", (1, 2), b"1", {"nope": 3}]


@pytest.mark.parametrize("name", NAMES)
def test_an_option_is_taken_or_refused_in_words(name: str) -> None:
    own = [key for key in inspect.signature(definition(name)).parameters if key not in "pmv"]
    for option in {*own, "costs", "r", "no_such_option"}:
        for value in ODD:
            try:
                build(name, 4, 8, **{option: value})
            except ValueError as error:
                assert name.split("_")[0] in str(error) or option in str(error), error


@pytest.mark.parametrize(("options", "words"), [
    ({"group": "4"}, "interleaved_1f1b needs group to be an integer or None; got '4'"),
    ({"group": 2.5}, "group to be an integer or None; got 2.5"),
    ({"group": True}, "group to be an integer or None; got True"),
    ({"overlap": 1}, "overlap to be True or False; got 1"),
    ({"costs": 3}, "costs to be a Costs, or a mapping of its fields; got 3"),
    ({"costs": {"f": 1}}, "costs to be a Costs, or a mapping of its fields; "),
    ({"r": 0}, "has no option 'r'"),
])
def test_what_is_wrong_with_an_option_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        build("interleaved_1f1b", 4, 8, 2, **options)


@pytest.mark.parametrize("name", [None, 3, [], {}, b"1f1b", ("1f1b",)])
def test_a_name_that_is_no_text_is_no_schedule(name: Any) -> None:
    for function in (lambda: build(name, 2, 2), lambda: bubble_time(name, 2, 2),
                     lambda: definition(name), lambda: peak_activations(name, 2, 2, r=0)):
        with pytest.raises(ValueError, match="no schedule is called"):
            function()


@pytest.mark.parametrize(("name", "sizes", "options"), [
    ("1f1b", (10**6, 10**6), {}), ("gpipe", (1, 10**12), {}), ("hanayo", (4, 8), {"waves": 10**9}),
    ("seq1f1b", (4, 8), {"slices": 10**8}), ("xpipe", (4, 8), {"batches": 10**8}),
])
def test_what_no_memory_could_hold_is_refused(
        name: str, sizes: tuple[int, int], options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{name} with .* too many to list"):
        build(name, *sizes, **options)


@pytest.mark.parametrize("r", [None, "0", 0.0, True, -1, 4, np.int64(4)])
def test_a_rank_that_is_none_is_refused(r: Any) -> None:
    with pytest.raises(ValueError, match=r"1f1b needs r to be|r must be a rank, 0 <= r < p=4"):
        peak_activations("1f1b", 4, 8, r=r)
    assert peak_activations("1f1b", 4, 8, r=np.int64(3)) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_all_functions_of_all_schedules_take_costs(name: str) -> None:
    """As ``build`` promises: most orders and peaks do not depend on them."""
    costs = Costs(F=2, I=2, W=2)
    p, m = (2, 8) if name == "v_auto" else (4, 8)
    assert build(name, p, m, costs=costs) == build(name, p, m, costs={"F": 2, "B": 4})
    for options in ({"costs": costs}, {"costs": None}):
        try:
            assert peak_activations(name, p, m, r=0, **options) >= 1
        except ValueError as error:
            assert "formula" in str(error)


def made(ranks: list[list[Any]], m: int = 1, **fields: Any) -> Schedule:
    return Schedule("mine", len(ranks), m, 1, tuple(range(len(ranks))),
                    tuple(map(tuple, ranks)), **fields)


F, B, E, L = (lambda i, kind=kind: Action(kind, 0, i) for kind in "FBEL")


@pytest.mark.parametrize(("ranks", "words"), [
    ([[Action("F", -1, 0), B(0)]], "F-1.0 names stage -1 of 1"),
    ([[F(-1), B(-1)]], "names stage 0 of 1, microbatch -1 of 1"),
    ([[Action("F", 5, 0)]], "names stage 5 of 1"),
    ([[F(0), Action("F", 1, 0), Action("B", 1, 0), B(0)], []], "stage 1 lives on rank 1"),
    ([[F(0), F(0), B(0)]], "F0.0 is done twice, as actions 0 and 1"),
    ([["F0.0"]], "'F0.0' is not an Action"), ([[("F", 0, 0)]], "is not an Action"),
    ([[None]], "None is not an Action"), ([[Action("X", 0, 0)]], "needs a kind out of F, B"),
    ([[Action("F", 0.0, 0)]], "and integers"), ([[Action("F", 0, "0")]], "and integers"),
    ([[F(0), E(0), L(0), B(0)]], "the schedule names none"),
    ([[Slice("F", 0, 0, 0)]], "names slice 0, but microbatches are cut into 1"),
    ([[F(0), Pair(Action("R", 0, 0), B(0))]], "is no pair that can be run"),
    ([[Pair(Pair(F(0), B(0)), B(0))]], "needs a kind out of"),
])
def test_actions_that_cannot_be_are_named_by_both(ranks: list[list[Any]], words: str) -> None:
    for function in (validate, simulate):
        with pytest.raises(ValueError, match=re.escape(words)):
            function(made(ranks))  # type: ignore[operator]


def test_an_eviction_that_never_comes_back_is_explained() -> None:
    with pytest.raises(ScheduleError, match=r"waits in B0\.0 \(action 2\) for L0\.0"):
        simulate(made([[F(0), E(0), B(0)]], partner=(0,)))


def test_a_slice_below_zero_is_none() -> None:
    row = [Slice(kind, 0, 0, part) for kind, part in (("F", -1), ("F", 1), ("B", 1), ("B", -1))]
    with pytest.raises(ScheduleError, match="names slice -1"):
        simulate(made([row], slices=2))


@pytest.mark.parametrize(("fields", "words"), [
    ({"p": 3}, "3 entries in ranks; got 2"), ({"p": "2"}, "p to be an integer >= 1; got p='2'"),
    ({"m": 0}, "m to be an integer >= 1"), ({"slices": 0}, "slices to be an integer >= 1"),
    ({"v": 2}, "4 entries in placement; got 2"), ({"m": 10**12}, "too many to list"),
    ({"placement": (0, 7)}, "placement[1] = 7 is not a rank of p=2"),
    ({"placement": (0, -1)}, "placement[1] = -1"), ({"placement": "01"}, "in placement; got '01'"),
    ({"copies": ((0, 1), (5, 0)), "direction": (0, 1)}, "copies[1][0] = 5"),
    ({"direction": (0, 0)}, "direction[0] = 0 is not one of the 0 copies"),
    ({"copies": ((0, 1), (1, 0)), "direction": (0,)}, "2 entries in direction"),
    ({"partner": (9, 9)}, "partner[0] = 9"), ({"versions": ((0,), (0,))}, "in versions[0]; got 1"),
    ({"name": "my own"}, "a name without spaces"), ({"name": None}, "a name without spaces"),
    ({"name": "\x1b[31mred"}, "a name without spaces"), ({"name": ""}, "a name without spaces"),
])
def test_parts_that_do_not_fit_are_refused_when_the_schedule_is_made(
        fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        dataclasses.replace(build("1f1b", 2, 2), **fields)


@pytest.mark.parametrize(("text", "words"), [
    ("schedule a p=x m=1 v=1", "line 1: "), ("schedule a p=1 p=1", "once; got 'p=1'"),
    ("schedule a p=1 m=1 v=1 q=1", "got 'q=1'"), ("placement 0\nplacement 0", "a second line"),
    ("schedule a\nschedule b", "a second line"), (3, "must be text"), ("", "needs a 'schedule"),
    ("schedule", "needs a 'schedule"), ("rank 1:", "expected rank 0"),
    ("schedule a p=1 m=99999999999 v=1\nplacement 0\nrank 0: F0.0", "too many to list"),
])
def test_text_that_is_no_schedule_is_refused(text: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Schedule.from_text(text)


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.lists(st.tuples(
    st.integers(0, 2000), st.sampled_from(["", *"0123456789FBWI.&:= \n-é²", "\nrank 0: ", "&"])),
    min_size=1, max_size=3))
def test_damaged_text_is_read_or_refused(name: str, edits: list[tuple[int, str]]) -> None:
    text = build(name, 4, 8).to_text()
    for place, piece in edits:
        at = place % len(text)
        text = text[:at] + piece + text[at + 1 :]
    try:
        schedule = Schedule.from_text(text)
        timeline = simulate(schedule)
    except ValueError:
        return
    assert Schedule.from_text(schedule.to_text()) == schedule
    assert 0 <= timeline.bubble_fraction <= 1
    assert len(timeline.total_bytes) == len(timeline.memory_curve(0)[:1]) * schedule.p


NO_COSTS: list[Any] = [
    -1, math.nan, math.inf, -math.inf, 1e308, 10**400, True, "1", b"12", 1j, {0: 1}, {1.0, 2.0},
    iter([1]), [], [math.nan] * 4, [[1] * 4], [True] * 4, np.array([]), np.array([[1.0]]),
    {(0, 1): {(0, 1): 1}}, {(0, 1): "x"}, {(0, 1): -1}, {"ab": 1}, {(0.5, 1): 1},
]


@pytest.mark.parametrize("field", sorted(
    {field.name for field in dataclasses.fields(Costs)} - {"blocking"}))
def test_costs_that_are_no_numbers_are_refused_by_name(field: str) -> None:
    for value in NO_COSTS:
        if field == "bandwidth" and value is math.inf:
            continue
        with pytest.raises(ValueError, match=rf"\b{field}\b"):
            Costs(**{field: value})
    with pytest.raises(ValueError, match="blocking must be True or False"):
        Costs(blocking=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("three", [3, np.float32(3), np.array(3.0), np.int8(3), Fraction(3)])
def test_any_kind_of_number_will_do_and_gives_a_float(three: Any) -> None:
    assert Costs(F=three) == Costs(F=3.0)
    assert type(Costs(F=three).F) is float
    assert Costs(F=np.array([1, 2])).F == (1.0, 2.0)


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-100, 1e100])
def test_numbers_stay_numbers_at_the_ends_of_what_costs_may_be(scale: float) -> None:
    every = dict.fromkeys(("F", "B", "comm", "activation", "message", "weight", "gradient",
                           "optimizer"), scale)
    timeline = simulate(build("interleaved_1f1b", 4, 8, 2), Costs(**every))
    for number in (timeline.makespan, timeline.bubble_fraction, timeline.bubble_over_ideal,
                   timeline.span_bubble_over_ideal, *timeline.total_bytes):
        assert math.isfinite(number)
        assert number >= 0


@pytest.mark.parametrize("on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(on: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        build("1f1b", 2, 3)
        with pytest.raises(ValueError, match="m % p == 0"):
            build("interleaved_1f1b", 4, 10, 2)
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()
