"""numba.cuda's documented list, line by line: both executors against Python and numpy."""

import itertools
import math
import textwrap

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch

HEAD = textwrap.dedent("""\
    import math
    import operator
    import numpy as np
    TABLE = np.arange(8) * 1.5
    PAIRS = ((1, 2), (3, 4))

    def half(x, scale=2):
        return x / scale

    def f(out, x, b, u):
        i = cuda.grid(1)
        t = cuda.threadIdx.x
    """)
X = np.arange(64, dtype=np.float32) / 4 - 6
B = np.arange(64, dtype=np.int32) - 20
N = np.arange(64)


def run(body, out=None, executor="simt"):
    kernel = kernels_from_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "))["f"]
    out = np.zeros(64) if out is None else out.copy()
    unsigned = np.arange(4, dtype=np.uint32)
    report = launch(kernel, 2, 32, out, X, B, unsigned, executor=executor)
    return out, unsigned, report.counters.by_line


def both(body, out=None):
    fast, slow = run(body, out), run(body, out, "oracle")
    np.testing.assert_array_equal(fast[0], slow[0])
    np.testing.assert_array_equal(fast[1], slow[1])
    assert fast[2] == slow[2]
    return fast


def bit_reversed(value, width):
    return int(f"{value % (1 << width):0{width}b}"[::-1], 2)


# One line each, and what it gives for each thread. Many go into one kernel.
LINES = {
    # integers of 32 bits in the array, of 64 once computed with
    "cuda.clz(b[i])": [32 - int(v).bit_length() if v >= 0 else 0 for v in B],
    "cuda.clz(b[i] + 0)": [64 - int(v).bit_length() if v >= 0 else 0 for v in B],
    "cuda.clz(t)": [32 - int(v % 32).bit_length() for v in N],
    "cuda.clz(i)": [64 - int(v).bit_length() for v in N],
    "cuda.clz(np.uint8(i))": [8 - int(v).bit_length() for v in N],
    "cuda.popc(b[i])": [(int(v) % (1 << 32)).bit_count() for v in B],
    "cuda.brev(b[i])": [bit_reversed(int(v), 32) for v in B],
    "cuda.ffs(b[i])": [(int(v) & -int(v)).bit_length() for v in B],
    # types
    "(x[i] ** 3) * x[i]": X**3 * X,
    "pow(b[i], 2)": B.astype(int)**2,
    "uint32(b[i])": B % float(1 << 32),
    "np.uint8(b[i])": B % 256,
    "round(x[i])": np.rint(X),
    "round(x[i], 1)": np.rint(X * 10.0).astype(np.float64) / 10,
    "divmod(b[i], 7)[1]": B % 7,
    "divmod(x[i], 1.5)[0]": X // 1.5,
    "b[i] // -7": B // -7,
    "b[i] % -7": B % -7,
    "~(i > 3) + 2 * ~b[i]": (N <= 3) + 2.0 * ~B,
    "-(i > 3)": -1.0 * (N > 3),
    "max(x[i], float32('nan'))": X,
    "min(i, 5, b[i])": np.minimum(np.minimum(N, 5), B),
    "cuda.fma(x[i], x[i], x[i])": X * X + X,
    "cuda.selp(i > 3, i, 7)": np.where(N > 3, N, 7),
    "cuda.fp16.hfma(float16(3), float16(2), float16(1))": np.full(64, 7),
    "cuda.fp16.hgt(float16(3), float16(2))": np.ones(64),
    "math.ldexp(x[i], b[i])": np.ldexp(X, B),
    "math.frexp(x[i])[1]": np.frexp(X)[1],
    "math.modf(x[i])[0]": np.modf(X)[0],
    # containers
    "i in (1, 2, 40)": np.isin(N, [1, 2, 40]),
    "i not in (1, 2, 40)": ~np.isin(N, [1, 2, 40]),
    "(5, 6, 7)[i % 3]": N % 3 + 5,
    "TABLE[i % 8] + cuda.const.array_like(TABLE)[7]": N % 8 * 1.5 + 10.5,
    "x.strides[0] + x.itemsize + x.nbytes": np.full(64, 4 + 4 + 256),
    "operator.floordiv(i, 3) + operator.ge(i, 5)": N // 3 + (N >= 5),
    "half(scale=4, x=i)": N / 4,
    "np.arctan2(x[i], x[i]) + np.maximum(i, 3)": np.arctan2(X, X) + np.maximum(N, 3.0),
    # warps
    "cuda.lanemask_lt()": 2.0**(N % 32) - 1,
    "cuda.ballot_sync(-1, t % 31 == 0)": np.full(64, 1 - 2.0**31),
    "cuda.match_any_sync(-1, t % 31)": [
        1 - 2.0**31 if n % 31 == 0 else 2.0**n for n in range(32)] * 2,
    "cuda.match_all_sync(mask=-1, value=i // 32)[0]": np.full(64, -1),
    "cuda.match_all_sync(-1, i // 40)[1]": N < 32,
    "cuda.eq_sync(-1, i > 40)": N < 32,
    "cuda.shfl_up_sync(-1, b[i], delta=1)": np.where(N % 32, B - 1, B),
    "cuda.shfl_sync(-1, i, 33)": N // 32 * 32 + 1,
}


