"""Errors name the place: line, block and thread, whichever executor and part of the launch."""

import re
import textwrap
import tracemalloc
from time import process_time

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch


def kernel(body):
    text = "def f(o, a):\n    i = cuda.grid(1)\n    t = cuda.threadIdx.x\n"
    return kernels_from_text(text + textwrap.indent(body, "    "), f"<{hash(body)}>")["f"]


def arrays():
    return np.zeros(64, np.int32), np.arange(64, dtype=np.float32)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "kind", "line", "thread"), [
    ("if i >= 13:\n    o[i + 99] = 1", "out_of_bounds", 5, 5),
    ("if i >= 13:\n    o[i] = i * 2000000000", "int32_overflow", 5, 5),
    ("if i >= 13:\n    o[i] = int32(a[i] * 1e9)", "int32_overflow", 5, 5),
    ("o[i] = 5 // (i - 13 if a[i] > 12.5 else 1)", "division_by_zero", 4, 5),
    ("o[i] = 7 % ((13 - i) * (i // 13) + (1 - i // 13))", "division_by_zero", 4, 5),
    ("if i < 13:\n    v = 1\no[i] = 1\no[i] = v", "unbound_variable", 7, 5),
    ("if i >= 13:\n    store2(o, 2 * (i % 4) + 1, cuda.int32x2(1, 2))", "misaligned_address", 5, 5),
    ("s = cuda.shared.array(8, int32)\nif i < 13:\n    s[t] = 1\nif i == 13:\n    o[i] = s[t]",
     "uninitialised_shared_read", 8, 5),
    ("if i >= 13:\n    while a[0] == 0.0:\n        pass", "spin_wait", 5, 5),
])
def test_line_block_and_thread(body, kind, line, thread, executor):
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 4, 8, *arrays(), executor=executor)
    error = caught.value
    assert (error.kind, error.line, error.block, error.thread) == (kind, line, 1, thread)


