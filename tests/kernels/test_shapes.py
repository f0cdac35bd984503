"""Shapes of shared and local arrays: what numba.cuda and ptxas take, and what they refuse.

Each row was compiled with numba-cuda 0.30 for sm_80; constant expressions are taken here alone.
"""

import textwrap

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch
from distlearn.kernels.oracle import record

HEAD = """
N, T = 8, (4, 2)
@cuda.jit
def dev(A, m):
    s = cuda.shared.array(m, float32)
    s[0] = 1
@cuda.jit
def through(A, w):
    dev(A, m=w)
@cuda.jit
def part(A, i):
    s = cuda.shared.array(8, float32)
    s[i] = i
    cuda.syncthreads()
    A[i] = s[i]
@cuda.jit
def f(A, n):
    t = cuda.threadIdx.x
"""
LINE = HEAD.count("\n") + 1
TAKEN = ["16", "N", "T", "T[0]", "(N, 4)", "N if N > 3 else 4", "0", "N * 2", "T[0] + 2",
         "min(N, 4)"]
ARGUMENT, LATE = "is an argument of f", "is not"
REFUSED = {"n": ARGUMENT, "(4, n)": ARGUMENT, "n + 1": ARGUMENT, "A.shape[0]": LATE, "t": LATE,
           "cuda.blockDim.x": LATE, "int(A[0])": ARGUMENT, "len(A)": ARGUMENT}
LATER = [("m = n\n    s = cuda.local.array(m, int32)", ARGUMENT, 1),
         ("m = 4\n    m += 1\n    s = cuda.shared.array(m, int32)", "m changes", 2),
         ("for m in range(1, 3):\n        s = cuda.shared.array(m, int32)", "m changes", 1),
         ("x, y = cuda.grid(2)\n    s = cuda.shared.array(y, int32)", LATE, 1),
         ("s = cuda.shared.array(dtype=int32, shape=n)", ARGUMENT, 0),
         ("dev(A, n)", ARGUMENT, 0), ("through(A, n)", ARGUMENT, 0)]


def run(body, executor, threads=1):
    kernel = kernels_from_text(f"{HEAD}    {body}\n")["f"]
    A = np.zeros(8, np.float32)
    launch(kernel, 1, threads, A, 5, executor=executor, shared_bytes=64)
    return A.tolist()


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_shapes_are_constants(executor):
    for space in ("shared", "local"):
        for shape in TAKEN:
            if (space, shape) != ("local", "0"):
                run(f"s = cuda.{space}.array({shape}, float32)", executor)
    for body in ("m = 4\n    s = cuda.shared.array(m, int32)", "dev(A, 4)", "through(A, N)",
                 "a, b = T\n    s = cuda.shared.array((a, b), int32)"):
        run(body, executor)
    rows = [(f"s = cuda.{space}.array({shape}, float32)", reason, 0)
            for space in ("shared", "local") for shape, reason in REFUSED.items()] + LATER
    for body, reason, lines in rows:
        with pytest.raises(KernelError, match=f"known when the kernel is compiled.*{reason}"
                           ) as caught:
            run(body, executor)
        assert (caught.value.kind, caught.value.line) == ("unsupported", LINE + lines), body


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_static_arrays_have_48_kib(executor):
    """ptxas: "uses too much shared data (0xc004 bytes, 0xc000 max)"."""
    run("s = cuda.shared.array(12288, float32)", executor)
    for body in ("s = cuda.shared.array(12289, float32)",
                 "s = cuda.shared.array((64, 192), float32); q = cuda.shared.array(1, int32)"):
        with pytest.raises(KernelError, match="0xc004 bytes, 0xc000 max") as caught:
            run(body, executor)
        assert (caught.value.kind, caught.value.line) == ("unsupported", LINE)
    A = np.zeros(1)
    kernel = kernels_from_text("def f(A):\n    s = cuda.shared.array(0, float32)\n"
                               "    s[25000] = 3\n    A[0] = s[25000]\n")["f"]
    launch(kernel, 1, 1, A, shared_bytes=100 * 1024, executor=executor)
    assert A[0] == 3


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_block_has_227_kib_at_most(executor):
    """CUDA C++ Programming Guide, table 27: the largest of any part, on 9.0 and 10.x."""
    text = """
        def f(A):
            d = cuda.shared.array(0, float32)
            d[58111] = 3
            A[0] = d[58111]
        def g(A):
            s = cuda.shared.array(256, float32)
            s[0] = 3
            A[0] = s[0]
        """
    kernels, A = kernels_from_text(textwrap.dedent(text)), np.zeros(1)
    for name, dynamic in (("f", 227 * 1024), ("g", 226 * 1024)):
        A[0] = 0
        launch(kernels[name], 1, 1, A, shared_bytes=dynamic, executor=executor)
        assert A[0] == 3
        with pytest.raises(KernelError, match="at most 232,448 on any GPU") as caught:
            launch(kernels[name], 1, 1, A, shared_bytes=dynamic + 1, executor=executor)
        assert (caught.value.kind, caught.value.line) == ("bad_launch", 7 if name == "g" else 0)
    with pytest.raises(KernelError, match="at most 232,448 on any GPU"):
        record(kernels["f"], 1, 1, A, shared_bytes=227 * 1024 + 1)


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_a_declaration_is_one_array_however_often_it_is_reached(executor):
    """Shared memory is static: two calls of a function have the same, as have a loop's turns."""
    with pytest.raises(KernelError) as caught:
        run("part(A, t)\n    part(A, (t + 1) % 4)", executor, threads=4)
    assert caught.value.kind == "race"
    assert run("part(A, t)\n    cuda.syncthreads()\n    part(A, (t + 1) % 4)", executor,
               threads=4) == [0, 1, 2, 3, 0, 0, 0, 0]
    body = ("for i in range(2):\n        s = cuda.shared.array(8, float32)\n        if i == 0:\n"
            "            s[t] = t\n        A[t] = s[t]")
    assert run(body, executor, threads=4) == [0, 1, 2, 3, 0, 0, 0, 0]
