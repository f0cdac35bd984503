"""Coalescing and bank conflicts against tabulated accesses, and against counting lane by lane."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.hardware import global_access, shared_access

DATA = Path(__file__).parents[1] / "data" / "gpu"


def table(name):
    """The rows by size of element, with their addresses and masks as arrays."""
    groups = {}
    with (DATA / name).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            groups.setdefault(int(row["bytes_per_lane"]), []).append(row)
    for size, rows in groups.items():
        lanes = [row["lane_byte_addresses"].split() for row in rows]
        on = np.array([[lane != "-" for lane in warp] for warp in lanes])
        at = np.array([[0 if lane == "-" else int(lane) for lane in warp] for warp in lanes])
        yield size, rows, at, on


def column(rows, name, kind=int):
    return [kind(row[name]) for row in rows]


def test_coalescing_table():
    seen = 0
    for size, rows, at, on in table("coalescing.csv"):
        got = global_access(at, size, on)
        assert got.sectors.tolist() == column(rows, "sectors_32B")
        assert got.lines.tolist() == column(rows, "lines_128B")
        assert got.requested_bytes.tolist() == column(rows, "requested_bytes")
        assert got.useful_bytes.tolist() == column(rows, "distinct_useful_bytes")
        assert got.moved_bytes.tolist() == column(rows, "moved_bytes")
        assert got.efficiency == pytest.approx(column(rows, "efficiency", float), abs=1e-4)
        assert got.requests.all()
        seen += len(rows)
    assert seen == 253


def test_bank_conflict_table():
    seen = 0
    for size, rows, at, on in table("bank_conflicts.csv"):
        got = shared_access(at, size, on)
        assert got.wavefronts.tolist() == column(rows, "wavefronts")
        assert got.extra_wavefronts.tolist() == column(rows, "extra_wavefronts")
        seen += len(rows)
    assert seen == 255


@st.composite
def warps(draw):
    size = draw(st.sampled_from([1, 2, 4, 8, 16]))
    lanes = draw(st.integers(1, 32))
    count = draw(st.integers(1, 4))
    top = draw(st.sampled_from([8, 64, 1000]))
    seed = draw(st.integers(0, 2**32 - 1))
    aligned = draw(st.booleans())
    random = np.random.default_rng(seed)
    at = random.integers(0, top, (count, lanes)) * (size if aligned else 1)
    return size, at, random.random((count, lanes)) < draw(st.sampled_from([0.1, 0.7, 1.0]))


@given(warps())
def test_equal_to_sets_of_bytes(case):
    size, at, on = case
    got = global_access(at, size, on)
    for i, (warp, mask) in enumerate(zip(at.tolist(), on.tolist(), strict=True)):
        used = {a + k for a, active in zip(warp, mask, strict=True) if active
                for k in range(size)}
        assert got.sectors[i] == len({b // 32 for b in used})
        assert got.lines[i] == len({b // 128 for b in used})
        assert got.useful_bytes[i] == len(used)
        assert got.requested_bytes[i] == size * sum(mask)
        assert got.requests[i] == any(mask)


@given(warps())
def test_equal_to_counting_words_of_each_bank(case):
    size, at, on = case
    got = shared_access(at, size, on).wavefronts
    turns = max(1, size // 4)
    for i, (warp, mask) in enumerate(zip(at.tolist(), on.tolist(), strict=True)):
        total, step = 0, -(-len(warp) // turns)
        for start in range(0, len(warp), step):
            words = {(a + k) // 4 for a, active in list(zip(warp, mask, strict=True))
                     [start:start + step] if active for k in range(size)}
            total += max(sum(word % 32 == bank for word in words) for bank in range(32))
        assert got[i] == total


@given(st.permutations(range(32)), st.integers(0, 7))
def test_order_of_lanes_does_not_matter_for_floats(order, offset):
    at = 4 * (np.array(order) + offset)
    assert global_access(at, 4).sectors == (4 if offset == 0 else 5)
    assert shared_access(at, 4).wavefronts == 1


def test_shapes_and_empty_input():
    at = 4 * np.arange(5 * 7 * 32).reshape(5, 7, 32)
    assert global_access(at, 4).sectors.shape == shared_access(at, 4).wavefronts.shape == (5, 7)
    off = np.zeros((3, 32), dtype=bool)
    none = global_access(np.full((3, 32), -8), 4, off)
    assert none.sectors.tolist() == none.requests.tolist() == [0, 0, 0]
    assert none.efficiency.tolist() == [1, 1, 1]
    assert shared_access(np.zeros((3, 32), int), 16, off).extra_wavefronts.tolist() == [0, 0, 0]
    assert global_access(np.zeros((0, 32), int), 4).sectors.shape == (0,)
    assert shared_access(np.zeros((0, 32), int), 8).wavefronts.shape == (0,)


@pytest.mark.parametrize(("arguments", "message"), [
    (([0.0], 4), r"addresses must be integers .* got float64 of shape \(1,\)"),
    ((np.arange(33), 4), r"1 to 32 lanes; got int64 of shape \(33,\)"),
    ((np.int64(3), 4), r"of shape \(\)"),
    (([0, 4], 3), "itemsize must be 1, 2, 4, 8 or 16 bytes; got itemsize=3"),
    (([0, 4], 4, [True]), r"active has shape \(1,\), addresses have \(2,\)"),
    (([-4, 4], 4), "addresses must not be negative; got -4"),
])
def test_bad_input_is_named(arguments, message):
    for function in (global_access, shared_access):
        with pytest.raises(ValueError, match=message):
            function(*arguments)
