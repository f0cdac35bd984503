"""Loops whose end depends on data: what threads have computed when they leave, one after another.

Random ones agree with the oracle; each shape that the fast executor treats apart has a case.
"""

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, kernels_from_text, launch
from distlearn.kernels.simt import compaction

INTS = ["p", "q", "c", "late"]
REALS = ["x", "y", "later"]


def whole(draw, depth=1):
    """An integer expression; small, so that no thread overflows."""
    kind = draw(st.integers(0, 9 if depth else 4))
    if kind < 4:
        return draw(st.sampled_from([*INTS, "i", "tx", "n"]))
    if kind == 4:
        return str(draw(st.integers(0, 9)))
    inner = whole(draw, depth - 1)
    return {5: lambda: f"({inner} % {draw(st.integers(2, 9))})",
            6: lambda: f"({inner} // {draw(st.integers(2, 4))})",
            7: lambda: f"({inner} {draw(st.sampled_from('+-'))} {whole(draw, depth - 1)})",
            8: lambda: f"b[({inner}) % 32]",
            9: lambda: f"({inner} * 3 + 1) % 101"}[kind]()


def real(draw):
    kind = draw(st.integers(0, 9))
    name = draw(st.sampled_from(REALS))
    return {0: lambda: name, 1: lambda: f"a[({whole(draw)}) % 32]",
            2: lambda: f"{name} * float32(0.5)", 3: lambda: f"float32({whole(draw)} % 7)",
            4: lambda: f"({name} + {draw(st.sampled_from(REALS))}) * float32(0.25)",
            5: lambda: f"g({name}, {whole(draw)})",
            6: lambda: f"own[({whole(draw)}) % 3]", 7: lambda: "v.x * v.y",
            8: lambda: f"row[({whole(draw)}) % 3]", 9: lambda: "pair[1]"}[kind]()


def condition(draw):
    kind = draw(st.integers(0, 8))
    if kind == 8:
        return f"(late := c + {draw(st.integers(0, 3))}) < {whole(draw)}"
    if kind == 6:
        return draw(st.sampled_from(["flag", "not flag"]))
    if kind == 7:
        return f"({condition(draw)} {draw(st.sampled_from(['and', 'or']))} {condition(draw)})"
    sign = draw(st.sampled_from(["<", "!=", "==", ">="]))
    return (f"{draw(st.sampled_from(REALS))} < {real(draw)}" if kind == 0 else
            f"{whole(draw)} {sign} {whole(draw)}")


def simple(draw):
    kind = draw(st.integers(0, 17))
    name, number = draw(st.sampled_from(INTS)), draw(st.sampled_from(REALS))
    made = {0: lambda: f"{name} = ({whole(draw)}) % 101", 1: lambda: f"{name} += 1",
            2: lambda: f"{number} = {real(draw)}",
            3: lambda: f"{number} = {number} * float32(0.5) + {real(draw)}",
            4: lambda: f"{name} = {draw(st.sampled_from(['0', '7', 'i', 'tx * 2']))}",
            5: lambda: f"cuda.atomic.add(count, ({whole(draw)}) % 8, {name} % 5)",
            6: lambda: f"out[i] = {number}", 7: lambda: f"out[i] += {real(draw)}",
            8: lambda: f"flag = {condition(draw)}",
            9: lambda: f"own[({whole(draw)}) % 3] = {real(draw)}",
            10: lambda: f"p, q = q, ({whole(draw)}) % 13",
            11: lambda: f"s[t] = {number}", 12: lambda: f"v = load2(a, 2 * (({whole(draw)}) % 9))",
            13: lambda: f"row = m[({whole(draw)}) % 32]",
            14: lambda: f"pair = ({whole(draw)}, {real(draw)})",
            # Loops whose iterations may run at once.
            15: lambda: f"own[e] {draw(st.sampled_from(['+=', '*=', '=']))} {real(draw)}",
            16: lambda: f"{number} += own[e] * {real(draw)}",
            17: lambda: f"out[i] {draw(st.sampled_from(['+=', '=']))} {real(draw)}"}
    if kind >= 15:
        return ["for e in range(3):", "    " + made[kind]()]
    return [made[kind]()]


