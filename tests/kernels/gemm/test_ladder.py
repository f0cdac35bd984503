"""Every rung against numpy: any size, transposes, alpha and beta; counters against hand counts."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels.gemm import GEMM

SIZES = [(1, 1, 1), (33, 65, 40), (70, 130, 17)]
SCALAR = [name for name, rung in GEMM.items() if not rung.aligned and rung.dtype == np.float32]


def operands(M, N, K, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in ((M, K), (K, N), (M, N)))


def bound(A, B, C, alpha, beta):
    """Sums of K products in float32 differ by at most (K + 3) units of the sum of their sizes."""
    units = (A.shape[1] + 3) * np.finfo(np.float32).eps
    return units * (abs(alpha) * (abs(A) @ abs(B)) + abs(beta * C)) + 1e-30


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", GEMM)
def test_equals_numpy(name, size):
    rung = GEMM[name]
    A, B, C = operands(*size, rung.dtype)
    C = C.astype(rung.result_dtype)
    before = C.copy()
    a, b, c = (x.astype(np.float64) for x in (A, B, C))
    result, _ = rung.multiply(A, B, C, alpha=0.5, beta=3.0)
    assert (abs(result - (0.5 * a @ b + 3 * c)) <= bound(a, b, c, 0.5, 3)).all()
    np.testing.assert_array_equal(C, before)


@pytest.mark.parametrize("name", GEMM)
def test_transposes_and_no_c(name):
    rung = GEMM[name]
    A, B, _ = operands(40, 36, 12, rung.dtype)
    a, b = A.astype(np.float64), B.astype(np.float64)
    result, _ = rung.multiply(np.ascontiguousarray(A.T), np.ascontiguousarray(B.T),
                              transpose_a=True, transpose_b=True)
    assert (abs(result - a @ b) <= bound(a, b, np.zeros((40, 36)), 1, 0)).all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(GEMM)), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40),
       st.sampled_from([1.0, -2.5]), st.sampled_from([0.0, 0.75]))
def test_any_size(name, M, N, K, alpha, beta):
    rung = GEMM[name]
    A, B, C = (x.astype(np.float64) for x in operands(M, N, K, rung.dtype))
    result, _ = rung.multiply(A, B, C, alpha=alpha, beta=beta)
    assert (abs(result - (alpha * A @ B + beta * C)) <= bound(A, B, C, alpha, beta)).all()


@pytest.mark.parametrize("name", SCALAR)
def test_float64(name):
    rung = GEMM[name].astype("float64")
    A, B, C = operands(65, 35, 34, np.float64)
    result, _ = rung.multiply(A, B, C, alpha=-1.5, beta=0.25)
    np.testing.assert_allclose(result, -1.5 * A @ B + 0.25 * C, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", GEMM)
def test_beta_0_does_not_read_c(name):
    A, B, _ = operands(9, 6, 5, GEMM[name].dtype)
    result, _ = GEMM[name].multiply(A, B, np.full((9, 6), np.nan, np.float32))
    assert np.isfinite(result).all()


def test_refuses():
    rung = GEMM["naive_rows"]
    A, B, _ = operands(4, 5, 6, np.float32)
    with pytest.raises(ValueError, match="op"):
        rung.multiply(B, A[:3])
    with pytest.raises(ValueError, match="beta"):
        rung.multiply(A, B, beta=1)
    with pytest.raises(ValueError, match="C must"):
        rung.multiply(A, B, A)


@functools.cache
def counted(name):
    """The report of a product of whole tiles."""
    A, B, _ = operands(128, 256, 32, GEMM[name].dtype)
    return GEMM[name].multiply(A, B)[1]


def per_request(name, kind, line_text):
    """Sectors (global) or wavefronts (shared) per request on the one line with this text."""
    report = counted(name)
    (line,) = [n for n, text in enumerate(report.source.splitlines(), report.first_line)
               if line_text in text]
    row = report.counters.by_line[line]
    unit = {"global": "sectors", "shared": "wavefronts"}[kind.split("_")[0]]
    return row[f"{kind}_{unit}"] / row[f"{kind}_requests"]


@pytest.mark.parametrize(("name", "kind", "line", "expected"), [
    # 32 rows of A, one row's element of B: 33 sectors in two requests
    ("naive_rows", "global_load", "A[row, k] * B[k, col]", (32 + 1) / 2),
    # one element of A, 128 bytes of B: 1 + 4 sectors
    ("naive_columns", "global_load", "A[row, k] * B[k, col]", (1 + 4) / 2),
    ("coalesced", "global_load", "A[row, k] * B[k, col]", (1 + 4) / 2),
    # a warp reads a row of 128 bytes
    ("shared_tiled", "global_load", "else real(0)", None),
    ("shared_tiled", "shared_load", "As[y, k] * Bs[k, x]", 1),  # a broadcast and a row
    # a warp's lanes have one y: all read one word
    ("register_1d", "shared_load", "As[y * TM + i, k] * b", 1),
    # 2 y's, 64 words apart: one bank, two words
    ("register_2d", "shared_load", "a[i] = As[y * TM + i, k]", 2),
    # 16 x's at a stride of 8 words: 4 banks hold 4 words each
    ("register_2d", "shared_load", "b[j] = Bs[k, x * TN + j]", 4),
    # 16 rows of 32 bytes; 512 bytes side by side
    ("vectorised", "global_load", "four = load4(A,", 16),
    ("vectorised", "global_load", "four = load4(B,", 16),
    # rows 0..15, columns 0 and 4: 4 * 128 words apart, one bank
    ("vectorised", "shared_store", "As[a_k, a_row] = four.x", 2),
    # 16 bytes a lane: a quarter of a warp at a time. 8 lanes at a stride of 8 words: 2 turns each
    ("vectorised", "shared_load", "four = load4(Bs,", 8),
    ("linearised", "shared_load", "b[j] = Bs[k * TN + j, x]", 1),
    ("extra_column", "shared_load", "b[j] = Bs[k, x * TN + j]", 4),
    ("padded", "shared_store", "As[a_k, a_row] = four.x", 1),
    ("padded", "shared_load", "four = load4(Bs,", 4),  # 4 quarters, no conflict
    ("swizzled", "shared_store", "As[a_k, place] = four.x", 1),
    ("swizzled", "shared_load", "four = load4(As,", 4),
    ("warp_tiled", "shared_load", "four = load4(Bs,", 4),
])
def test_counters_by_hand(name, kind, line, expected):
    if expected is None:
        counters = counted(name).counters
        assert counters["global_load_sectors"] == 4 * counters["global_load_requests"]
        assert counters["global_load_requests"] == 2 * 128 * 256 * 32 / 32 / 32
        return
    assert per_request(name, kind, line) == expected


@pytest.mark.parametrize("name", ["padded", "swizzled"])
def test_no_bank_conflicts(name):
    """16 bytes a lane take 4 wavefronts at best, 4 bytes a lane one."""
    report = counted(name)
    for line, row in report.counters.by_line.items():
        best = 4 if "4(" in report.source.splitlines()[line - report.first_line] else 1
        for kind in ("shared_load", "shared_store"):
            assert row.get(f"{kind}_wavefronts", 0) == best * row.get(f"{kind}_requests", 0), line


def test_multiply_adds_are_those_of_the_product():
    """Each rung does M N K multiply-adds (of whole tiles), and 2 operations an element at last."""
    for name in GEMM:
        counters = counted(name).counters
        product = counters["tensor_flops"] if name == "tensor_core" else counters["flops"]
        ends = product - 2 * 128 * 256 * 32
        assert 0 <= ends <= 5 * 128 * 256, name


@pytest.mark.parametrize(("name", "N", "K"), [("vectorised", 132, 52), ("register_1d", 1000, 777),
                                              ("naive_rows", 96, 100), ("tensor_core", 72, 4100)])
def test_work_of_a_tile_is_that_of_a_launch(name, N, K):
    """Whatever the distance of rows that it is counted with: rows of A, B and C as they will be."""
    rung = GEMM[name]
    rows, columns, step = rung.tile
    work = rung.work(rows, N, K)
    A = np.zeros((rows, -(-K // 4) * 4), rung.dtype)[:, :3 * step]
    B, C = (np.zeros((n, -(-max(N, columns) // 4) * 4), dtype)[:, :columns]
            for n, dtype in ((3 * step, rung.dtype), (rows, rung.result_dtype)))
    one = rung.result_dtype.type(1)
    launched = rung[rung.grid(rows, columns), rung.block](A, B, C, one, one * 0).counters
    steps = -(-K // step)
    for unit in ("sectors", "lines", "requests"):
        told = work.counts[f"global_load_{unit}"] / steps
        assert launched[f"global_load_{unit}"] == pytest.approx(told * 3, rel=1e-9)
        assert launched[f"global_store_{unit}"] == work.counts[f"global_store_{unit}"]


def test_a_rung_is_a_kernel():
    A, B, _ = operands(32, 32, 32, np.float32)
    C = np.zeros((32, 32), np.float32)
    GEMM["naive_columns"][(1, 1), (32, 32)](A, B, C, np.float32(1), np.float32(0))
    np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)


def test_split_k_fills_the_device():
    """256 x 256 with long K: 16 tiles of 64 x 64 leave most of 84 SMs idle."""
    alone, split = (GEMM[name].predict(256, 256, 8192, "RTX-A6000") for name in
                    ("register_1d", "split_k"))
    assert split.time_s < alone.time_s / 2
