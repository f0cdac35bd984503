"""Compiled code is kept between launches, and what its names stand for is looked up at each."""

import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from distlearn.kernels import KernelError, cuda, float32, float64, kernel, kernels_from_text, launch

TEXT = """\
def scaled(x):
    return x * FACTOR

def f(out):
    i = cuda.grid(1)
    out[i] = scaled(i + config.offset) + table[i % 2] + pair[1] + fn(i)
"""


def configured(**changed):
    """The kernel of TEXT with names to change, and how to launch it."""
    kernels = kernels_from_text(TEXT)
    space = kernels["f"].function.__globals__
    space.update(FACTOR=2, config=types.SimpleNamespace(offset=1), table=(10, 20), pair=(0, 5),
                 fn=abs)
    space.update(changed)

    def run(n=4):
        out = np.zeros(n, np.int64)
        launch(kernels["f"], 1, n, out)
        return out.tolist()
    return kernels, space, run


def expected(factor=2, offset=1, table=(10, 20), last=5, of=abs, n=4):
    return [(i + offset) * factor + int(table[i % 2]) + last + of(i) for i in range(n)]


def test_what_changes_between_launches_is_seen():
    kernels, space, run = configured()
    assert run() == expected()
    first = kernels["f"].kept
    assert run() == expected() and kernels["f"].kept is first
    space["FACTOR"] = 3  # of the device function
    assert run() == expected(3)
    assert kernels["f"].kept is not first
    space["config"].offset = 7
    assert run() == expected(3, 7)
    space["table"] = (1, 2)
    assert run() == expected(3, 7, (1, 2))
    space["pair"] = (0, 1 << 40)
    assert run() == expected(3, 7, (1, 2), 1 << 40)
    space["fn"] = kernels_from_text("def twice(x):\n    return 2 * x\n")["twice"]
    assert run() == expected(3, 7, (1, 2), 1 << 40, lambda i: 2 * i)
    space["scaled"] = kernels_from_text("def scaled(x):\n    return x\n")["scaled"]
    assert run() == expected(1, 7, (1, 2), 1 << 40, lambda i: 2 * i)


@pytest.mark.parametrize("array", [np.array([10, 20]), np.arange(10, 40, 5)[::2]])
def test_elements_of_arrays_may_change_in_place(array):
    _, _, run = configured(table=array)
    assert run() == expected(table=array)
    array[1] += 100
    assert run() == expected(table=array)


def test_a_name_may_vanish_and_come_back():
    _, space, run = configured()
    assert run() == expected()
    del space["FACTOR"]
    with pytest.raises(KernelError, match="FACTOR"):
        run()
    for value, kind in [(object(), "object"), ([1, 2], "list"), ({1: 2}, "dict")]:
        space["FACTOR"] = value
        with pytest.raises(KernelError, match=f"is a {kind}, which a kernel cannot use"):
            run()
    space["FACTOR"] = 2
    assert run() == expected()


def test_types_and_closures_are_looked_up():
    kind, times = float32, 1

    @kernel
    def f(out):
        out[cuda.threadIdx.x] = kind(0.1) * times

    def run():
        out = np.zeros(2)
        f[1, 2](out)
        return out.tolist()

    assert run() == [float(np.float32(0.1))] * 2
    times = 3
    assert run() == [float(np.float32(0.1)) * 3] * 2
    kind = float64
    assert run() == [0.1 * 3] * 2


def test_other_arguments_blocks_and_threads_of_python():
    """Nothing of a launch stays in the code: other types and shapes, and many at once."""
    f = kernels_from_text("""\
def f(out, a, k):
    s = cuda.shared.array(64, float64)
    t = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y + t
    s[t] = a[i]
    cuda.syncthreads()
    n = 0
    while n < i % 3:
        n += 1
    out[i] = s[cuda.blockDim.x * cuda.blockDim.y - 1 - t] * k + n
""")["f"]

    def one(case):
        dtype, (x, y), k = case
        a, out = np.arange(3 * x * y).astype(dtype), np.zeros(3 * x * y)
        report = f[3, (x, y)](out, a, k)
        np.testing.assert_allclose(
            out, a.reshape(3, -1)[:, ::-1].ravel() * float(k) + np.arange(3 * x * y) % 3)
        return report.counters["shared_store_requests"]

    cases = [(dtype, block, k) for dtype in (np.int32, np.float32, np.float64)
             for block in ((32, 1), (8, 8), (5, 7)) for k in (2, np.float32(0.5))]
    one_by_one = [one(case) for case in cases]
    assert one_by_one[:6] == [3, 3, 6, 6, 6, 6]
    f.kept = None
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, cases * 2)) == one_by_one * 2