@st.composite
def statements(draw, depth=2, looped=False):
    """Statements; loops in them end after some turns whatever the data say."""
    kind = draw(st.integers(0, 13 if depth else 4))
    if kind < 5:
        return simple(draw)
    inside = looped or kind >= 8
    body = [line for part in draw(st.lists(
        statements(depth=depth - 1, looped=inside), min_size=1, max_size=3)) for line in part]
    inner = ["    " + line for line in body]
    if kind < 8:
        leave = ["return", *(["break", "continue"] if looped else [])]
        if draw(st.integers(0, 2)) == 0:
            inner.append("    " + draw(st.sampled_from(leave)))
        made = [f"if {condition(draw)}:", *inner]
        if draw(st.booleans()):
            made += ["else:", *("    " + line for line in simple(draw))]
        return made
    turn = f"w{depth}"
    most = draw(st.sampled_from(["4", "i % 5", "9", "p % 6", "b[i % 32] % 7"]))
    if kind < 12:
        test = f"{turn} < {most} and {condition(draw)}" if draw(st.booleans()) else (
            f"{condition(draw)} and {turn} < {most}")
        return [f"{turn} = 0", f"while {test}:", f"    {turn} += 1", *inner]
    bounds = draw(st.sampled_from([most, "i % 3, p % 8", "q % 5, -1, -1", "0, 9, 1 + i % 3"]))
    return [f"for {turn} in range({bounds}):", *inner,
            *([f"if {turn} > 2:", "    q += 1"] if draw(st.integers(0, 5)) == 0 else [])]


HEAD = textwrap.dedent("""\
    def g(v, k):
        z = v
        lane = cuda.laneid
        while k > lane % 3:
            k = k // 2
            if k == 3:
                return z * float32(0.5)
            z = z * float32(0.25) + float32(1.0)
            if z > float32(7.0):
                break
        return z

    def f(out, a, b, m, n, count):
        s = cuda.shared.array(128, float32)
        own = cuda.local.array(3, float32)
        tx = cuda.threadIdx.x
        t = cuda.threadIdx.y * cuda.blockDim.x + tx
        i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y + t
        for e in range(3):
            own[e] = a[(i + e) % 32]
        p = b[i % 32]
        q = i * 5 % 11
        c = 0
        x = a[i % 32]
        y = float32(1.0)
        flag = b[i % 32] % 3 == 0
        v = load2(a, 0)
        row = m[tx % 5]
        pair = (p, x)
    """)


def outcome(text, grid, block, executor):
    threads = grid * block[0] * block[1]
    out, a = np.zeros(threads, np.float32), np.arange(32, dtype=np.float32) * 7 % 11 - 5
    b, count = np.arange(32) * 13 % 29, np.arange(8, dtype=np.int64)
    m = np.arange(96, dtype=np.float32).reshape(32, 3) % 7
    try:
        report = launch(kernels_from_text(text)["f"], grid, block, out, a, b, m, threads, count,
                        executor=executor)
    except KernelError as error:
        return error.kind, error.race_kinds if error.kind == "race" else None
    return out.tolist(), count.tolist(), report.counters.by_line


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(statements(), min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 2),
       st.tuples(st.sampled_from([1, 7, 32, 33]), st.integers(1, 2)),
       st.sampled_from([(2048, 4, 4), (1, 1, 0), (1, 2, 1)]))
