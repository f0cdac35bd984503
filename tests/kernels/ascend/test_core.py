"""The machine: capacities, flags, races and deadlocks, each with its name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.kernels.ascend import AscendError, BufferOverflowError, CubeCore

PAIRS = [("MTE2", "MTE1"), ("MTE1", "M"), ("M", "FIXP")]


def program(core, A, B, C, skip=()):
    """One tile, flags by hand; ``skip`` leaves out those of some pairs of pipes."""
    (m, k), n = A.shape, B.shape[1]
    a1, b1 = core.tensor("A1", (m, k), "float16"), core.tensor("B1", (k, n), "float16")
    a2, b2 = core.tensor("A2", (m, k), "float16"), core.tensor("B2", (k, n), "float16")
    c = core.tensor("CO1", (m, n), "float32")

    def flag(pair):
        if pair not in skip:
            core.set_flag(*pair, 0)
            core.wait_flag(*pair, 0)

    core.data_copy(a1, A)
    core.data_copy(b1, B)
    flag(PAIRS[0])
    core.load_data(a2, a1)
    core.load_data(b2, b1)
    flag(PAIRS[1])
    core.mmad(c, a2, b2)
    flag(PAIRS[2])
    core.fixpipe(C, c)


def operands(m, n, k, seed=0):
    random = np.random.default_rng(seed)
    return (random.integers(-8, 9, (m, k)).astype(np.float16),
            random.integers(-8, 9, (k, n)).astype(np.float16), np.full((m, n), 9, np.float32))


def test_hand_check_of_one_step():
    core = CubeCore("Ascend-910B2")
    A, B, C = operands(128, 128, 128)
    program(core, A, B, C)
    line = core.run()
    assert np.array_equal(C, A.astype(np.float32) @ B.astype(np.float32))
    assert line.busy["M"] == 8 * 8 * 8
    assert line.nbytes["MTE1"] == 64 * 1024
    assert line.busy["MTE1"] == 32 * 1024 // 512 + 32 * 1024 // 256 < 512
    assert line.fill["L0C"] == 64 * 1024
    assert line.makespan == sum(line.busy.values())  # one after the other


def test_hand_check_of_the_fills():
    core = CubeCore("Ascend-910B2")
    core.queue("A2", 2, 128 * 128 * 2)
    assert core.run().fill["L0A"] == core.core.buffers["L0A"] == 64 * 1024
    core.tensor("CO1", (128, 256), "float32")
    assert core.run().fill["L0C"] == core.core.buffers["L0C"]
    with pytest.raises(BufferOverflowError) as caught:
        core.tensor("CO1", (16, 16), "float32")
    error = caught.value
    assert (error.kind, error.buffer, error.over) == ("overflow", "L0C", 1024)
    assert "L0C overflows by 1,024 bytes" in str(error)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_missing_flag_is_a_race_between_the_two_pipes(pair):
    core = CubeCore()
    program(core, *operands(32, 32, 32), skip=[pair])
    with pytest.raises(AscendError, match="no flag orders the two") as caught:
        core.run()
    assert caught.value.kind == "race"
    assert all(pipe in str(caught.value) for pipe in pair)


def test_a_buffer_reused_too_early_is_a_race():
    A, B, _ = operands(32, 32, 32)
    core = CubeCore()
    a1, a2 = core.tensor("A1", (32, 32), "float16"), core.tensor("A2", (32, 32), "float16")
    core.data_copy(a1, A)
    core.set_flag("MTE2", "MTE1", 0)
    core.wait_flag("MTE2", "MTE1", 0)
    core.load_data(a2, a1)
    core.data_copy(a1, B)  # MTE1 may still read it
    with pytest.raises(AscendError, match=r"L1 bytes 0 to 2,048: load_data, instr.* reads") as got:
        core.run()
    assert got.value.kind == "race"
    assert "what data_copy, instruction 3 of MTE2, writes" in str(got.value)
    # Ordered through a third pipe it is none.
    core = CubeCore()
    a1, a2 = core.tensor("A1", (32, 32), "float16"), core.tensor("A2", (32, 32), "float16")
    core.data_copy(a1, A)
    for source, target in (("MTE2", "MTE1"), ("MTE1", "M"), ("M", "MTE2")):
        core.set_flag(source, target, 3)
        core.wait_flag(source, target, 3)
        if target == "MTE1":
            core.load_data(a2, a1)
    core.data_copy(a1, B)
    core.run()


def test_reading_a_result_before_it_is_out_is_a_race():
    A, B, _ = operands(32, 32, 32)
    C = np.zeros((32, 32), np.float16)
    core = CubeCore()
    program(core, A, B, C)
    again = core.tensor("A1", (16, 32), "float16")
    core.data_copy(again, C[16:])
    with pytest.raises(AscendError, match="global array") as caught:
        core.run()
    assert caught.value.kind == "race"


def test_a_circle_is_a_deadlock():
    core = CubeCore()
    core.wait_flag("M", "MTE1", 0)
    core.set_flag("MTE1", "M", 1)
    core.wait_flag("MTE1", "M", 1)
    core.set_flag("M", "MTE1", 0)
    with pytest.raises(AscendError) as caught:
        core.run()
    assert caught.value.kind == "deadlock"
    text = str(caught.value)
    assert "MTE1 waits for flag 0 from M" in text and "M waits for flag 1 from MTE1" in text
    assert text.endswith("a circle")


def test_a_flag_that_nobody_sets_is_a_deadlock():
    core = CubeCore()
    core.wait_flag("MTE1", "M", 5)
    with pytest.raises(AscendError, match="M waits for flag 5 from MTE1, which nobody sets") as e:
        core.run()
    assert e.value.kind == "deadlock"


def test_unpaired_flags():
    core = CubeCore()
    core.set_flag("MTE1", "M", 5)
    with pytest.raises(AscendError, match="MTE1 sets flag 5 for M, which never waits") as caught:
        core.run()
    assert caught.value.kind == "unpaired_flag"


def test_a_flag_set_again_before_it_was_waited_for_is_a_race():
    core = CubeCore()
    for _ in range(2):  # M may not have seen the first when the second comes
        core.set_flag("MTE1", "M", 5)
        core.wait_flag("MTE1", "M", 5)
    with pytest.raises(AscendError, match="MTE1 sets flag 5 for M again before") as caught:
        core.run()
    assert caught.value.kind == "race"


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_forgotten_flag_back_is_a_race_on_the_buffer(rounds):
    """One buffer in L1 for all tiles: MTE2 must not fill it before MTE1 has emptied it."""
    core = CubeCore()
    source = np.zeros((16, 16), np.float16)
    a1, a2 = core.tensor("A1", (16, 16), "float16"), core.tensor("A2", (16, 16), "float16")
    for _ in range(rounds):
        core.data_copy(a1, source)
        core.set_flag("MTE2", "MTE1", 0)
        core.wait_flag("MTE2", "MTE1", 0)
        core.load_data(a2, a1)
    with pytest.raises(AscendError, match="L1 bytes 0 to 512") as caught:
        core.run()
    assert caught.value.kind == "race"
    text = str(caught.value)
    assert f"data_copy, instruction {2 * rounds - 1} of MTE2, writes" in text
    assert "load_data, instruction 2 of MTE1" in text
    assert text.endswith("MTE2 must wait for a flag that MTE1 sets after its instruction 2")


def test_uninitialised_reads():
    core = CubeCore()
    a1, a2 = core.tensor("A1", (16, 16), "float16"), core.tensor("A2", (16, 16), "float16")
    core.load_data(a2, a1)
    with pytest.raises(AscendError, match="L1 bytes 0 to 512 are read and were never") as caught:
        core.run()
    assert caught.value.kind == "uninitialised"


def test_queues_say_what_is_wrong():
    core = CubeCore()
    queue = core.queue("A1", 2, 512)
    with pytest.raises(AscendError, match="queue A1 is empty"):
        queue.dequeue()
    one = queue.allocate((16, 16), "float16")
    queue.allocate((16, 16), "float16")
    with pytest.raises(AscendError, match="queue A1 has no free buffer: all of its 2 are in use"):
        queue.allocate((16, 16), "float16")
    queue.free(one)
    with pytest.raises(AscendError, match="buffer 0 is free"):
        queue.free(one)
    with pytest.raises(BufferOverflowError, match=r"a buffer of A1 overflows by 512 bytes: .*17 x"):
        queue.allocate((17, 16), "float16")
    with pytest.raises(AscendError, match="is not of this queue in B1"):
        core.queue("B1", 1, 512).free(one)
    with pytest.raises(ValueError, match="position must be one of A1"):
        core.queue("L1", 1, 512)


def test_event_ids_and_buffers_are_limited():
    core = CubeCore()
    core.queue("A1", 8, 32)
    with pytest.raises(AscendError, match="all 8 event ids from MTE2 to MTE1 are taken") as caught:
        core.queue("B1", 1, 32)
    assert caught.value.kind == "event_ids"
    core = CubeCore()
    for _ in range(64):
        core.allocate("A1", 32)
    with pytest.raises(AscendError, match="at most 64 buffers"):
        core.allocate("A1", 32)


def test_layouts_are_checked():
    core = CubeCore()
    a1 = core.tensor("A1", (32, 32), "float16")
    a2 = core.tensor("A2", (16, 16), "float16")
    b2 = core.tensor("B2", (32, 16), "float16")
    c = core.tensor("CO1", (16, 16), "float32")
    for call, message in (
        (lambda: core.data_copy(a2, np.zeros((16, 16), np.float16)), "needs a tensor in L1; got"),
        (lambda: core.data_copy(a1, np.zeros((16, 32), np.float16)), r"between shapes \(16, 32\)"),
        (lambda: core.data_copy(a1, np.zeros((32, 32))), "does not cast: float64 to float16"),
        (lambda: core.load_data(c, a1), "load_data loads L0A or L0B; got L0C"),
        (lambda: core.load_data(a2, a1, row=8), "a multiple of 16, columns of 16: whole"),
        (lambda: core.load_data(a2, a1, row=32), "reads rows 32 to 48, columns 0 to 16 of"),
        (lambda: core.mmad(c, a2, b2), r"mmad multiplies \(m, k\) by \(k, n\)"),
        (lambda: core.mmad(c, b2, a2), "mmad needs a tensor in L0A; got one in L0B"),
        (lambda: core.fixpipe(np.zeros((16, 16)).T, c), "contiguous rows"),
    ):
        with pytest.raises(AscendError, match=message) as caught:
            call()
        assert caught.value.kind == "layout"
    with pytest.raises(ValueError, match="pipes are MTE2"):
        core.set_flag("MTE4", "M", 0)
    with pytest.raises(ValueError, match="its id 0 to 7; got MTE1, M, 8"):
        core.set_flag("MTE1", "M", 8)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
def test_one_tile_of_any_size(m, n, k, seed):
    A, B, C = operands(m, n, k, seed)
    core = CubeCore("Ascend-910B4")
    program(core, A, B, C)
    line = core.run()
    assert np.array_equal(C, A.astype(np.float32) @ B.astype(np.float32))
    assert line.nbytes["FIXP"] == C.nbytes
    assert line.busy["M"] == -(-m // 16) * -(-n // 16) * -(-k // 16)
    for one, two in zip(line.events, line.events[1:], strict=False):
        assert one.end <= two.start or one.pipe != two.pipe
