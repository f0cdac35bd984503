"""What the simulator adds up, against sums done by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.pipeline import Costs, Schedule, build, simulate

TWO = build("gpipe", 2, 2)  # F0.0 F0.1 B0.0 B0.1 / F1.0 F1.1 B1.0 B1.1


def starts(schedule: Schedule, costs: Costs) -> dict[str, float]:
    return {str(event.action): event.start for event in simulate(schedule, costs).events}


def test_a_link_has_latency_and_carries_one_message_at_a_time() -> None:
    """4 bytes at 1 byte/s: the second output waits until the first has left, then both need 0.5."""
    begin = starts(TWO, Costs(F=1, B=1, comm=0.5, message=4, bandwidth=1))
    assert begin["F1.0"] == 1 + 4 + 0.5
    assert begin["F1.1"] == 1 + 4 + 4 + 0.5
    assert begin["B1.0"] == begin["F1.1"] + 1
    assert begin["B0.0"] == begin["B1.0"] + 1 + 4.5  # the other direction is another link


def test_blocking_transfers_keep_the_sender_busy() -> None:
    begin = starts(TWO, Costs(F=1, B=1, comm=2, blocking=True))
    assert (begin["F0.1"], begin["F1.0"]) == (3, 3)
    overlapped = starts(TWO, Costs(F=1, B=1, comm=2))
    assert (overlapped["F0.1"], overlapped["F1.0"]) == (1, 3)


def test_each_link_has_its_own_figures() -> None:
    three = build("gpipe", 3, 1)
    comm = {(0, 1): 1.0, (1, 2): 5.0, (2, 1): 0.0, (1, 0): 2.0}
    begin = starts(three, Costs(F=1, B=1, comm=comm))
    assert (begin["F1.0"], begin["F2.0"], begin["B1.0"], begin["B0.0"]) == (2, 8, 10, 13)
    with pytest.raises(ValueError, match=re.escape("the schedule also uses (1, 2)")):
        simulate(three, Costs(comm={(0, 1): 1.0}))
    with pytest.raises(ValueError, match=re.escape("keys (source, target); got 3")):
        Costs(comm={3: 1.0})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="bandwidth must be > 0"):
        Costs(bandwidth=0)


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 8), st.integers(1, 8))
def test_unlimited_bandwidth_is_latency_alone(p: int, m: int, comm: int, size: int) -> None:
    for name in ("1f1b", "zb_h1", "dualpipe_v" if m >= 2 * p else "gpipe"):
        schedule = build(name, p, m)
        alone = simulate(schedule, Costs(comm=comm))
        every = {(a, b): float(comm) for a in range(p) for b in range(p)}
        linked = simulate(schedule, Costs(comm=every, message=size))
        assert (alone.starts, alone.ends) == (linked.starts, linked.ends)
        slow = simulate(schedule, Costs(comm=comm, message=size, bandwidth=2))
        assert slow.makespan >= alone.makespan
        blocking = simulate(schedule, Costs(comm=comm, message=size, bandwidth=2, blocking=True))
        assert blocking.makespan >= slow.makespan


def test_pairs_take_the_time_given_or_the_sum_of_their_parts() -> None:
    schedule = build("1f1b", 2, 4, overlap=True)
    assert simulate(schedule, Costs(F=1, B=2)).makespan == 15
    assert simulate(schedule, Costs(F=1, B=2, pair=2)).makespan < 15
    per_stage = simulate(schedule, Costs(F=[1, 1], B=[2, 2], pair=[3, 2]))
    durations = {str(e.action): e.end - e.start for e in per_stage.events}
    assert (durations["F0.3&B0.0"], durations["F1.1&B1.0"]) == (3, 2)


def test_memory_is_freed_at_both_halves_of_the_backward() -> None:
    one = Schedule.from_text("schedule mine p=1 m=1 v=1\nplacement 0\nrank 0: F0.0 I0.0 W0.0")
    timeline = simulate(one, Costs(F=1, I=2, W=3, activation=10, activation_after_I=4))
    assert timeline.byte_curve(0) == [(0.0, 10), (3.0, 4), (6.0, 0)]
    assert timeline.memory_curve(0) == [(0.0, 1), (6.0, 0)]


def test_recomputation_keeps_the_input_only() -> None:
    text = ("schedule mine p=1 m=2 v=1\nplacement 0\n"
            "rank 0: F0.0 F0.1 R0.0 B0.0 R0.1 B0.1")
    timeline = simulate(Schedule.from_text(text), Costs(F=1, R=2, B=3, activation=10, checkpoint=1))
    assert timeline.makespan == 2 * (1 + 2 + 3)
    assert timeline.byte_curve(0) == [
        (0.0, 1), (1.0, 2), (2.0, 11), (7.0, 10), (12.0, 0)]
    assert timeline.peak_activations == (1,)
    assert timeline.peak_bytes == (11,)


def test_a_backward_waits_until_its_activation_is_back() -> None:
    text = ("schedule mine p=2 m=1 v=1\nplacement 0 1\npartner 1 0\n"
            "rank 0: F0.0 E0.0 L0.0 B0.0\nrank 1: F1.0 B1.0")
    timeline = simulate(Schedule.from_text(text), Costs(F=1, B=2, swap=5, activation=7))
    begin = {str(event.action): event.start for event in timeline.events}
    assert (begin["E0.0"], begin["L0.0"], begin["B0.0"]) == (1, 6, 11)
    assert timeline.busy == (3, 3)  # the swaps run beside
    assert timeline.memory_curve(0) == [(0.0, 1), (6.0, 1), (13.0, 0)]
    assert timeline.memory_curve(1) == [(0.0, 0), (1.0, 2), (4.0, 1), (11.0, 0)]
    assert timeline.link_bytes == {(0, 1): 7, (1, 0): 7}


def test_host_memory_is_nobodys() -> None:
    text = "schedule mine p=1 m=1 v=1\nplacement 0\nrank 0: F0.0 O0.0 P0.0 B0.0"
    timeline = simulate(Schedule.from_text(text), Costs(swap=1))
    assert timeline.peak_activations == (1,)
    assert timeline.memory_curve(0) == [(0.0, 1), (2.0, 1), (5.0, 0)]
    assert timeline.link_bytes == {}


def test_weights_versions_and_gradients() -> None:
    costs = Costs(weight=[1, 10], gradient=2, activation=100)
    flushed = simulate(build("1f1b", 2, 4), costs)
    assert flushed.state_bytes == (1 + 2, 10 + 2)
    assert flushed.total_bytes == (3 + 200, 12 + 100)
    stashed = simulate(build("pipedream", 2, 4), costs)
    assert stashed.versions_kept == (2, 1)
    assert stashed.state_bytes == (2 * 1 + 2, 10 + 2)
    both = simulate(build("dualpipe", 2, 4), costs)  # both ranks hold both stages
    assert both.state_bytes == (15, 15)


def test_buffers_hold_what_has_arrived_and_is_not_used() -> None:
    """Rank 1 is slow: all three outputs of rank 0 wait there before the second one is read."""
    schedule = build("gpipe", 2, 3)
    timeline = simulate(schedule, Costs(F=[1, 10], B=[1, 1], message=4))
    assert timeline.buffer_bytes == (4, 12)
    assert simulate(schedule, Costs(F=[1, 1], B=[1, 1], message=4)).buffer_bytes == (4, 4)
    assert timeline.link_bytes == {(0, 1): 12, (1, 0): 12}


def test_optimizer_waits_for_all_or_for_its_rank() -> None:
    timeline = simulate(build("zb_h2", 4, 12), Costs(optimizer=2))
    assert timeline.synchronous_step == 39 + 2
    assert timeline.post_validated_step == 36 + 2  # no bubble left: 12 * 3


def test_slices_may_take_unequally_long() -> None:
    schedule = build("seq1f1b", 2, 1, slices=2)
    begin = starts(schedule, Costs(F=2, B=4, slice_scale=[1, 0.5]))
    assert (begin["F0.1"] if "F0.1" in begin else begin["F0.0.1"], begin["F1.0.1"]) == (2, 4)
    with pytest.raises(ValueError, match="slice_size for 3 slices; the schedule has 2"):
        simulate(schedule, Costs(slice_size=[1, 1, 1]))
    with pytest.raises(ValueError, match="slice_scale for 3 slices; the schedule has 2"):
        simulate(schedule, Costs(slice_scale=[1, 1, 1]))
    with pytest.raises(ValueError, match="optimizer must be one number"):
        Costs(optimizer=[1, 2])  # type: ignore[arg-type]