def test_executors_agree(parts, unbound, grid, block, gathering):
    lines = [line for part in parts for line in part]
    first = {0: "if p % 4 != 1:", 1: "if i < 20:"}.get(unbound, "if True:")
    text = HEAD + "".join(f"    {line}\n" for line in [
        first, "    late = q", "    later = x", *lines,
        "out[i] += float32(p + 2 * q + 3 * c) + x + y + v.x",
        "out[i] += row[1] * pair[1] + float32(pair[0])", "if flag:", "    out[i] += float32(9.0)",
        "if p % 4 != 1:", "    out[i] += later * float32(late)"])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("LEAST", "SHARE", "TURNS"), gathering, strict=True):
            patch.setattr(compaction, name, value)
        found = outcome(text, grid, block, "simt")
    expected = outcome(text, grid, block, "oracle")
    assert repr(found) == repr(expected), text


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_waiting_is_seen_though_what_others_left_behind_would_go_on(executor):
    """Threads with 2 and 3 square it and leave; squares of 0 and 1 never change."""
    f = kernels_from_text("""\
def f(out, least):
    p = cuda.threadIdx.x % 4 + least
    while p < 3:
        p = p * p
    out[cuda.threadIdx.x] = p
""")["f"]
    out = np.zeros(64, np.int64)
    launch(f, 1, 64, out, 2, executor=executor)
    assert out.tolist() == [4, 3, 4, 5] * 16
    with pytest.raises(KernelError) as caught:
        launch(f, 1, 64, out, 0, executor=executor)
    assert (caught.value.kind, caught.value.line, caught.value.thread) == ("spin_wait", 3, 0)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_loop_may_assign_the_variable_of_the_loop_around_it(executor):
    f = kernels_from_text("""\
def f(out, ends):
    i = cuda.threadIdx.x
    for k in range(3):
        while k < ends[i]:
            k = 2 * k + 1
        out[i] += k
""")["f"]
    out = np.zeros(8, np.int64)
    launch(f, 1, 8, out, np.arange(8), executor=executor)
    assert out.tolist() == [3, 4, 8, 11, 19, 19, 25, 25]


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_each_thread_leaves_with_its_own(executor):
    """By the test, break, continue and return; with numbers of two types, and names of the loop."""
    f = kernels_from_text("""\
def f(out, turns, seen):
    i = cuda.grid(1)
    x = float32(0.5)
    t = 0
    for k in range(i % 7):
        if k == 4:
            break
        last = k
    while True:
        t += 1
        if t == turns[i]:
            break
        if turns[i] == 50 and t == 9:
            out[i] = -1.0
            return
        if t % 3 == 0:
            continue
        x = x + t
        big = t > 5
    out[i] = x
    seen[i] = t
    if t > 5:
        seen[i] += 100 * big
    if i % 7 > 0:
        seen[i] += 1000 * last
""")["f"]
    turns = np.random.default_rng(3).integers(1, 40, 100)
    turns[[7, 60]] = 50
    out, seen = np.zeros(100), np.zeros(100, np.int64)
    launch(f, 2, 50, out, turns, seen, executor=executor)
    for i, n in enumerate(turns.tolist()):
        if n == 50:
            assert (out[i], seen[i]) == (-1, 0)
            continue
        steps = [t for t in range(1, n) if t % 3]
        assert out[i] == 0.5 + sum(steps)
        assert seen[i] == n + (100 * (steps[-1] > 5) if n > 5 else 0) + (
            1000 * min(i % 7 - 1, 3) if i % 7 else 0)


GATHERED = kernels_from_text("""\
def first_of(table, key, most):
    for k in range(most):
        if table[k] == key:
            return k, float32(k)
    return most, float32(-1.0)

def f(out, table, ends, most):
    i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y
    i += cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    row = table[i % 3]
    near = (i, i % 2 == 0)
    total = float32(0.0)
    k = 0
    while k < ends[i]:
        if near[1] and k % 5 == cuda.laneid % 5:
            at, x = first_of(row, k % 90, most)
            total += x * float32(near[0] % 4)
        k += 1 + cuda.threadIdx.y % 2
        last = k
    out[i] = total
    if ends[i] > 0:
        out[i] += float32(last)
""")["f"]


