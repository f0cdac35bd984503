"""GEMM on the cube cores: right for ragged sizes, as fast as predicted, predicted as measured."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.hardware.ai_core import ai_core
from distlearn.kernels.ascend import BufferOverflowError, Tiling, gemm, predict, search

SMALL = Tiling(32, 48, 16, 32)


def integers(shape, dtype, seed):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@settings(max_examples=30, deadline=None)
@given(st.tuples(*[st.integers(1, 130)] * 3),
       st.sampled_from([SMALL, Tiling(16, 16, 32, 64, 1, 1, 1), Tiling(64, 16, 16, 48, 2, 2, 2),
                        Tiling(20, 37, 16, 16)]),
       st.sampled_from(["float16", "bfloat16", "float32", "int8"]))
def test_equals_numpy_for_ragged_sizes(size, tiling, dtype):
    m, n, k = size
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    unit = 32 if dtype == "int8" else 16
    tiling = Tiling(tiling.m, tiling.n, -(-tiling.k // unit) * unit,
                    -(-tiling.k // unit) * unit * (tiling.k_l1 // tiling.k), tiling.l1_depth,
                    tiling.l0_depth, tiling.l0c_depth)
    A, B = integers((m, k), kind, 1), integers((k, n), kind, 2)
    C = np.full((m, n), 77, np.float32)
    gemm(A, B, C, tiling=tiling)
    # Sums of small integers are exact in float32, whatever the order.
    assert np.array_equal(C, A.astype(np.int64) @ B.astype(np.int64))


def test_random_numbers_accumulate_in_float32():
    random = np.random.default_rng(5)
    A = random.standard_normal((150, 333)).astype(np.float16)
    B = random.standard_normal((333, 90)).astype(np.float16)
    C = np.zeros((150, 90), np.float32)
    gemm(A, B, C)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    # k roundings of float32 at most, relative to the sum of the magnitudes
    bound = 333 * 2.0**-24 * (np.abs(A.astype(np.float64)) @ np.abs(B.astype(np.float64)))
    assert (np.abs(C - exact) <= bound).all()


def test_fixpipe_scales_casts_and_cuts_off():
    A, B = integers((40, 24), np.float16, 3), integers((24, 40), np.float16, 4)
    C = np.zeros((40, 40), np.float16)
    gemm(A, B, C, tiling=SMALL, scale=0.5, relu=True)
    assert np.array_equal(C, np.maximum(0.5 * (A.astype(int) @ B.astype(int)), 0))


def test_ping_pong_hides_the_loads():
    A = B = np.zeros((512, 512), np.float16)
    C = np.zeros((512, 512), np.float32)

    def makespan(depth):
        report = gemm(A, B, C, tiling=Tiling(128, 128, 64, 128, depth, depth, 1), compute=False)
        return max(line.makespan for line in report.cores)

    report = gemm(A, B, C, tiling=Tiling(128, 128, 64, 128, 1, 1, 1), compute=False)
    assert makespan(2) < 0.75 * makespan(1)
    line = report.cores[0]
    assert line.busy["M"] == 8 * 8 * 32 and len(report.cores) == 16
    # Conservation: each tile reads its rows and columns once, and writes itself.
    assert sum(line.nbytes["MTE2"] for line in report.cores) == 16 * 2 * 128 * 512 * 2
    assert sum(line.nbytes["FIXP"] for line in report.cores) == C.nbytes


@pytest.mark.parametrize("size", [(1536, 1024, 2048), (1000, 1000, 1500), (2048, 2048, 512)])
@pytest.mark.parametrize("tiling", [
    Tiling(128, 256, 64, 256), Tiling(128, 128, 128, 256, l0c_depth=2), None])
def test_prediction_agrees_with_playing_the_program(size, tiling):
    m, n, k = size
    A, B = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16)
    report = gemm(A, B, np.zeros((m, n), np.float16), tiling=tiling, compute=False)
    predicted = predict(m, n, k, report.tiling)
    assert predicted.utilisation == pytest.approx(report.utilisation, rel=0.05)


# TFLOP/s that a public benchmark (limulidae) measured with the library's matmul on a 910B.
@pytest.mark.parametrize(("dtype", "measured"), [("bfloat16", 328), ("float32", 87)])
@pytest.mark.parametrize("n", [8192, 16384])
def test_best_tiling_is_near_the_published_figures(dtype, measured, n):
    peak = {"bfloat16": 353.9, "float32": 88.5}[dtype]
    best = search(n, n, n, "Ascend-910B2", dtype)[0]
    assert best.utilisation == pytest.approx(measured / peak, rel=0.1)
    assert best.bound == "cube"


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("spec", ["Ascend-910A", "Ascend-910B3", "Ascend-910C"])
def test_search_gives_tilings_that_fit_best_first(dtype, spec):
    if (spec, dtype) == ("Ascend-910A", "float32"):
        with pytest.raises(ValueError, match="Ascend-910A has no matrix rate for float32"):
            search(2000, 3000, 1000, spec, dtype)
        return
    found = search(2000, 3000, 1000, spec, dtype, top=8)
    assert [p.time_s for p in found] == sorted(p.time_s for p in found)
    for prediction in found:
        prediction.tiling.check(ai_core(spec), dtype)
        assert 0 < prediction.utilisation <= 1
        assert prediction.time_s >= prediction.terms["cube"] * (1 - 1e-12)


def test_a_thin_product_is_limited_by_memory():
    assert search(16, 8192, 8192)[0].bound == "memory"


def test_hand_check_of_the_buffers():
    assert Tiling(128, 256, 64, 256).fill("float16") == {
        "L1": 384 * 1024, "L0A": 32 * 1024, "L0B": 64 * 1024, "L0C": 128 * 1024}
    assert Tiling(128, 128, 128, 128).fill("float16")["L0A"] == 64 * 1024


@pytest.mark.parametrize(("tiling", "buffer", "over"), [
    (Tiling(256, 256, 64, 64), "L0C", 128 * 1024),
    (Tiling(128, 128, 144, 144), "L0A", 8 * 1024),
    (Tiling(64, 256, 128, 128), "L0B", 64 * 1024),
    (Tiling(128, 256, 64, 384), "L1", 64 * 1024)])
def test_overflow_names_the_buffer_and_by_how_much(tiling, buffer, over):
    zeros = np.zeros((512, 512), np.float16)
    with pytest.raises(BufferOverflowError, match=f"{buffer} overflows by {over:,} bytes") as e:
        gemm(zeros, zeros, zeros.copy(), tiling=tiling)
    assert (e.value.buffer, e.value.over) == (buffer, over)


def test_bad_arguments_are_named():
    zeros = np.zeros((4, 5), np.float16)
    with pytest.raises(ValueError, match=r"must match; got \(4, 5\), \(4, 5\)"):
        gemm(zeros, zeros, zeros)
    with pytest.raises(ValueError, match="k_l1 = 100 must be a multiple of k = 64"):
        Tiling(16, 16, 64, 100)
    with pytest.raises(ValueError, match="m = 0 must be at least 1"):
        Tiling(0, 16, 64, 64)
    with pytest.raises(ValueError, match="n = 0 must be at least 1"):
        predict(1, 0, 1, SMALL)
    with pytest.raises(ValueError, match="T4 has no AI cores"):
        search(64, 64, 64, "T4")
    with pytest.raises(ValueError, match="top = 0"):
        search(64, 64, 64, top=0)
