"""Random small kernels and launch shapes: the fast executor and the oracle say the same."""

import textwrap

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, kernels_from_text, launch

LEAVES = ["tx", "ty", "i", "n", "c", "1", "2", "3", "7"]


@st.composite
def numbers(draw, depth=2):
    """An integer expression of the thread's place and of what it has computed."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    op = draw(st.sampled_from(["+", "-", "*", "//", "%", "^", ">>", "min", "if"]))
    left = draw(numbers(depth=depth - 1))
    if op in ("//", "%", ">>"):
        return f"({left} {op} {draw(st.sampled_from(['2', '3', '5', '8']))})"
    right = draw(numbers(depth=depth - 1))
    if op == "min":
        return f"min({left}, {right})"
    if op == "if":
        return f"({left} if {right} % 2 == 0 else {draw(st.sampled_from(LEAVES))})"
    return f"({left} {op} {right})"


@st.composite
def conditions(draw):
    op = draw(st.sampled_from(["<", "<=", "==", "!=", ">"]))
    test = f"{draw(numbers())} {op} {draw(numbers())}"
    kind = draw(st.integers(0, 5))
    if kind == 0:
        test += f" {draw(st.sampled_from(['and', 'or']))} a[{index(draw, 'i')}] > float32(0.0)"
    return f"not ({test})" if kind == 1 else f"{draw(numbers())} < {test}" if kind == 2 else test


def index(draw, usual):
    """Mostly the thread's own element; sometimes another, rarely one outside."""
    kind = draw(st.integers(0, 15))
    return usual if kind < 10 else (f"({draw(numbers())}) % {draw(st.sampled_from([4, 32]))}"
                                    if kind < 15 else draw(numbers()))


def real(draw):
    """A number of type float32 to add."""
    kind = draw(st.integers(0, 8))
    return {0: lambda: f"a[{index(draw, 'i')}]", 1: lambda: f"s[{index(draw, 't')}]",
            2: lambda: f"m[{index(draw, 'ty')}, {draw(numbers())} % 3]",
            3: lambda: f"own[({draw(numbers())}) % 4]", 4: lambda: "float32(c % 5)",
            5: lambda: f"g(acc, {draw(numbers())})",
            6: lambda: "float32(float16(acc) * float16(0.3))",
            7: lambda: f"float32(h[{index(draw, 'i')}] * h[i])",
            8: lambda: f"float32(w[{index(draw, 'i')}] - bfloat16(acc))"}[kind]()


def simple(draw):
    """Statements without others inside."""
    kind = draw(st.integers(0, 19))
    full, way = "0xffffffff", draw(st.sampled_from(["xor", "down", "up"]))
    made = {
        0: lambda: [f"acc = acc + {real(draw)}"],
        1: lambda: [f"acc += {real(draw)}"],
        2: lambda: [f"out[{index(draw, 'i')}] = acc"],
        3: lambda: [f"s[{index(draw, 't')}] = acc"],
        4: lambda: ["cuda.syncthreads()"],
        5: lambda: ["cuda.syncwarp()"],
        6: lambda: [f"c += {draw(numbers())}", "c = c % 1000"],
        7: lambda: [f"own[({draw(numbers())}) % 4] = {real(draw)}"],
        8: lambda: [f"cuda.atomic.add(count, ({draw(numbers())}) % 8, c % 7)"],
        9: lambda: [(f"c += cuda.atomic.{draw(st.sampled_from(['max', 'add', 'exch']))}"
                     f"(count, ({draw(numbers())}) % 8, {draw(numbers())} % 9)")],
        10: lambda: [f"acc = cuda.shfl_{way}_sync({full}, acc, {draw(st.integers(0, 9))})"],
        11: lambda: [f"c += cuda.shfl_sync({full}, c, {draw(numbers())} % 32)"],
        12: lambda: [f"c += cuda.ballot_sync({full}, {draw(conditions())}) % 97"],
        13: lambda: [f"acc = max(acc, {real(draw)})"],
        14: lambda: [f"v = load2(a, 2 * (({draw(numbers())}) % 3))", "acc += v.x * v.y"],
        15: lambda: [f"store2(s, 2 * (t % 64), cuda.float32x2(acc, {real(draw)}))"],
        16: lambda: [f"out[{index(draw, 'i')}] += acc"],
        18: lambda: [f"h[{index(draw, 'i')}] = {real(draw)}"],
        19: lambda: [f"w[{index(draw, 'i')}] += bfloat16({real(draw)})"],
        17: lambda: [f"row = m[{index(draw, 'ty')}]", "acc -= row[1]"],
    }
    return made[kind]()