@pytest.mark.parametrize("most", [70, 71])
def test_few_threads_go_on_alone(most, monkeypatch):
    """Their lanes, warps, blocks and sectors are those that they have among all; so is an error."""
    table = np.arange(210).reshape(3, 70) * 37 % 100
    ends = np.where(np.arange(2640) % 41 == 5, np.arange(2640) % 97, 3)
    gathered, found = [], []

    class Gathered(compaction.Gathered):
        def __init__(self, mask):
            gathered.append(mask.count)
            super().__init__(mask)

    monkeypatch.setattr(compaction, "Gathered", Gathered)
    for executor, least in (("simt", 2048), ("simt", 1 << 60), ("oracle", 0)):
        monkeypatch.setattr(compaction, "LEAST", least)
        out = np.zeros(2640, np.float32)
        try:
            report = launch(GATHERED, 20, (33, 4), out, table, ends, most, executor=executor)
            found.append((out.tobytes(), report.counters.by_line))
        except KernelError as error:
            found.append((error.kind, error.line, error.block, error.thread))
    assert gathered and max(gathered) < 2640 // 4
    assert found[0] == found[1]
    if most == 70:
        assert found[0] == found[2]
    else:
        assert found[0][:2] == found[2][:2] == ("out_of_bounds", 3)


WRITING = kernels_from_text("""\
def f(out, ends, heads, table, shift):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    k = 0
    if cuda.blockIdx.x % 2 == 0:
        while k < ends[i]:
            at = (i * 7 + k) % 50
            old = cuda.atomic.exch(heads, at, k)
            cuda.atomic.add(table, at, 1)
            out[20 * i + k % 20 + shift] = old + k
            out[20 * i + k % 20 + shift] += 1
            k += 1
        cuda.syncthreads()
    out[20 * i] += k
""")["f"]


@pytest.mark.parametrize("shift", [0, 600])
def test_few_threads_that_write(shift, monkeypatch):
    """Atomics are in the order of threads, and races of these threads with others are seen."""
    ends = np.where(np.arange(4000) % 41 == 5, np.arange(4000) % 57, np.arange(4000) % 3)
    found = []
    for executor, least in (("simt", 2048), ("simt", 1 << 60), ("oracle", 0)):
        monkeypatch.setattr(compaction, "LEAST", least)
        out = np.zeros(80600, np.int64)
        heads, table = np.zeros(50, np.int64), np.zeros(50, np.int64)
        try:
            report = launch(WRITING, 40, 100, out, ends, heads, table, shift, executor=executor)
            found.append((out.tobytes(), table.tobytes(), report.counters.by_line))
        except KernelError as error:
            found.append((error.kind, error.line, error.race_kinds, str(error)))
    assert found[0] == found[1]
    assert found[0][:-1] == found[2][:-1]
    assert (found[0][0] == "global_race") == (shift == 600)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_threads_that_meet_wait_for_what_others_change(executor):
    """Numbers sorted by neighbours until nobody has exchanged any; then one that never ends."""
    f = kernels_from_text("""\
def f(out, turns, least):
    s = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    s[t] = out[t]
    cuda.syncthreads()
    changed = 1
    turn = 0
    while changed > least:
        mine = 0
        for phase in range(2):
            j = 2 * t + phase
            if j + 1 < 16:
                if s[j] > s[j + 1]:
                    h = s[j]
                    s[j] = s[j + 1]
                    s[j + 1] = h
                    mine = 1
            cuda.syncthreads()
        changed = cuda.syncthreads_or(mine)
        turn += 1
    out[t] = s[t]
    turns[t] = turn
""")["f"]
    mixed = np.array([3, 14, 1, 5, 9, 2, 6, 7, 8, 10, 11, 12, 13, 4, 15, 0], np.int32)
    out, turns = mixed.copy(), np.zeros(16, np.int32)
    launch(f, 1, 16, out, turns, 0, executor=executor)
    assert out.tolist() == sorted(mixed.tolist())
    assert turns.tolist() == [9] * 16  # 16 phases for 15 places, and a turn that sees no change
    with pytest.raises(KernelError) as caught:
        launch(f, 1, 16, out, turns, -1, executor=executor)
    assert (caught.value.kind, caught.value.line, caught.value.thread) == ("spin_wait", 8, 0)
