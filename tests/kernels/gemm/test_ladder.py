"""Every rung against numpy: any size, transposes, alpha and beta; counters against hand counts."""

import numpy as np
import pytest

from distlearn.kernels.gemm import GEMM

SIZES = [(1, 1, 1), (33, 65, 40), (70, 130, 17)]
SCALAR = [name for name, rung in GEMM.items() if not rung.aligned]


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


@pytest.mark.parametrize("name", SCALAR)
def test_float64(name):
    rung = GEMM[name].astype("float64")
    A, B, C = operands(65, 35, 34, np.float64)
    result, _ = rung.multiply(A, B, C, alpha=-1.5, beta=0.25)
    np.testing.assert_allclose(result, -1.5 * A @ B + 0.25 * C, rtol=0, atol=1e-10)


def test_beta_0_does_not_read_c():
    A, B, C = operands(32, 32, 32, np.float32)
    result, _ = GEMM["naive_rows"].multiply(A, B, np.full_like(C, np.nan))
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


def per_request(name, kind, line_text, size=(128, 128, 128)):
    """Sectors (global) or wavefronts (shared) per request on the one line with this text."""
    A, B, _ = operands(*size, GEMM[name].dtype)
    _, report = GEMM[name].multiply(A, B)
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
])
def test_counters_by_hand(name, kind, line, expected):
    if expected is None:
        A, B, _ = operands(128, 128, 128, np.float32)
        counters = GEMM[name].multiply(A, B)[1].counters
        assert counters["global_load_sectors"] == 4 * counters["global_load_requests"]
        assert counters["global_load_requests"] == 2 * 128**3 / 32 / 32
        return
    assert per_request(name, kind, line) == expected