@st.composite
def statements(draw, depth=2):
    kind = draw(st.integers(0, 11 if depth else 5))
    if kind < 6:
        return simple(draw)
    body = [line for part in draw(st.lists(statements(depth=depth - 1), min_size=1, max_size=3))
            for line in part]
    inner = ["    " + line for line in body]
    if kind in (6, 7):
        made = [f"if {draw(conditions())}:", *inner]
        return [*made, "else:", "    acc = acc * float32(2.0)"] if draw(st.booleans()) else made
    k = f"k{depth}"
    if kind == 8:
        counts = ["3", "tx % 4", "n % 5", "1, 7, 2", "4, ty, -1", "c % 3"]
        return [f"for {k} in range({draw(st.sampled_from(counts))}):", *inner, f"    c += {k}"]
    if kind == 9:
        way = draw(st.sampled_from(["break", "continue"]))
        return [f"for {k} in range(4):", *inner, f"    if {draw(conditions())}:", f"        {way}",
                "    acc = acc + float32(1.0)"]
    if kind == 10:
        return [f"if {draw(conditions())}:", *inner, "    return"]
    # A uniform loop whose iterations are independent: the executor may run them as one.
    target = draw(st.sampled_from([f"own[{k}]", f"out[4 * i + {k}]", f"s[4 * t + {k}]", "acc"]))
    return [f"for {k} in range(4):", f"    x{depth} = {real(draw)}",
            f"    {target} += x{depth} * a[({draw(numbers())} + {k}) % 32]"] if draw(
                st.booleans()) else [
        f"w{depth} = 0", f"while w{depth} < {draw(st.sampled_from(['tx % 5', '3']))}:", *inner,
        f"    w{depth} += 1"]


def outcome(text, grid, block, executor):
    kernel = kernels_from_text(text)["f"]
    threads = grid[0] * grid[1] * block[0] * block[1]
    out, a = np.zeros(threads, np.float32), np.arange(threads, dtype=np.float32) % 11 - 5
    m = np.arange(96, dtype=np.float32).reshape(32, 3) % 7
    count = np.arange(8, dtype=np.int64)
    h, w = (a / 4).astype(np.float16), (a / 8).astype(ml_dtypes.bfloat16)
    arguments = (out, a, threads, m, count, h, w)[:len(kernel.parameters)]
    try:
        report = launch(kernel, grid, block, *arguments, executor=executor)
    except KernelError as error:
        return error.kind, error.race_kinds if error.kind == "race" else None
    return *(x.tolist() for x in (out, count, h, w)), report.counters.by_line


HEAD = textwrap.dedent("""\
    def g(x, k):
        if k % 3 == 0:
            return x * float32(0.5)
        y = float32(1.0)
        for j in range(k % 4):
            y += x
            if y > float32(9.0):
                break
        return y

    def f(out, a, n, m, count, h, w):
        s = cuda.shared.array(128, float32)
        own = cuda.local.array(4, float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        t = ty * cuda.blockDim.x + tx
        i = (cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x) * (
            cuda.blockDim.x * cuda.blockDim.y) + t
        acc = float32(0.0)
        c = 0
        for q in range(4):
            own[q] = float32(q)
        s[t] = float32(tx)
    """)
SHAPES = (st.tuples(st.integers(1, 2), st.integers(1, 2)),
          st.tuples(st.sampled_from([1, 5, 8, 32, 33]), st.integers(1, 3)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(statements(), min_size=1, max_size=6), *SHAPES)
def test_executors_agree(parts, grid, block):
    lines = [line for part in parts for line in part]
    text = HEAD + "".join(f"    {line}\n" for line in [*lines, "out[i] = acc"])
    assert outcome(text, grid, block, "simt") == outcome(text, grid, block, "oracle"), text


@st.composite
def fragments(draw):
    """A program of one or two warps on 16 x 16 tiles, in global and shared memory."""
    corner = f"({draw(st.sampled_from(['0', '16', '16 * x']))}, {draw(st.sampled_from([0, 16]))})"
    load = "load_matrix_sync" + draw(st.sampled_from(["", "_transposed"]))
    return draw(st.sampled_from([
        [f"p = wmma.{load}(a, {corner})"], [f"q = wmma.{load}(a, {corner})"],
        [f"p = wmma.{load}(s, (0, 0))"], ["acc = wmma.mma_sync(p, q, acc)"],
        ["acc = acc + wmma.mma_sync(q, p, wmma.fill_fragment(k))"], ["acc = acc * 0.5"],
        [f"wmma.store_matrix_sync(c, {corner}, acc)"],
        ["if x == 0:", f"    p = wmma.{load}(a, {corner})"],
        [f"if t {draw(st.sampled_from(['<', '!=']))} 32:", "    acc = acc - q * 2.0 + acc"],
        ["cuda.syncthreads()"], [f"acc = wmma.load_matrix_sync(c, {corner})"],
    ]))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(fragments(), min_size=2, max_size=5), st.sampled_from([32, 64, 40]),
       st.sampled_from([np.float16, ml_dtypes.bfloat16]))
