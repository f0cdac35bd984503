"""The ladder's own source, compiled for real GPUs by numba-cuda (no GPU is needed for that)."""

import re
import sys

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch
from distlearn.kernels.gemm import GEMM


@pytest.fixture(scope="module")
def ptx():
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: extra distlearn[cuda]")
    from distlearn.kernels import numba_cuda

    def compiled(name, compute_capability="8.0"):
        rung = GEMM[name]
        A, C = np.zeros((64, 64), rung.dtype), np.zeros((64, 64), rung.result_dtype)
        one = rung.result_dtype.type(1)
        return numba_cuda.ptx(rung, (A, A, C, one, one), compute_capability)
    return compiled


@pytest.mark.parametrize("target", ["8.0", "9.0"])
@pytest.mark.parametrize("name", GEMM)
def test_compiles(name, target, ptx):
    text = ptx(name, target)
    assert f".target sm_{target.replace('.', '')}" in text
    assert ".visible .entry" in text
    assert ("wmma.mma.sync" if name == "tensor_core" else "fma.rn.f32") in text


def test_sixteen_bytes_are_one_instruction(ptx):
    text = ptx("vectorised")
    assert re.search(r"ld\.global\.v4\.(f32|u32|b32)", text)
    assert re.search(r"ld\.shared\.v4\.(f32|u32|b32)", text)
    assert re.search(r"st\.shared\.v4\.(f32|u32|b32)", text)


def test_what_numba_cannot_compile_is_named(ptx):
    from distlearn.kernels import numba_cuda

    kernel = kernels_from_text("def f(out):\n    out.sort_by_magic()\n")["f"]
    with pytest.raises(KernelError, match=r"cannot compile f\(\)") as caught:
        numba_cuda.ptx(kernel, (np.zeros(4, np.float32),))
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize("name", GEMM)
def test_ladder_on_a_gpu(name):
    """The same source on real hardware, where there is some."""
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: extra "
                               "distlearn[cuda]")
    if not cuda.is_available():
        pytest.skip("this machine has no GPU")
    rung, rng = GEMM[name], np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(rung.dtype) for shape in ((70, 45), (45, 130)))
    result, report = rung.multiply(A, B, alpha=2, backend="cuda")
    exact = 2 * A.astype(np.float64) @ B.astype(np.float64)
    bound = 2 * 48 * np.finfo(np.float32).eps * (abs(A.astype(np.float64)) @ abs(
        B.astype(np.float64)))
    assert (abs(result - exact) <= bound).all()
    assert report.measured_s > 0


def test_backend_cuda():
    """With a GPU the result is right and timed; without one the error says what is missing."""
    add = kernels_from_text("def add(out, a):\n    i = cuda.grid(1)\n    if i < out.size:\n"
                            "        out[i] = a[i] + float32(1)\n")["add"]
    a, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    try:
        report = launch(add, 4, 32, out, a, backend="cuda")
    except ImportError as error:
        assert "distlearn[cuda]" in str(error)
        assert "numba.cuda" not in sys.modules
    except KernelError as error:
        assert "GPU" in str(error)
    else:
        np.testing.assert_array_equal(out, a + 1)
        assert report.measured_s > 0
