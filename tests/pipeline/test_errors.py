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


@pytest.mark.parametrize(("body", "message"), [
    ("rank 0: F0.0 B0.0\nrank 1: F1.0 B1.0\nrank 2: F2.0 B2.0\nrank 3: B3.0 F3.0",
     ("rank 0 waits in B0.0 (action 1) for B1.0, which rank 1 does later (action 1); "
     "rank 1 waits in B1.0 (action 1) for B2.0, which rank 2 does later (action 1); "
     "rank 2 waits in B2.0 (action 1) for B3.0, which rank 3 does later (action 0); "
     "rank 3 waits in B3.0 (action 0) for F3.0, which is later on rank 3 (action 1)")),
    ("rank 0: F0.0 I0.0 W0.0\nrank 1: F1.0 W1.0 I1.0",
     ("rank 0 waits in I0.0 (action 1) for I1.0, which rank 1 does later (action 2); "
     "rank 1 waits in W1.0 (action 1) for I1.0, which is later on rank 1 (action 2)")),
    ("slices=2\nrank 0: F0.0.0 B0.0.1 F0.0.1 B0.0.0\nrank 1: F1.0.0 F1.0.1 B1.0.1 B1.0.0",
     ("rank 0 waits in B0.0.1 (action 1) for B1.0.1, which rank 1 does later (action 2); "
     "rank 1 waits in F1.0.1 (action 1) for F0.0.1, which rank 0 does later (action 2), and the "
     "circle closes")),
    ("m=2\nrank 0: F0.0 F0.1&B0.1 B0.0\nrank 1: F1.0 F1.1 B1.0 B1.1",
     ("rank 0 waits in F0.1&B0.1 (action 1) for B1.1, which rank 1 does later (action 3); "
     "rank 1 waits in F1.1 (action 1) for F0.1, which rank 0 does later (action 1), and the "
     "circle closes")),
])
def test_chains_of_every_kind(body: str, message: str) -> None:
    """Down a pipeline, over split backwards, slices and pairs."""
    sizes = "" if body.startswith("rank") else body.partition("\n")[0]
    rows = body[len(sizes):].strip()
    p, m = rows.count("rank"), 1
    if sizes.startswith("m="):
        m, sizes = int(sizes[2:]), ""
    schedule = text(rows, p, m, f" {sizes}" if sizes else "")
    for check in (validate, simulate):
        with pytest.raises(ScheduleError) as info:
            check(schedule)  # type: ignore[operator]
        assert str(info.value) == f"deadlock: {message}"
        assert info.value.chain[0][0] == info.value.rank == 0


