"""The occupancy rules against the answers of the vendor's calculator, and their laws."""

import csv
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from distlearn.hardware import best_block, dynamic_shared_room, occupancy, sm_limits

DATA = Path(__file__).parents[1] / "data" / "gpu"
CC = ["7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0",
      "12.1"]


def rows(name):
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    return int(text) if text else None


def test_occupancy_equals_the_vendors_calculator():
    for row in rows("occupancy.csv"):
        got = occupancy(
            compute_capability=row["cc"], threads_per_block=int(row["threads_per_block"]),
            registers_per_thread=int(row["regs_per_thread"]),
            shared_bytes_per_block=int(row["shared_bytes_per_block"]))
        assert (got.blocks_per_sm, got.warps_per_sm, got.limiter, got.limits["registers"],
                got.limits["shared"], got.limits["warps"], got.limits["blocks"],
                got.registers_per_block, got.shared_bytes_per_block) == (
            int(row["active_blocks_per_sm"]), int(row["active_warps_per_sm"]), row["limiting"],
            number(row["limit_registers"]), number(row["limit_shared"]),
            int(row["limit_warps"]), int(row["limit_blocks"]),
            int(row["alloc_regs_per_block"]), int(row["alloc_shared_per_block"])), row
        assert got.fraction == pytest.approx(float(row["occupancy"]), abs=1e-6)


def test_best_block_equals_the_vendors_calculator():
    for row in rows("best_block.csv"):
        got = best_block(
            compute_capability=row["cc"], registers_per_thread=int(row["regs_per_thread"]),
            shared_bytes_per_block=int(row["static_shared_bytes"]), sms=int(row["sm_count"]))
        assert got == (int(row["best_threads_per_block"]), int(row["min_grid_blocks"])), row


def test_dynamic_room_equals_the_vendors_calculator():
    for row in rows("dynamic_shared_room.csv"):
        got = dynamic_shared_room(
            compute_capability=row["cc"], blocks_per_sm=int(row["blocks_wanted_per_sm"]),
            threads_per_block=int(row["threads_per_block"]),
            static_shared_bytes=int(row["static_shared_bytes"]))
        text = row["max_dynamic_shared_bytes"]
        assert got == (None if text == "impossible" else int(text)), row


def test_limits_equal_the_published_ones():
    for row in rows("cc_limits.csv"):
        sm = sm_limits(row["cc"])
        assert (sm.threads, sm.warps, sm.blocks, sm.registers, sm.max_registers_per_thread,
                sm.register_unit, sm.subpartitions, sm.shared_bytes, sm.shared_per_block,
                sm.shared_per_block_optin, sm.shared_reserved, sm.shared_unit,
                sm.max_threads_per_block, sm.warp_size) == tuple(int(row[key]) for key in (
            "threads_per_sm", "warps_per_sm", "blocks_per_sm", "regs_per_sm",
            "max_regs_per_thread", "reg_alloc_unit_per_warp", "subpartitions",
            "shared_per_sm_bytes", "shared_per_block_default_bytes",
            "shared_per_block_optin_bytes", "shared_reserved_per_block_bytes",
            "shared_alloc_unit_bytes", "max_threads_per_block", "warp_size"))
        assert list(sm.carveouts) == [1024 * int(k) for k in row["carveouts_kib"].split()]
        assert (sm.barriers is not None) == (row["barrier_limit_counted"] == "yes")


launch = {"compute_capability": st.sampled_from(CC), "threads_per_block": st.integers(1, 1024),
          "registers_per_thread": st.integers(0, 255),
          "shared_bytes_per_block": st.integers(0, 240_000)}


@given(st.fixed_dictionaries(launch))
def test_what_is_held_fits_and_one_more_would_not(asked):
    sm, got = sm_limits(asked["compute_capability"]), occupancy(**asked)
    n = got.blocks_per_sm
    assert got.warps_per_sm <= sm.warps and n <= sm.blocks
    assert n * got.registers_per_block <= sm.registers
    assert n * got.shared_bytes_per_block <= sm.shared_bytes
    assert got.fraction == got.warps_per_sm / sm.warps
    if n and "registers" not in got.limiter:
        warps = got.warps_per_sm // n
        assert (got.warps_per_sm + warps > sm.warps or n + 1 > sm.blocks
                or (n + 1) * got.shared_bytes_per_block > sm.shared_bytes)


@given(st.fixed_dictionaries(launch), st.sampled_from(list(launch)[2:]))
def test_using_less_never_holds_fewer_blocks(asked, what):
    assume(asked[what])
    less = {**asked, what: asked[what] // 2}
    assert occupancy(**less).blocks_per_sm >= occupancy(**asked).blocks_per_sm


@given(st.sampled_from(CC), st.integers(1, 32), st.integers(1, 1024), st.integers(0, 48 * 1024))
def test_blocks_that_use_all_of_the_room_do_fit(cc, blocks, threads, static):
    room = dynamic_shared_room(compute_capability=cc, blocks_per_sm=blocks,
                               threads_per_block=threads, static_shared_bytes=static,
                               reserve=True)
    assume(room is not None)
    assert room >= 0

    def held(shared):
        return occupancy(compute_capability=cc, threads_per_block=threads,
                         registers_per_thread=0, shared_bytes_per_block=shared).blocks_per_sm

    assert held(static + room) >= blocks > held(static + room + 1) - (blocks == 1)


def test_a_tie_names_every_limiter():
    tie = occupancy(compute_capability="12.0", threads_per_block=64, registers_per_thread=32)
    assert tie.limiter == "warps|blocks|barriers"


@pytest.mark.parametrize(("change", "message"), [
    ({"compute_capability": "6.1"}, "compute_capability must be one of 7.0, .* got '6.1'"),
    ({"threads_per_block": 0}, "threads_per_block must be an integer from 1 to 1024; got"),
    ({"threads_per_block": 1025}, "threads_per_block must be an integer from 1 to 1024; got"),
    ({"registers_per_thread": 256}, "registers_per_thread must be an integer from 0 to 255"),
    ({"shared_bytes_per_block": -1}, "shared_bytes_per_block must be an integer >= 0; got"),
    ({"threads_per_block": 32.0}, r"threads_per_block=32\.0"),
])
def test_bad_arguments_are_named(change, message):
    asked = {"compute_capability": "8.0", "threads_per_block": 256, "registers_per_thread": 32}
    with pytest.raises(ValueError, match=message):
        occupancy(**{**asked, **change})


def test_no_block_size_at_all():
    with pytest.raises(ValueError, match="shared_bytes_per_block = 200000 is more than a block"):
        best_block(compute_capability="8.0", registers_per_thread=32,
                   shared_bytes_per_block=200_000)
