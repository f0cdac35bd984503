"""Random small kernels and launch shapes: the fast executor and the oracle say the same."""

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, kernels_from_text, launch

LEAVES = ["tx", "ty", "i", "n", "1", "2", "3", "7"]


@st.composite
def numbers(draw, depth=2):
    """An integer expression of the thread's place."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    op = draw(st.sampled_from(["+", "-", "*", "//", "%"]))
    left = draw(numbers(depth=depth - 1))
    right = draw(st.sampled_from(["2", "3", "5"])) if op in ("//", "%") else draw(
        numbers(depth=depth - 1))
    return f"({left} {op} {right})"


@st.composite
def conditions(draw):
    op = draw(st.sampled_from(["<", "<=", "==", "!=", ">"]))
    test = f"{draw(numbers())} {op} {draw(numbers())}"
    if draw(st.integers(0, 3)) == 0:
        test += f" {draw(st.sampled_from(['and', 'or']))} a[{index(draw, 'i')}] > float32(0.0)"
    return test


def index(draw, usual):
    """Mostly the thread's own element; sometimes another, sometimes one outside."""
    kind = draw(st.integers(0, 9))
    return usual if kind < 6 else (f"{draw(numbers())} % {draw(st.sampled_from([4, 32]))}"
                                   if kind < 9 else draw(numbers()))


@st.composite
def statements(draw, depth=2):
    kind = draw(st.integers(0, 10 if depth else 5))
    if kind == 0:
        return [f"acc = acc + a[{index(draw, 'i')}]"]
    if kind == 1:
        return [f"out[{index(draw, 'i')}] = acc"]
    if kind == 2:
        return [f"s[{index(draw, 't')}] = acc"]
    if kind == 3:
        return [f"acc += s[{index(draw, 't')}]"]
    if kind == 4:
        return ["cuda.syncthreads()"]
    if kind == 5:
        return [f"c += {draw(numbers())}", "acc = acc + float32(c % 3)"]
    body = [line for part in draw(st.lists(statements(depth=depth - 1), min_size=1, max_size=3))
            for line in part]
    inner = ["    " + line for line in body]
    if kind in (6, 7):
        made = [f"if {draw(conditions())}:", *inner]
        return [*made, "else:", "    acc = acc * float32(2.0)"] if draw(st.booleans()) else made
    if kind == 8:
        return [f"for k in range({draw(st.sampled_from(['3', 'tx % 4', 'n % 5']))}):", *inner]
    if kind == 9:
        way = draw(st.sampled_from(["break", "continue"]))
        return ["for k in range(4):", *inner, f"    if {draw(conditions())}:", f"        {way}",
                "    acc = acc + float32(1.0)"]
    return ["w = 0", f"while w < {draw(st.sampled_from(['tx % 5', '3']))}:", *inner, "    w += 1"]


def outcome(text, grid, block, executor):
    kernel = kernels_from_text(text)["f"]
    threads = grid[0] * grid[1] * block[0] * block[1]
    out, a = np.zeros(threads, np.float32), np.arange(threads, dtype=np.float32) % 11 - 5
    try:
        report = launch(kernel, grid, block, out, a, threads, executor=executor)
    except KernelError as error:
        return error.kind, error.race_kinds if error.kind == "race" else None
    return out.tolist(), report.counters.by_line


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(statements(), min_size=1, max_size=6), st.tuples(st.integers(1, 2), st.integers(
    1, 2)), st.tuples(st.sampled_from([1, 5, 8, 32, 33]), st.integers(1, 3)))
def test_executors_agree(parts, grid, block):
    lines = [line for part in parts for line in part]
    text = textwrap.dedent("""\
        def f(out, a, n):
            s = cuda.shared.array(128, float32)
            tx = cuda.threadIdx.x
            ty = cuda.threadIdx.y
            t = ty * cuda.blockDim.x + tx
            i = (cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x) * (
                cuda.blockDim.x * cuda.blockDim.y) + t
            acc = float32(0.0)
            c = 0
            s[t] = float32(tx)
        """) + "".join(f"    {line}\n" for line in [*lines, "out[i] = acc"])
    assert outcome(text, grid, block, "simt") == outcome(text, grid, block, "oracle"), text


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
