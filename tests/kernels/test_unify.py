"""Names that hold values of two types: numba.cuda's types, in both executors."""

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import kernels_from_text, launch
from distlearn.kernels.inference import of_value
from distlearn.kernels.unify import unified

HEAD = """
@cuda.jit
def either(v, t):
    if t % 3 == 0:
        return 0
    return v
@cuda.jit
def keep(v):
    w = v
    return w
@cuda.jit
def f(o, a, b, h, g, n):
    t = cuda.grid(1)
"""
USE = "\no[t] = x * b[t] * b[31 - t]"
# What gives x its value, and whether numba-cuda 0.30 multiplies in float64 (the PTX for sm_80).
ROWS = [
    ("if n > 3:\n    x = 0\nelse:\n    x = a[t]", True),
    ("if t % 3 == 0:\n    x = 1\nelse:\n    x = a[t]", True),
    ("if n > 3:\n    x = 0.0\nelse:\n    x = a[t]", True),
    ("if n > 3:\n    x = float32(0)\nelse:\n    x = a[t]", False),
    ("x = a[t] if n < 3 else 0", True),
    ("x = a[t]\nif n > 3:\n    x = t", True),
    ("x = 0\nx = a[t]", False),
    ("x = 0\no[x + t] = 1\nif n < 3:\n    x = a[t]", True),
    ("x = a[t]\nif n > 3:\n    x = h[t]", False),  # int16
    ("x = a[t]\nif n > 3:\n    x = g[t]", True),  # int32
    ("x = a[t]\nif n > 3:\n    x = n > 5", False),  # a truth
    ("x = either(a[t], t)", True),
    ("x = keep(a[t])", False),
    ("x = a[t] or 1", True),
    ("x = 0\nfor k in range(3):\n    if k == 1:\n        x = a[t]\n    else:\n        x = x * 1",
     True),
    ("x = a[t]\nwhile x > 9:\n    x = 1", True),
    ("y = 2\nif n < 9:\n    y = a[t]\nx = y", True),
    ("y = 0 if n > 9 else a[t]\nx = abs(y)", True),
    ("x = a[t]\nx *= b[t]\nif n > 9:\n    x = 0", True),
]


def arrays():
    rng = np.random.default_rng(4)
    return (np.zeros(32, np.float32), rng.random(32, dtype=np.float32),
            rng.random(32, dtype=np.float32), np.arange(32, dtype=np.int16),
            np.arange(32, dtype=np.int32))


def run(body, n, executor):
    given_ = arrays()
    kernel = kernels_from_text(HEAD + textwrap.indent(body + USE, "    ") + "\n")["f"]
    launch(kernel, 1, 32, *given_, n, executor=executor)
    return given_[0]


def in_python(body, n, double):
    """The same thread by thread, the name converted where it is used at last."""
    o, a, b, h, g = arrays()
    space = {"either": lambda v, t: 0 if t % 3 == 0 else v, "keep": lambda v: v,
             "float32": np.float32}
    kind = np.float64 if double else np.float32
    for t in range(32):
        space |= {"o": o, "a": a, "b": b, "h": h, "g": g, "n": n, "t": t}
        exec(body, space)
        o[t] = kind(kind(kind(space["x"]) * b[t]) * b[31 - t])
    return o


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("body", "double"), ROWS)
def test_a_name_has_the_type_that_numba_gives_it(body, double, executor):
    for n in (2, 5):
        assert run(body, n, executor).tolist() == in_python(body, n, double).tolist()


def test_the_two_types_give_different_results():
    """Or the rows above would show nothing."""
    body = ROWS[3][0]
    assert in_python(body, 2, True).tolist() != in_python(body, 2, False).tolist()


def test_kernels_of_one_type_stay_as_they_are():
    text = HEAD + ("    x = 0\n    for k in range(n):\n        x += a[k] * b[k]\n    y = 0.0\n"
                   "    if t > 3:\n        y = a[t]\n    o[t] = x\n    if y < 1:\n"
                   "        o[t] = y\n")
    kernel = kernels_from_text(text)["f"]
    assert unified(kernel, tuple(map(of_value, (*arrays(), 3)))) == {}


VALUES = ["0", "2", "1.5", "a[t]", "b[t]", "g[t]", "h[t]", "t", "x", "y", "x * y", "x + b[t]",
          "y / 3", "float32(y)", "a[t] if y > x else y", "max(x, y)", "either(x, t)", "abs(y)"]


@st.composite
def blocks(draw, depth=2):
    """Assignments to x and y under branches and loops, uniform and not."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["give", "give", "step", "if", "for"]))
        name, value = draw(st.sampled_from("xy")), draw(st.sampled_from(VALUES))
        if kind == "step":
            made.append(f"{name} {draw(st.sampled_from(['+', '-', '*']))}= {value}")
        elif kind == "give" or depth == 0:
            made.append(f"{name} = {value}")
        else:
            head = "for k in range(2):" if kind == "for" else draw(st.sampled_from(
                ["if n > 3:", "if t % 3 == 0:", "if a[t] < 0.5:"]))
            made.append(head + "\n" + textwrap.indent(draw(blocks(depth=depth - 1)), "    "))
            if kind == "if" and draw(st.booleans()):
                made.append("else:\n" + textwrap.indent(draw(blocks(depth=depth - 1)), "    "))
    return "\n".join(made)


@settings(max_examples=40, deadline=None)
@given(blocks(), st.sampled_from([2, 5]))
def test_executors_agree_on_types(body, n):
    body = "x = a[t]\ny = 1\n" + body + "\nx = x * b[t] + y"
    with np.errstate(all="ignore"):
        found = [run(body, n, executor) for executor in ("simt", "oracle")]
    np.testing.assert_array_equal(*found)