@pytest.mark.parametrize(("body", "kind"), [
    ("if cuda.blockIdx.x == 700:\n    o[10**7] = 1", "out_of_bounds"),
    ("if cuda.blockIdx.x == 700:\n    x = load2(a, 1)", "misaligned_address"),
    ("if cuda.blockIdx.x == 700 and t < 5:\n    cuda.syncthreads()", "barrier_divergence"),
    ("s = cuda.shared.array(4, int32)\nif cuda.blockIdx.x == 700:\n    s[0] = 1", "race"),
    ("if cuda.blockIdx.x == 700:\n    o[t // 2] = 1", "global_race"),
    ("if cuda.blockIdx.x == 700 and t < 9:\n    x = wmma.fill_fragment(0)", "warp_divergence"),
])
def test_blocks_are_those_of_the_grid_when_they_run_in_parts(body, kind):
    """128 threads, 65,536 at a time: block 700 is not in the first part."""
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 800, 128, *arrays())
    assert (caught.value.kind, caught.value.block) == (kind, 700)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "kinds"), [
    ("if i == 500 * 128:\n    o[0] = 1\nif i == 700 * 128:\n    o[0] = 2", "WW"),
    ("if i == 500 * 128:\n    o[0] = 1\nif i == 700 * 128:\n    a[0] = o[0]", "RW"),
    ("if i % 12800 == 0:\n    a[i // 12800] = o[0]\nif i == 700 * 128:\n    o[0] = 2", "RW"),
    ("cuda.atomic.add(o, 0, 1)\nif i == 700 * 128:\n    o[0] = 2", "WW"),
    ("cuda.atomic.add(o, 0, 1)\nif i == 700 * 128:\n    a[0] = o[0]", "RW"),
    ("a[0] = a[0] + 1.0", None),
])
def test_blocks_far_apart_race(body, kinds, executor):
    blocks, threads = 800, 128
    if executor == "oracle":  # the same with fewer
        blocks, threads = 80, 4
        body = body.replace("12800", "40").replace("128", "4").replace("00 *", "0 *")
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), blocks, threads, *arrays(), executor=executor)
    assert caught.value.kind == "global_race"
    assert kinds is None or set(caught.value.race_kinds) == {kinds}


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "says"), [
    ("o[t] = 1", ["o[0]", "line 4", "block 0", "block 1"]),
    ("if i == 3:\n    o[9] = 1\nif i == 13:\n    a[0] = o[9]", [
        "o[9]", "block 0", "block 1", "line 5", "line 7"]),
    ("o[t // 2 * 2] = 1\na[t] = 3.0", ["o[0]", "line 4"]),
    ("s = cuda.shared.array((2, 4), int32)\ns[t % 2, 1] = t", ["s[0, 1]", "threads 0", "line 5"]),
])
def test_races_name_array_word_and_lines(body, says, executor):
    with pytest.raises(KernelError, match="race") as caught:
        launch(kernel(body), 2, 8, *arrays(), executor=executor)
    assert all(word in str(caught.value).replace("blocks 0", "block 0").replace(
        "and 1 (", "and block 1 (") for word in says), caught.value


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "kinds"), [
    ("o[t // 2] = 1", {"WW": "same_warp"}),
    ("o[t] = 1\na[t] = o[t ^ 1]", {"RW": "same_warp"}),
    ("o[t] = 1\na[t] = o[t ^ 32]", {"RW": "cross_warp"}),
    ("o[t // 40] += 1", {"RW": "cross_warp", "WW": "cross_warp"}),
    ("if t < 32:\n    o[t] = 1\n    cuda.syncwarp()\n    a[t] = o[t ^ 1]\nelse:\n    o[t // 2] = 1",
     {"RW": "cross_warp", "WW": "cross_warp"}),
    ("o[t] = 1\nif t < 32:\n    cuda.syncwarp()\na[t] = o[t ^ 1]\nif t % 32 < 2:\n    o[75] = 1",
     {"RW": "same_warp", "WW": "cross_warp"}),
    ("cuda.atomic.add(o, t // 2, 1)\nif t % 2:\n    o[t // 2] = 1", {"WW": "same_warp"}),
    ("o[t] = t\na[t // 2] = 1.0\nif t == 1:\n    o[33] = 2", {"WW": "cross_warp"}),
])
@pytest.mark.parametrize("where", ["global", "shared"])
def test_kinds_of_races_within_a_block(where, body, kinds, executor):
    if where == "shared":
        fill = "p = cuda.shared.array(144, int32)\np[t] = p[t + 72] = 0\ncuda.syncthreads()\n"
        body = fill + body.replace("o[", "p[").replace("(o,", "(p,")
    o, a = np.zeros(4096, np.int32), np.zeros(4096, np.float32)
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 1, 72, o, a, executor=executor)
    assert caught.value.kind == ("race" if where == "shared" else "global_race")
    assert caught.value.race_kinds == kinds


def test_a_word_that_all_threads_touch_costs_no_time_for_each_pair():
    body = "s = cuda.shared.array(1, int32)\nfor k in range(8):\n    s[0] = s[0] + 1"
    start = process_time()
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 1, 1024, *arrays())
    assert process_time() - start < 2
    assert caught.value.race_kinds == {"RW": "cross_warp", "WW": "cross_warp"}


