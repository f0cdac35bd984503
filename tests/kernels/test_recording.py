"""The step debugger: what it records is what a warp in lockstep does."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from distlearn.kernels import KernelError, cuda, float32, kernel, kernels_from_text, launch
from distlearn.kernels.oracle import record
from tests.kernels.test_cases import ARRAYS, KERNELS, SMALL


@kernel
def lengths(start, count):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    n = start[i]
    steps = 0
    while n != 1:
        steps += 1
        if n % 2 == 0:
            n = n // 2
            continue
        n = 3 * n + 1
    count[i] = steps


@kernel
def totals(x, out, shift):  # type: ignore[no-untyped-def]
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t + shift]
    cuda.syncthreads()
    cuda.atomic.add(s, 0, x[t])
    cuda.syncthreads()
    for k in range(2):
        s[t] += k
    out[t] = s[t]


def test_lanes_part_and_meet() -> None:
    start, count = np.arange(32) % 12 + 1, np.zeros(32, np.int64)
    one = record(lengths, 1, 32, start, count, most=1000)
    assert one.complete and one.error is None and not count.any()  # it ran on copies
    counted = launch(lengths, 1, 32, start, count).counters.by_line
    last = one.steps[-1]
    assert last.registers["steps"] == count.tolist()
    assert last.line == 0 and last.lanes == ()
    tests = {line: row["branches"] for line, row in counted.items() if "branches" in row}
    assert {line: sum(step.line == line for step in one.steps) for line in tests} == tests
    divided = max(tests)
    for before, after in itertools.pairwise(one.steps):
        if before.line == divided:  # the even lanes go first
            even = tuple(lane for lane in before.lanes if before.registers["n"][lane] % 2 == 0)
            assert after.lanes == (even or before.lanes)
    # each lane takes the first line of the loop once an iteration, with those still in it
    again = [step.lanes for step in one.steps if step.line == divided - 1]
    assert [sum(lane in lanes for lanes in again) for lane in range(32)] == count.tolist()
    assert all(set(later) <= set(earlier)
               for earlier, later in itertools.pairwise(again))


ONE_BLOCK = [case for case in SMALL if case["expect"] == "ok" and math.prod(case["grid"]) == 1]


@pytest.mark.parametrize("case", ONE_BLOCK, ids=[case["id"] for case in ONE_BLOCK])
def test_steps_are_what_is_counted(case: dict[str, Any]) -> None:
    """A warp takes each test and each barrier as often as the counters say."""
    function, block = KERNELS[case["kernel"]], tuple(case["block"])
    inputs = [ARRAYS[f"{case['id']}/in{i}"].copy() for i in range(case["arrays"])]
    taken: Counter[int] = Counter()
    for warp in range(-(-math.prod(block) // 32)):
        one = record(function, 1, block, *inputs, *case["scalars"], warp=warp, most=3000)
        assert one.complete and one.error is None
        taken.update(step.line for step in one.steps)
    report = launch(function, 1, block, *inputs, *case["scalars"])
    for line, row in report.counters.by_line.items():
        for name in {"branches", "barrier_warps"} & set(row):
            assert taken[line] == row[name], (line, name)


def test_two_statements_on_a_line_are_two_steps() -> None:
    text = "def f(a):\n    i = cuda.laneid; j = i\n    if i > 30: a[i] = j\n"
    one = record(kernels_from_text(text)["f"], 1, 32, np.zeros(32))
    assert [(step.line, len(step.lanes)) for step in one.steps] == [
        (2, 32), (2, 32), (3, 32), (3, 1), (0, 0)]


def test_shared_memory_after_each_step() -> None:
    x = np.arange(64, dtype=np.float32)
    out = np.zeros(64, np.float32)
    launch(totals, 1, 64, x, out, 0)
    for warp in (0, 1):
        one = record(totals, 1, 64, x, out, 0, warp=warp)
        assert one.error is None
        assert one.steps[-1].shared["s"] == out.tolist()
        first = next(step for step in one.steps if step.shared)
        assert first.shared["s"] == x.tolist()  # both warps have written
        stores = next(step for step in one.steps if step.touches)
        assert [t[1:] for t in stores.touches[:2]] == [("R", "x", 32 * warp), ("W", "s", 32 * warp)]


def test_a_recording_ends_where_the_warp_fails() -> None:
    x = np.zeros(80, np.float32)
    one = record(totals, 1, 64, x, np.zeros(64, np.float32), 40)
    assert one.error is not None and one.error.kind == "out_of_bounds"
    assert one.steps[-2].line == one.error.line
    assert not any(step.shared for step in one.steps[:-1])


def test_a_bounded_recording() -> None:
    start, count = np.full(32, 9), np.zeros(32, np.int64)
    one = record(lengths, 1, 32, start, count, most=10)
    assert not one.complete and one.error is None
    assert len(one.steps) == 11 and one.steps[-1].line == 0
    whole = record(lengths, 1, 32, start, count, most=2000)
    assert [s[:3] for s in whole.steps[:10]] == [s[:3] for s in one.steps[:10]]


@pytest.mark.parametrize(("options", "message"), [
    ({"at": 1}, "at must be from 0 to 0; got at=1"),
    ({"warp": 2}, "warp must be from 0 to 0; got warp=2"),
    ({"most": 0}, "most must be at least 1; got most=0"),
])
def test_what_cannot_be_recorded(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record(lengths, 1, 32, np.ones(32, int), np.ones(32, int), **options)
    with pytest.raises(KernelError, match="takes 2 arguments"):
        record(lengths, 1, 32)


def test_arguments_that_overlap_still_do() -> None:
    text = ("def f(out, a):\n    i = cuda.grid(1)\n    out[i] = a[i] * 2\n    seen = a[i]\n"
            "    out[i] = seen\n")
    whole = np.arange(64, dtype=np.float32)
    for out, a in ((whole, whole), (whole[1::2], whole[1::2])):
        one = record(kernels_from_text(text)["f"], 1, 32, out, a)
        assert one.steps[-1].registers["seen"] == [2 * x for x in a[:32]]
    np.testing.assert_array_equal(whole, np.arange(64))  # it ran on copies
