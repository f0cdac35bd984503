"""Orders written as short strings come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.pipeline import Action, Schedule, build
from distlearn.widgets.orders import catalogue, decode, encode
from distlearn.widgets.pipeline_explorer import SCHEDULES


def test_every_order_of_the_explorer_round_trips() -> None:
    vs = {name: [1, 2, 3, 4] if name == "interleaved_1f1b" else [1] for name in SCHEDULES}
    found = catalogue(SCHEDULES, range(1, 9), range(1, 33), vs)
    read: dict[tuple[str, ...], list[list[Action]]] = {}
    built = refused = 0
    for name in SCHEDULES:
        for v in vs[name]:
            for p in range(1, 9):
                placement = found["placements"][name][v][p]
                for m in range(1, 33):
                    entry = found["orders"][name][v][p][m]
                    if isinstance(entry, int):
                        refused += 1
                        with pytest.raises(ValueError) as error:
                            build(name, p, m, v)
                        assert found["errors"][entry] == str(error.value)
                        continue
                    built += 1
                    orders = tuple(found["strings"][index] for index in entry)
                    if (*orders, str(placement)) not in read:
                        read[*orders, str(placement)] = decode(orders, placement)
                    schedule = build(name, p, m, v)
                    assert placement == schedule.placement
                    assert read[*orders, str(placement)] == [list(row) for row in schedule.ranks]
    assert built + refused == 8 * 32 * (4 + 4)
    assert refused == 4 * sum(m % p > 0 for p in range(1, 9) for m in range(1, 33))


@st.composite
def odd_schedules(draw: st.DrawFn) -> Schedule:
    """Any placement, any order, any kinds: not runnable, but to be written all the same."""
    p, m, v = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    placement = draw(st.permutations([rank for rank in range(p) for _ in range(v)]))
    ranks = []
    for rank in range(p):
        actions = [Action(kind, stage, i) for kind in draw(st.sampled_from(["FB", "FIW", "FRB"]))
                   for stage, home in enumerate(placement) if home == rank for i in range(m)]
        ranks.append(tuple(draw(st.permutations(actions))))
    return Schedule("odd", p, m, v, tuple(placement), tuple(ranks))


@given(odd_schedules())
def test_any_order_round_trips(schedule: Schedule) -> None:
    assert decode(encode(schedule), schedule.placement) == [list(row) for row in schedule.ranks]


def test_reversed_microbatches_are_written_out() -> None:
    schedule = Schedule("backwards", 1, 3, 1, (0,), ((
        *(Action("F", 0, i) for i in range(3)), *(Action("B", 0, i) for i in (2, 1, 0))),))
    assert encode(schedule) == ["F3B.2B.1B.0"]


def test_strings_are_short() -> None:
    assert encode(build("1f1b", p=4, m=1000)) == [
        "F4(BF)996B4", "F3(BF)997B3", "F2(BF)998B2", "(FB)1000"]


@pytest.mark.parametrize(("order", "message"), [
    ("F2x", "cannot be read at 'x'"), ("(F", "open bracket"), ("F)3", r"cannot be read at '\)3'"),
    ("Fb", "names chunk 2 of 1"), ("F.", r"cannot be read at '.'"),
])
def test_unreadable_orders_are_refused(order: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode([order], [0])