def test_a_race_between_blocks_names_the_threads():
    """Also where the blocks run in different parts of the launch."""
    body = "if i == 500 * 128 + 3:\n    o[7] = 1\nif i == 700 * 128 + 5:\n    a[0] = o[7]"
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 800, 128, *arrays())
    assert "thread 5 of block 700 (R, line 7) and thread 3 of block 500 (W, line 5) touch o[7]" in (
        str(caught.value))


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_threads_that_have_returned_are_missing_at_a_barrier(executor):
    with pytest.raises(KernelError, match=r"7 of 8 threads.*have returned") as caught:
        launch(kernel("if t == 7:\n    return\ncuda.syncthreads()"), 1, 8, *arrays(),
               executor=executor)
    assert caught.value.kind == "barrier_divergence"


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_integers_are_64_bits_wide_until_they_are_stored(executor):
    """As numba types them: int32 + int32 is int64; what is stored or cast must fit."""
    o, a = np.zeros(8, np.int64), np.zeros(8)
    launch(kernel("x = int32(2000000000)\no[i] = x + x\no[i] += (i - 3) * 4611686018427387904\n"
                  "h = i * 6364136223846793005 + 1442695040888963407\nfor k in range(i % 3):\n"
                  "    h = (h ^ (h >> 12)) * 2685821657736338717\n"
                  "if h < 0:\n    h -= 4611686018427387904 * i\no[i] ^= h"), 1, 8, o, a,
           executor=executor)

    def wrapped(x):
        return (x + 2**63) % 2**64 - 2**63

    for i in range(8):
        h = wrapped(i * 6364136223846793005 + 1442695040888963407)
        for _ in range(i % 3):
            h = wrapped((h ^ (h >> 12)) * 2685821657736338717)
        h = wrapped(h - 2**62 * i) if h < 0 else h
        assert o[i] == wrapped(4 * 10**9 + (i - 3) * 2**62) ^ h


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_loop_that_changes_a_local_array_is_no_wait(executor):
    o, a = arrays()
    launch(kernel("n = cuda.local.array(1, int32)\nn[0] = 0\nwhile n[0] < t:\n    n[0] += 1\n"
                  "o[i] = n[0]"), 1, 64, o, a, executor=executor)
    assert o.tolist() == list(range(64))


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_atomics_of_all_threads_happen_in_lockstep(executor):
    """24 threads draw numbers until they get one above 99: each in its turn, 24 a round."""
    o, a = np.zeros(64, np.int32), np.zeros(64, np.float32)
    report = launch(kernel("n = 0\nwhile cuda.atomic.add(o, 63, 1) < 99:\n    n += 1\no[i] = n"),
                    3, 8, o, a, executor=executor)
    assert o[:24].tolist() == [5] * 3 + [4] * 21
    assert report.counters["atomic_requests"] == 3 * 5 + 1
    assert report.counters["atomic_conflicts"] == 3 * 5 * 7 + 2


def test_a_lock_that_lanes_of_one_warp_wait_for_is_refused():
    body = "while cuda.atomic.cas(o, 0, 0, 1) != 0:\n    pass\ncuda.atomic.exch(o, 0, 0)"
    for executor in ("simt", "oracle"):
        with pytest.raises(KernelError) as caught:
            launch(kernel(body), 1, 8, *arrays(), executor=executor)
        assert caught.value.kind == "spin_wait"


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("body", [
    "while a[0] == 0.0:\n    o[i] = 7",
    "n = 0\nwhile a[0] == 0.0:\n    n += 1\n    o[i] = n",
    "n = cuda.local.array(1, int32)\nn[0] = 0\nwhile a[0] == 0.0:\n    n[0] += 1",
    "while True:\n    o[i] = 7\n    flag = a[0]\n    if flag != 0.0:\n        break",
    ("s = cuda.shared.array(1, int32)\nif t == 0:\n    s[0] = 0\ncuda.syncthreads()\n"
    "while s[0] < 1:\n    for k in range(3):\n        o[i] = k"),
])
def test_a_loop_that_works_while_it_waits_is_refused(body, executor):
    with pytest.raises(KernelError) as caught:
        launch(kernel(body), 2, 8, *arrays(), executor=executor)
    assert caught.value.kind == "spin_wait"


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("body", [
    "k = 0\nwhile o[i] < 5:\n    k = k + 1\n    if k > 2:\n        o[i] += 1",
    "while o[i] < 5:\n    cuda.atomic.add(o, i, 1)",
    ("k = 0\nwhile True:\n    o[i] = 5\n    j = k\n    k = j + 1\n    if k < 9:\n        continue\n"
    "    break"),
])
def test_a_loop_that_comes_to_an_end_is_no_wait(body, executor):
    o, a = arrays()
    launch(kernel(body), 2, 8, o, a, executor=executor)
    assert o[:16].tolist() == [5] * 16


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_shuffle_waits_for_lanes_that_are_still_in_a_loop(executor):
    o, a = arrays()
    launch(kernel("v = t\nfor k in range(t % 5):\n    v += cuda.shfl_sync(0xffffffff, 100, 0)\n"
                  "o[i] = cuda.shfl_down_sync(0xffffffff, v, 1)"), 1, 32, o, a, executor=executor)
    v = np.array([t + 100 * (t % 5) for t in range(32)])
    assert o[:32].tolist() == [*v[1:], v[31]]


