"""Races found by vector clocks against the definition: no path of flags between two accesses."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels.ascend import AscendError
from distlearn.kernels.ascend.timeline import Instruction, Region, order

PIPES = ("MTE2", "MTE1", "M")


@st.composite
def programs(draw):
    """Accesses to a few bytes on three pipes, and up to 8 flags, each set before its wait."""
    program = []
    for event in range(draw(st.integers(0, 8))):
        pair = draw(st.permutations(PIPES))[:2]
        flag = (pair[0], pair[1], event)
        at = draw(st.integers(0, len(program)))
        program.insert(at, Instruction(pair[0], "set_flag", flag=flag))
        after = draw(st.integers(at + 1, len(program)))
        program.insert(after, Instruction(pair[1], "wait_flag", flag=flag))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 3))
        region = Region("L1", start, start + draw(st.integers(1, 3)))
        writes = draw(st.booleans())
        program.insert(draw(st.integers(0, len(program))), Instruction(
            draw(st.sampled_from(PIPES)), "work", draw(st.integers(0, 3)),
            () if writes else (region,), (region,) if writes else ()))
    return program


def has_race(program):
    size = len(program)
    before = [[False] * size for _ in range(size)]
    for i, j in itertools.combinations(range(size), 2):
        one, two = program[i], program[j]
        same_flag = one.flag is not None and one.flag == two.flag
        before[i][j] = one.pipe == two.pipe or same_flag
    for k, i, j in itertools.product(range(size), repeat=3):
        before[i][j] = before[i][j] or (before[i][k] and before[k][j])
    for i, j in itertools.combinations(range(size), 2):
        one, two = program[i], program[j]
        if before[i][j] or before[j][i]:
            continue
        touched = itertools.product(one.reads + one.writes, two.reads + two.writes)
        if (one.writes or two.writes) and any(a.overlaps(b) for a, b in touched):
            return True
    return False


@settings(max_examples=200, deadline=None)
@given(programs())
def test_a_race_is_found_exactly_where_no_flags_order_two_accesses(program):
    try:
        played = order(program)
    except AscendError as error:
        assert error.kind == "race"
        assert has_race(program)
        return
    assert not has_race(program)
    # Pipes keep their order, and nobody passes a flag before it is set.
    place = {id(instruction): (start, end) for instruction, start, end in played}
    for i, j in itertools.combinations(program, 2):
        if i.pipe == j.pipe or (i.flag is not None and i.flag == j.flag):
            assert place[id(i)][1] <= place[id(j)][0]
