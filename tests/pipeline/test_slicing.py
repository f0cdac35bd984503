"""Unequal slices: against brute force over all ways to cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.pipeline import Costs, build, simulate
from distlearn.pipeline.slicing import balanced_slices, best_slices


def cuts(length: int) -> Iterator[tuple[int, ...]]:
    for bits in itertools.product((False, True), repeat=length - 1):
        edges = [0, *(k + 1 for k, cut in enumerate(bits) if cut), length]
        yield tuple(b - a for a, b in itertools.pairwise(edges))


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.integers(0, 8),
       st.integers(0, 4))
def test_best_of_all_cuts(length: int, p: int, m: int, launch: int, attention: int) -> None:
    def time(n: int, before: int) -> float:
        return launch + n + attention * n * (before + n / 2)

    def total(lengths: tuple[int, ...]) -> float:
        before = itertools.accumulate(lengths, initial=0)
        times = [time(n, b) for n, b in zip(lengths, before, strict=False)]
        return m * sum(times) + (p - 1) * max(times)

    found = best_slices(time, length, p, m=m)
    assert sum(found) == length
    assert total(found) == pytest.approx(min(map(total, cuts(length))))
    for k in range(1, length + 1):
        def longest(lengths: tuple[int, ...]) -> float:
            before = itertools.accumulate(lengths, initial=0)
            return max(time(n, b) for n, b in zip(lengths, before, strict=False))

        even = balanced_slices(time, length, k)
        assert (len(even), sum(even)) == (k, length)
        assert longest(even) == pytest.approx(min(longest(c) for c in cuts(length) if len(c) == k))


def test_balanced_slices_shorten_the_simulated_pipeline() -> None:
    def time(n: int, before: int) -> float:
        return n * (1 + before + n / 2)

    def makespan(lengths: tuple[int, ...]) -> float:
        before = itertools.accumulate(lengths, initial=0)
        times = [time(n, b) for n, b in zip(lengths, before, strict=False)]
        costs = Costs(F=1, B=2, slice_scale=times)
        return simulate(build("terapipe", 4, 1, slices=len(lengths)), costs).makespan

    lengths = best_slices(time, 16, p=4)
    assert len(lengths) > 1
    assert lengths == tuple(sorted(lengths, reverse=True))  # later slices attend to more
    assert makespan(lengths) < min(makespan((16,)), makespan((8, 8)), makespan((4,) * 4))


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="step that divides it"):
        best_slices(lambda n, b: n, 10, 2, step=4)
    with pytest.raises(ValueError, match="1 <= slices <= length / step = 2"):
        balanced_slices(lambda n, b: n, 10, 3, step=5)
    with pytest.raises(ValueError, match="p >= 1"):
        best_slices(lambda n, b: n, 10, 0)
    with pytest.raises(ValueError, match=r"time\(1, 0\) must be a finite number .* got nan"):
        balanced_slices(lambda n, b: float("nan"), 10, 2)