def test_fragments_agree(parts, block, dtype):
    name = np.dtype(dtype).name
    text = textwrap.dedent(f"""\
        def f(c, a):
            s = cuda.shared.array((16, 24), {name})
            t = cuda.threadIdx.x
            x = t // 32
            if t < 16:
                for r in range(16):
                    s[t, r] = a[r, t]
            cuda.syncthreads()
            p = wmma.load_matrix_sync(a, (0, 0))
            q = wmma.load_matrix_sync(a, (16, 0))
            acc = wmma.fill_fragment(1)
            for k in range(2):
        """) + "".join(f"        {line}\n" for part in parts for line in part)
    found = []
    for executor in ("simt", "oracle"):
        a = (np.arange(32 * 32) * 7 % 9 - 4).reshape(32, 32).astype(dtype)
        c = np.zeros((32, 32), np.float32)
        try:
            report = launch(kernels_from_text(text)["f"], 1, block, c, a, executor=executor)
        except KernelError as error:
            found.append((error.kind, error.line))
        else:
            found.append((c.tolist(), report.counters.by_line))
    assert found[0] == found[1], text


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "kind"), [
    ("while a[0] == float32(-5.0):\n        pass", "spin_wait"),
    ("s = cuda.shared.array(64, float32)\n    out[i] = s[i]", "uninitialised_shared_read"),
    ("out[i] = float32(n // (i - i))", "division_by_zero"),
    ("out[i] = float32(int32(n * 2000000000))", "int32_overflow"),
    ("if i < 3:\n        v = i\n    out[i] = float32(v)", "unbound_variable"),
    ("print(i)", "unsupported"),
])
def test_named_errors(body, kind, executor):
    text = f"def f(out, a, n):\n    i = cuda.grid(1)\n    {body}\n"
    assert outcome(text, (1, 1), (8, 1), executor)[0] == kind


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "why", "instead"), [
    ("print(i)", "print.* threads would mix", r"in an array, .*WarpStepper\(.*record\("),
    ("print(f'thread {i}', a[i])", "print.* threads would mix", "in an array"),
    ("breakpoint()", "breakpoint.* do not stop alone", "step through a warp"),
    ("assert a[i] > 0, 'no'", "assert.* cannot stop a launch", "failed.* after the launch"),
    ("raise ValueError(i)", "raise.* cannot stop a launch", r"failed\[i\] = 1"),
    ("try:\n        a[i] = 1\n    finally:\n        pass", "try.* nothing raises", "with if"),
    ("del i", "Delete statements", ""),
])
def test_what_cannot_be_says_why_and_what_instead(body, why, instead, executor):
    kernel = kernels_from_text(f"def f(a):\n    i = cuda.grid(1)\n    {body}\n")["f"]
    with pytest.raises(KernelError, match=f"{why}.*{instead}") as caught:
        launch(kernel, 1, 8, np.ones(8), executor=executor)
    assert (caught.value.kind, caught.value.line) == ("unsupported", 3)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_atomics_and_shuffles(executor):
    text = textwrap.dedent("""\
        def half(x):
            return x * float32(0.5)

        def f(out, count, a):
            i = cuda.grid(1)
            cuda.atomic.add(count, i % 4, 1)
            v = a[i]
            d = 16
            while d > 0:
                v += cuda.shfl_down_sync(0xffffffff, v, d)
                d //= 2
            if cuda.laneid == 0:
                out[i // 32] = half(v)
        """)
    out, count = np.zeros(4, np.float32), np.zeros(4, np.int32)
    a = np.arange(128, dtype=np.float32)
    report = launch(kernels_from_text(text)["f"], 2, 64, out, count, a, executor=executor)
    assert out.tolist() == (a.reshape(4, 32).sum(1) / 2).tolist()
    assert count.tolist() == [32] * 4
    assert report.counters["atomic_requests"] == 4
    assert report.counters["atomic_conflicts"] == 4 * 7