def test_lines():
    body = "".join(f"out[i, {n}] = {line}\n" for n, line in enumerate(LINES))
    out = both(body, np.zeros((64, len(LINES))))[0]
    for n, (line, expected) in enumerate(LINES.items()):
        np.testing.assert_allclose(out[:, n], np.asarray(expected, float), rtol=1e-6, err_msg=line)


FUNCTIONS = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "degrees",
             "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "gamma", "lgamma", "log",
             "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
             "isfinite", "isinf", "isnan")
OF_TWO = ("atan2", "copysign", "fmod", "hypot", "pow", "remainder", "nextafter")


def test_math():
    """Every function of one argument at 0.7 + n and 0.3, against Python's."""
    calls = [f"math.{name}({'1.0 + v' if name == 'acosh' else 'v'})" for name in FUNCTIONS]
    calls += [f"math.{name}(v, 0.3)" for name in OF_TWO]
    lines = "".join(f"out[i, {n}] = {call}\n" for n, call in enumerate(calls))
    out = both("v = 0.7 if i % 2 else 0.3\n" + lines, np.zeros((64, len(calls))))[0]
    for row, v in ((0, 0.3), (1, 0.7)):
        expected = [eval(call, {"math": math, "v": v}) for call in calls]
        np.testing.assert_allclose(out[row], expected, rtol=1e-12)
    narrow = both("out[i] = math.erf(x[i]) * x[i]")[0]  # float32 stays float32
    np.testing.assert_array_equal(narrow, [np.float32(math.erf(v)) * v for v in X])


@pytest.mark.parametrize(("body", "expected"), [
    ("for v in (1, 2.5):\n    if v > i:\n        continue\n    out[i] += v",
     [sum(v for v in (1, 2.5) if v <= i) for i in range(64)]),
    ("for p, q in PAIRS:\n    out[i] += p * q", [14] * 64),
    ("for k, v in enumerate((5, 6), start=2):\n    out[i] += k * v", [28] * 64),
    ("for v, w in zip((5, 6, 7), x):\n    out[i] += v * w", [5 * -6 + 6 * -5.75 + 7 * -5.5] * 64),
    ("for v in x:\n    out[i] += v\n    if v > 0:\n        break", [sum(X[:26])] * 64),
    ("(p, (q, r)), s = (i, (2, 3)), 4\nout[i] = p * q + r * s", 2 * N + 12),
    (("s = cuda.shared.array(dtype=int32, shape=32)\ns[t] = t\ncuda.syncthreads()\nif t < 16:\n"
     "    s[t], s[31 - t] = s[31 - t], s[t]\ncuda.syncthreads()\nout[i] = s[t]"), 31 - N % 32),
    ("if (k := i * 2) > 10:\n    out[i] = k", np.where(N > 5, 2 * N, 0)),
])
def test_statements(body, expected):
    np.testing.assert_array_equal(both(body)[0], np.asarray(expected, float))


def python_atomic(kind, old, value):
    return {"inc": 0 if old >= value else old + 1,
            "dec": value if old == 0 or old > value else old - 1}[kind]


@pytest.mark.parametrize("kind", ["inc", "dec"])
def test_counting_atomics(kind):
    """One after another, each from what the one before left."""
    states = list(itertools.accumulate(range(64), lambda old, _: python_atomic(kind, old, 5),
                                       initial=3))
    out, unsigned, _ = both(f"out[i] = cuda.atomic.{kind}(u, 3, 5)")
    assert out.tolist() == states[:-1]
    assert unsigned[3] == states[-1]


def test_atomics_take_values_of_the_arrays_type():
    """As numba casts them: -1.5 is -1 of an integer; 0.1 in float32 before it is added."""
    both("cuda.atomic.nanmax(out, 1, x[i] if i % 5 else float32('nan'))\n"
         "cuda.atomic.nanmin(out, 2, x[i])")
    out, unsigned, _ = both("cuda.atomic.sub(u, 0, 1.5)\ncuda.atomic.add(out, 0, -1.5)\n"
                            "cuda.atomic.compare_and_swap(u[1:], 1, 9)")
    assert unsigned.tolist() == [2**32 - 64, 9, 2, 3]
    assert out[0] == -96


@pytest.mark.parametrize(("body", "says"), [
    ("TABLE[i % 8] = 1", "constant memory"), ("cuda.atomic.inc(b, 0, 3)", "unsigned"),
    ("cuda.atomic.and_(x, 0, 3)", "integer type"), ("cuda.atomic.mul(b, 0, 3)", "does not exist"),
    ("p, q = cuda.grid(3)", "2 values"), ("out[i:i + 1] = 3", "no integer"),
    ("out[i] = min((i, 3))", "2 or more"), ("out[i] = cuda.grid(4)", "1, 2 or 3"),
    ("s = cuda.shared.array(32, 'float32')", "no type"), ("out[i] = i is None", "=="),
    ("for v in sorted(x):\n    pass", "loops go through"), ("out[i] = half(i, 2, 3)", "takes x"),
    ("out[i] = math.sqrt(1, 2)", "takes 1"), ("out[i] = x[x[i]]", "no integer"),
    ("out[i] = ~x[i]", "floats"), ("out[i] = (1, 2)[3]", "tuple of 2"),
    ("for k in range(3):\n    pass\nelse:\n    pass", "else"),
])
def test_refusals(body, says):
    for executor in ("simt", "oracle"):
        with pytest.raises(KernelError, match=says) as caught:
            run(body, executor=executor)
        assert caught.value.line >= HEAD.count("\n") + 1