def test_race_checks_take_twice_the_memory_that_is_written():
    n = 1 << 19
    made = [np.zeros(n, np.float32) for _ in range(2)]
    tracemalloc.start()
    try:
        launch(kernel("o[i] = a[i]"), n // 256, 256, *made)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 4 * n + 6 * 2**20  # and what 65,536 threads compute with


WHOLE = ["A + 1", "2.0 - A", "A * A", "A ** 2", "-A", "+A", "~A", "not A", "A < 1", "1 == A",
         "A != A", "1 if A else 2", "A and 1", "math.sqrt(A)", "float(A)", "int32(A)", "abs(A)",
         "round(A)", "A", "A in (1, 2)", "cuda.selp(A, 1, 2)", "cuda.ballot_sync(-1, A)",
         "cuda.syncthreads_or(A)", "cuda.fma(A, 1.0, 2.0)", "cuda.atomic.add(o, 0, A)"]


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("name", ["a", "s", "q", "r"])
def test_arithmetic_with_a_whole_array_names_it(name, executor):
    """The arrays are an argument, shared, a thread's own, and a row of an argument."""
    before = ("s = cuda.shared.array(4, float32)\nq = cuda.local.array(4, float32)\nr = b[0]\n")
    named = {"q": "array", "r": "b"}.get(name, name)
    bodies = [f"o[i] = {what}" for what in WHOLE] + [
        "A += 1", "while A:\n    o[i] = 1", "if A:\n    o[i] = 1",
        "for n in range(A):\n    o[i] = 1"]
    for body in bodies:
        text = "def f(o, a, b):\n    i = cuda.grid(1)\n" + textwrap.indent(
            before + re.sub(r"\bA\b", name, body), "    ")
        with pytest.raises(KernelError, match=rf"whole array.* {named}\[i\]") as caught:
            launch(kernels_from_text("import math\n" + text)["f"], 1, 8, *arrays(),
                   np.zeros((2, 4)), executor=executor)
        assert (caught.value.kind, caught.value.line) == ("unsupported", 7), body


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "what"), [
    ("o[i] = a.shape + 1", "tuple|numbers alone"), ("o[i] = cuda.float32x2(1, 2) * 2",
                                                   "vector|numbers alone"),
    ("o[i] = nothing(i) + 1", "None"), ("o[i] = a.dtype - 1", "type|numbers alone")])
def test_arithmetic_with_what_is_no_number(body, what, executor):
    text = ("@cuda.jit\ndef nothing(x):\n    pass\n@cuda.jit\ndef f(o, a):\n"
            f"    i = cuda.grid(1)\n    {body}\n")
    with pytest.raises(KernelError, match=what) as caught:
        launch(kernels_from_text(text)["f"], 1, 8, *arrays(), executor=executor)
    assert (caught.value.kind, caught.value.line) == ("unsupported", 7)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("mask", "lane"), [
    ("0x0000ffff", 16), ("-1 - (1 << 5)", 5), ("1 << t % 32", None), ("0xffffffff", None),
    ("-1", None), ("cuda.activemask()", None), ("0x7fffffff if t > 33 else -1", 31)])
def test_masks_hold_the_lanes_that_come(mask, lane, executor):
    """Lanes that have returned may be named: the last warp here has 8."""
    for call in ("cuda.shfl_sync(m, i, 0)", "cuda.ballot_sync(m, 1)", "cuda.match_any_sync(m, 1)",
                 "cuda.syncwarp(m)"):
        text = f"m = {mask}\nif t >= 72:\n    return\n{call}"
        if lane is None:
            launch(kernel(text), 1, 96, *arrays(), executor=executor)
            continue
        with pytest.raises(KernelError, match=f"lane {lane} comes to") as caught:
            launch(kernel(text), 1, 96, *arrays(), executor=executor)
        error = caught.value
        assert (error.kind, error.line, error.block) == ("warp_divergence", 7, 0)
        assert error.thread == (63 if lane == 31 else lane)
