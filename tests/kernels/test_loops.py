"""Loops whose iterations run at once: the same as step by step, and as the oracle says."""

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, kernels_from_text, launch
from distlearn.kernels.simt import loops

HEAD = """\
    s = cuda.shared.array(64, float32)
    own = cuda.local.array(4, float32)
    reg = cuda.local.array(4, float32)
    tile = cuda.local.array((4, 4), float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    acc = float32(1.0)
    c = 0
    for q in range(4):
        own[q] = a[4 * i + q]
        s[4 * t + q] = float32(q + t)
        for r in range(4):
            tile[q, r] = a[i + q] * float32(r)
    cuda.syncthreads()
"""
TAIL = """\
    out[i] = acc + float32(c)
    for q in range(4):
        out[32 + 4 * i + q] = own[q]
        for r in range(4):
            out[160 + 16 * i + 4 * r + q] = tile[q, r]
"""
SIZE = 1024


@st.composite
def reals(draw, names):
    """A number, mostly of what no iteration writes."""
    k, other = names[-1], draw(st.sampled_from(names))
    return draw(st.sampled_from([
        f"a[4 * i + {k}]", f"a[i] * a[{other} + 8]", f"s[4 * t + {k}]", f"float32({other} + t)",
        f"reg[{other}]", f"own[{k}]", f"tile[{other}, {k}]", f"own[({other} + t) % 4]", "acc",
        f"(a[i] if {k} < t else a[{other}])", f"s[(4 * t + 4 * {other}) % 64]",
        f"a[40 * {k} + i]"]))


@st.composite
def bodies(draw, names, depth):
    """Statements within loops over these names."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        k, other = names[-1], draw(st.sampled_from(names))
        real, op = draw(reals(names)), draw(st.sampled_from(["+=", "-=", "*="]))
        test = draw(st.sampled_from([f"{k} < t", "t < 3", f"{other} == 2", "c > 1"]))
        count = draw(st.sampled_from(["4", "3", "n", "1"]))
        head = [f"if {test}:", f"for {'kjpv'[len(names)]} in range({count}):"]
        kind = draw(st.integers(0, 11 if depth else 9))
        made += {
            0: [f"own[{k}] {op} {real}"], 1: [f"own[{other}] = {real}"],
            2: [f"tile[{other}, {k}] {op} {real}"], 3: [f"tile[{k}, {other}] {op} {real}"],
            4: [f"acc {op} {real}"], 5: [f"x = {real}", f"own[{k}] += x * x"],
            6: ["for q in range(4):", f"    reg[q] = {real}", "for q in range(4):",
                f"    tile[q, {other}] += reg[q] * reg[{k} % 4]"],
            7: [f"out[672 + 4 * i + {k}] = {real}"], 8: [f"s[4 * t + {k}] = {real}"],
            9: [f"c = {k}", f"out[800 + 4 * i + {other}] += {real}"],
        }.get(kind) or [head[kind - 10], *("    " + line for line in draw(bodies(
            names if kind == 10 else [*names, "kjpv"[len(names)]], depth - 1)))]
    return made


def outcome(text, grid, block, executor="simt", most=None):
    """What a launch gives; of an error all that it says, or, of the oracle's, its kind."""
    kernel, out = kernels_from_text(text)["f"], np.zeros(SIZE, np.float32)
    a = np.random.default_rng(0).random(192, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        if most is not None:
            patch.setattr(loops, "MOST", most)
        try:
            report = launch(kernel, grid, block, out, a, 4, executor=executor)
        except KernelError as error:
            if executor == "oracle":
                return error.kind
            return error.kind, str(error), error.line, error.block, error.thread, error.race_kinds
    return out.tobytes(), report.counters.by_line


@settings(max_examples=30, deadline=None, derandomize=True)
@given(bodies(["k"], 2), st.sampled_from(["4", "n", "3, -1, -1", "0, 4, 2"]), st.booleans(),
       st.sampled_from([(2, 5), (1, 16)]))
def test_nests_agree(body, count, filled, launched):
    lines = [*(["for q in range(4):", "    reg[q] = own[q]"] if filled else []),
             f"for k in range({count}):", *("    " + line for line in body)]
    text = "def f(out, a, n):\n" + HEAD + "".join(f"    {line}\n" for line in lines) + TAIL
    found = outcome(text, *launched)
    assert found == outcome(text, *launched, most=0), text
    oracle = outcome(text, *launched, executor="oracle")
    assert (found[0] if isinstance(oracle, str) else found) == oracle, text


@pytest.mark.parametrize(("body", "kind"), [
    ("for k in range(4):\n    out[i] = a[100 * k + i]", "out_of_bounds"),
    ("for k in range(4):\n    own[k] = a[i]\n    if t == 2:\n        own[k + 1] = acc",
     "out_of_bounds"),
    ("for k in range(4):\n    for j in range(4):\n        s[t + 4 * k + j] = acc", "race"),
    ("for k in range(4):\n    out[t + k] = acc", "global_race"),
    ("for k in range(4):\n    own[k] = reg[3 - k]", "unbound_variable"),
    ("u = cuda.shared.array(64, float32)\nfor k in range(4):\n    own[k] = u[4 * t + k]",
     "uninitialised_shared_read"),
    ("for k in range(3):\n    x = 6 // (k + t - 4)\n    out[i] = float32(x)", "division_by_zero"),
    ("for k in range(4):\n    x = int32(k * 1000000000)", "int32_overflow"),
])
def test_errors_are_those_of_the_first_step(body, kind):
    text = "def f(out, a, n):\n" + HEAD + textwrap.indent(body, "    ") + "\n" + TAIL
    found = outcome(text, 2, 8)
    assert found[0] == kind
    assert found == outcome(text, 2, 8, most=0)
    assert outcome(text, 2, 8, executor="oracle") == kind


def test_sums_are_taken_in_the_order_of_iterations():
    text = textwrap.dedent("""\
        def f(out, a, n):
            total = float32(0.0)
            sums = cuda.local.array(2, float32)
            for k in range(2):
                sums[k] = float32(0.0)
            for k in range(64):
                for j in range(3):
                    total += a[64 * j + k] * a[cuda.threadIdx.x]
            for k in range(64):
                for j in range(2):
                    sums[j] -= a[64 * j + k]
            out[cuda.threadIdx.x] = total
            out[8 + 2 * cuda.threadIdx.x] = sums[0]
            out[9 + 2 * cuda.threadIdx.x] = sums[1]
        """)
    a = (np.random.default_rng(1).random(192) * 10.0 ** np.arange(192) % 97).astype(np.float32)
    out = np.zeros(24, np.float32)
    report = launch(kernels_from_text(text)["f"], 1, 8, out, a, 4)
    total, sums = np.zeros(8, np.float32), np.zeros(2, np.float32)
    for k in range(64):
        for j in range(3):
            total += a[64 * j + k] * a[:8]
        sums -= a[k:128:64]
    assert out.tolist() == [*total.tolist(), *sums.tolist() * 8]
    assert report.counters["flops"] == 8 * 64 * (3 * 2 + 2)
    assert report.counters["global_load_requests"] == 64 * (3 * 2 + 2)