@pytest.mark.parametrize(("rows", "message"), [
    ("rank 0: F0.0 L0.0 B0.0\nrank 1: F1.0 B1.0\npartner 1 0",
     "rank 0 waits in L0.0 (action 1) for E0.0, which no rank does"),
    ("rank 0: F0.0 P0.0 B0.0\nrank 1: F1.0 B1.0",
     "rank 0 waits in P0.0 (action 1) for O0.0, which no rank does"),
    ("rank 0: E0.0 F0.0 L0.0 B0.0\nrank 1: F1.0 B1.0\npartner 1 0",
     "rank 0 waits in E0.0 (action 0) for F0.0, which is later on rank 0 (action 1)"),
    ("rank 0: F0.0 O0.0 B0.0 P0.0\nrank 1: F1.0 B1.0",
     "rank 0 waits in B0.0 (action 2) for P0.0, which is later on rank 0 (action 3)"),
])
def test_chains_over_transfers(rows: str, message: str) -> None:
    """`simulate` has no look at completeness before: the chain itself has to say it."""
    with pytest.raises(ScheduleError) as info:
        simulate(text(rows))
    assert str(info.value) == f"deadlock: {message}"
    assert info.value.problem == "deadlock"


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


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("zb_v", 4, 8, 1), {}, "zb_v has two stages per rank, so v must be 2; got v=1"),
        (("v_min", 4, 8, 4), {}, "v_min has two stages per rank, so v must be 2; got v=4"),
        (("zb_v", 4, 8), {"method": "luck"}, "method 'handcrafted' or 'heuristic'; got"),
        (("dapple", 4, 8), {"policy": "C"}, "policy 'A' or 'B'; got policy='C'"),
        (("dapple", 4, 8), {"mem_limit": 0}, "mem_limit >= 1; got mem_limit=0"),
        (("chimera", 3, 8), {}, "chimera needs p and m even; got p=3 m=8"),
        (("chimera", 4, 7), {}, "chimera needs p and m even; got p=4 m=7"),
        (("chimera", 4, 8), {"directions": 3}, "even number of directions"),
        (("chimera", 6, 12), {"directions": 4}, "p divisible by the number of directions, or"),
        (("chimera", 4, 8), {"method": "luck"}, "method 'direct', 'forward_doubling' or"),
        (("chimera", 8, 16), {"method": "forward_doubling", "directions": 4},
         "forward_doubling needs two directions"),
        (("dualpipe", 4, 5), {}, "p and m even and m >= 2p - 2; got p=4 m=5"),
        (("dualpipe", 4, 4), {}, "p and m even and m >= 2p - 2; got p=4 m=4"),
        (("dualpipe_v", 4, 6), {}, "m >= 2p - 1 = 7; got m=6"),
        (("gis", 4, 8, 3), {"group": 1}, "p=4 m=8 v=3 group=1, which does not: deadlock"),
        (("gis", 4, 8, 2), {"group": 0}, "gis needs group >= 1; got group=0"),
        (("gis", 4, 8, 2), {"offload": 3}, "0 <= offload <= v=2 chunks; got offload=3"),
        (("seq1f1b", 4, 8), {"slices": 0}, "slices >= 1; got slices=0"),
        (("terapipe", 4, 8), {"slices": 0}, "slices >= 1; got slices=0"),
        (("zb_auto", 4, 8), {"mem_limit": 0.5}, "mem_limit >= 1 activation; got mem_limit=0.5"),
        (("zb_2p", 4, 8), {"after_I": 2}, "0 <= after_I <= 1; got after_I=2"),
        (("v_auto", 4, 8), {"mem_limit": 1}, "v_auto needs mem_limit >= 4 half-stage"),
        (("pipedream_2bw", 8, 6), {}, "m >= p - 1 microbatches per batch"),
        (("pipedream_2bw", 2, 6), {"batches": 0}, "batches >= 1; got p=2 m=6 batches=0"),
        (("xpipe", 2, 6), {"batches": 0}, "batches >= 1; got batches=0"),
        (("amdp", 6, 6), {}, "p divisible by 4, m divisible by p"),
        (("hanayo", 4, 8), {"waves": 0}, "waves >= 1; got waves=0"),
        (("hanayo", 4, 8, 3), {}, "2 * waves stages per rank; got v=3"),
        (("hanayo", 4, 8), {"window": 0}, "window >= 1; got window=0"),
        (("interleaved_zero_bubble", 4, 9, 2), {}, "m % max(1, m // p) == 0"),
        (("interleaved_zero_bubble", 4, 8, 2), {"group": 0}, "group >= 1; got group=0"),
        (("mario", 4, 8), {"base": "pipedream"}, "synchronous base without swaps"),
        (("mario", 4, 8), {"base": "mario"}, "another schedule as base"),
        (("mario", 4, 8), {"base": "zb_h3"}, "no schedule is called 'zb_h3'"),
    ],
)
def test_rules_are_named(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(*arguments, **options)


def text(body: str, p: int = 2, m: int = 1, extra: str = "") -> Schedule:
    return Schedule.from_text(
        f"schedule mine p={p} m={m} v=1{extra}\nplacement {' '.join(map(str, range(p)))}\n{body}")


@pytest.mark.parametrize(
    ("schedule", "problem", "message"),
    [
        (text("rank 0: F0.0 E0.0 B0.0\nrank 1: F1.0 B1.0\npartner 1 0"), "missing",
         "rank 0: L0.0 is missing"),
        (text("rank 0: F0.0 O0.0 P0.0 P0.0 B0.0\nrank 1: F1.0 B1.0"), "twice",
         "P0.0 is done twice, as actions 2 and 3"),
        (text("rank 0: R0.0 F0.0 B0.0\nrank 1: F1.0 B1.0"), "disorder",
         "R0.0 (action 0) comes before F0.0 (action 1), which it needs"),
        (text("rank 0: F0.0 B0.0 R0.0\nrank 1: F1.0 B1.0"), "disorder",
         "B0.0 (action 1) comes before R0.0 (action 2)"),
        (text("rank 0: F0.0 L0.0 E0.0 B0.0\nrank 1: F1.0 B1.0\npartner 1 0"), "disorder",
         "L0.0 (action 1) comes before E0.0 (action 2)"),
        (text("rank 0: F0.0 E0.0 B0.0 L0.0\nrank 1: F1.0 B1.0\npartner 1 0"), "disorder",
         "B0.0 (action 2) comes before L0.0 (action 3)"),
        (text("rank 0: F0.0.1 F0.0.0 B0.0.1 B0.0.0", 1, 1, " slices=2"), "disorder",
         "F0.0.1 (action 0) comes before F0.0.0 (action 1)"),
        (text("rank 0: F0.0.0 F0.0.1 B0.0.0 B0.0.1", 1, 1, " slices=2"), "disorder",
         "B0.0.0 (action 2) comes before B0.0.1 (action 3)"),
        (text("rank 0: F0.0.0 B0.0.0", 1, 1, " slices=2"), "missing", "F0.0.1 is missing"),
        (text("rank 0: F0.0.2 B0.0.0", 1, 1, " slices=2"), "unknown",
         "F0.0.2 names slice 2, but microbatches are cut into 2 slices"),
        (text("rank 0: F0.0 B0.0", 1, 1, " slices=2"), "unknown", "names slice None"),
        (text("rank 0: F0.0.0 B0.0.0", 1, 1), "unknown", "names slice 0, but"),
        (text("rank 0: F0.0 F0.1&B0.0 B0.1\nrank 1: F1.0 B1.0 F1.1 B1.0", 2, 2), "twice",
         "B1.0 is done twice, as actions 1 and 3"),
        (text("rank 0: F0.0 F0.1&B0.1 B0.0", 1, 2), "deadlock",
         "rank 0 waits in F0.1&B0.1 (action 1) for F0.1, which is part of it"),
        (text("rank 0: F0.0&B0.0 F0.1 B0.1\nrank 1: F1.0 B1.0 F1.1 B1.1", 2, 2), "deadlock",
         ("rank 0 waits in F0.0&B0.0 (action 0) for B1.0, which rank 1 does later (action 1); "
          "rank 1 waits in F1.0 (action 0) for F0.0, which rank 0 does later (action 0), and the "
          "circle closes")),
    ],
)
def test_every_kind_of_action_is_checked(schedule: Schedule, problem: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)) as info:
        validate(schedule)
    assert info.value.problem == problem


def test_copies_are_checked() -> None:
    """The second half of the microbatches runs the other way."""
    schedule = build("chimera", 2, 2)
    assert schedule.ranks[0][0] == ("F", 0, 0)
    swapped = replace(schedule, direction=(1, 0))
    with pytest.raises(ScheduleError, match=r"F0\.0 is done on rank 0, but stage 0 lives on"):
        validate(swapped)


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
