"""What is wrong is refused, by name."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from distlearn.pipeline import (
    Action,
    Costs,
    Schedule,
    ScheduleError,
    bubble_time,
    build,
    peak_activations,
    simulate,
    validate,
)


def edited(rank: int, index: int, *actions: str) -> Schedule:
    """1F1B for p=3, m=2 with one action replaced by others."""
    schedule = build("1f1b", 3, 2)
    row = list(schedule.ranks[rank])
    row[index : index + 1] = map(Action.parse, actions)
    return replace(
        schedule, ranks=(*schedule.ranks[:rank], tuple(row), *schedule.ranks[rank + 1 :])
    )


@pytest.mark.parametrize(
    ("rank", "index", "actions", "problem", "message"),
    [
        (1, 0, (), "missing", "rank 1: F1.0 is missing"),
        (2, 1, (), "missing", "rank 2: B2.0 is missing"),
        (2, 1, ("I2.0",), "missing", "rank 2: W2.0 is missing"),
        (2, 1, ("B2.0", "W2.0"), "twice", "a full backward B already is I and W"),
        (0, 0, ("F0.0", "F0.0"), "twice", "F0.0 is done twice, as actions 0 and 1"),
        (0, 0, ("F1.0",), "misplaced", "stage 1 lives on rank 1"),
        (0, 0, ("F3.0",), "unknown", "names stage 3 of 3"),
        (0, 0, ("F0.2",), "unknown", "microbatch 2 of 2"),
    ],
)
def test_incomplete(
    rank: int, index: int, actions: tuple[str, ...], problem: str, message: str
) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)) as info:
        validate(edited(rank, index, *actions))
    assert info.value.problem == problem


def test_deadlock_names_the_chain() -> None:
    schedule = Schedule.from_text(
        "schedule mine p=3 m=2 v=1\nplacement 0 1 2\n"
        "rank 0: F0.0 F0.1 B0.0 B0.1\n"
        "rank 1: F1.0 B1.0 F1.1 B1.1\n"
        "rank 2: F2.1 F2.0 B2.0 B2.1\n"
    )
    for check in (validate, simulate):
        with pytest.raises(ScheduleError) as info:
            check(schedule)  # type: ignore[operator]
        assert info.value.problem == "deadlock"
        assert info.value.chain == ((1, Action("B", 1, 0)), (2, Action("F", 2, 1)))
        assert str(info.value) == (
            "deadlock: rank 1 waits in B1.0 (action 1) for B2.0, which rank 2 does later "
            "(action 2); rank 2 waits in F2.1 (action 0) for F1.1, which rank 1 does later "
            "(action 2), and the circle closes"
        )


def test_simulating_an_incomplete_schedule_says_that_nobody_does_it() -> None:
    with pytest.raises(ScheduleError, match=r"rank 1 waits in B1.1 .* for B2.1, which no"):
        simulate(edited(2, 3))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("1f1", 4, 8), {}, "no schedule is called '1f1'; did you mean '1f1b'?"),
        (("1f1b", 0, 8), {}, "1f1b needs p to be an integer >= 1; got p=0"),
        (("1f1b", 4, -1), {}, "got m=-1"),
        (("1f1b", 4, 2.5), {}, "got m=2.5"),
        (("1f1b", True, 2), {}, "got p=True"),
        (("1f1b", 4, "8"), {}, "got m='8'"),
        (("zb_h1", 4, 8, 2), {}, "zb_h1 has one stage per rank, so v must be 1; got v=2"),
        (("gpipe", 4, 8), {"group": 4}, "gpipe has no option 'group'; its options: none"),
        (("interleaved_1f1b", 4, 10, 2), {}, "needs m % p == 0 when no group is given; got 10 % 4"),
        (("interleaved_1f1b", 4, 10, 2), {}, "pass group=5 to run m=10"),
        (("interleaved_1f1b", 4, 3, 2), {}, "got 3 % 4 = 3; choose m >= p"),
        (("interleaved_1f1b", 4, 8, 2), {"group": 0}, "group >= 1; got group=0"),
        (("interleaved_1f1b", 4, 5, 3), {"group": 4}, "deadlock: rank 0 waits in F8.4"),
    ],
)
def test_build_refuses(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(*arguments, **options)


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, "2", True, [1, -1], [], None])
def test_costs_refuse(wrong: Any) -> None:
    with pytest.raises(ValueError, match="F="):
        Costs(F=wrong)


def test_costs_follow_from_each_other() -> None:
    assert (Costs().B, Costs().I, Costs().W) == (2, 1, 1)
    assert (Costs(B=3).I, Costs(B=3, W=1).I, Costs(B=3, I=1).W) == (1.5, 2, 2)
    assert Costs(I=[1, 2], W=1).B == (2, 3)
    with pytest.raises(ValueError, match="I = B - W must be >= 0"):
        Costs(B=1, W=2)
    with pytest.raises(ValueError, match="one length"):
        Costs(F=[1, 2], B=[1, 2, 3])
    with pytest.raises(ValueError, match="F for 3 stages; the schedule has 2"):
        simulate(build("gpipe", 2, 2), Costs(F=[1, 2, 3]))


def test_formulas_refuse_what_they_do_not_cover() -> None:
    with pytest.raises(ValueError, match="needs comm=0"):
        bubble_time("1f1b", 4, 8, costs=Costs(comm=1))
    with pytest.raises(ValueError, match="equal stages"):
        bubble_time("1f1b", 2, 8, costs=Costs(F=[1, 2]))
    with pytest.raises(ValueError, match="W <= F"):
        bubble_time("zb_h1", 2, 8, costs=Costs(F=1, I=2, W=2))
    with pytest.raises(ValueError, match="0 <= r < p=4; got 4"):
        peak_activations("1f1b", 4, 8, r=4)


@pytest.mark.parametrize("text", ["", "F", "X1.2", "F1", "F-1.2", "F1.2.3.4", "f1.2"])
def test_action_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="kind"):
        Action.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a 'schedule"),
        ("schedule x p=1 m=1 v=1\nplacement 0\nrank 1: F0.0", "line 3"),
        ("schedule x p=1 m=1 v=1\nplacement 0\nrank 0: F0.0 Q0.0", "'Q0.0'"),
        ("schedule x p=2 m=1 v=1\nplacement 0 1\nrank 0: F0.0", "has 1 rank lines"),
        ("schedule x p=1 m=one v=1\nplacement 0\nrank 0: F0.0", "one"),
        ("hello\n", "line 1"),
    ],
)
def test_schedule_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Schedule.from_text(text)
