"""The roofline's law, and kernels whose counts can be checked by running them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.hardware import Work, adam_step, devices, gemm, layer_norm, roofline

positive = st.floats(1.0, 1e18)
spec = st.sampled_from(devices())


@given(spec, positive, positive)
def test_time_is_the_longer_limit(device, flops, bytes):  # noqa: A002
    roof = roofline(device, flops, bytes, "float16")
    attained, peak = flops / roof.time_s, device.peak_flops("float16")
    slope = roof.intensity * device.memory_bytes_per_s
    assert attained == pytest.approx(min(peak, slope))
    assert (roof.bound == "compute") == (flops / peak >= bytes / device.memory_bytes_per_s)


@given(spec)
def test_limits_meet_at_the_ridge(device):
    ridge = roofline(device, 1, 1, "float16").ridge
    at = roofline(device, ridge * 2.0**30, 2.0**30, "float16")
    assert at.intensity == pytest.approx(ridge)
    assert at.time_s == pytest.approx(2.0**30 / device.memory_bytes_per_s)
    assert roofline(device, ridge * 2.0**31, 2.0**30, "float16").bound == "compute"
    assert roofline(device, ridge * 2.0**29, 2.0**30, "float16").bound == "memory"


def test_known_ridges():
    assert roofline("A100-SXM4-80GB", 1, 1, "bf16").ridge == pytest.approx(153, abs=0.1)
    assert roofline("H100-SXM5-80GB", 1, 1, "bf16").ridge == pytest.approx(295.2, abs=0.1)
    assert roofline("Ascend-910B2", 1, 1, "bf16").ridge == pytest.approx(221.2, abs=0.1)


def test_without_traffic_or_without_arithmetic():
    compute = roofline("A100-SXM4-80GB", 312e12, 0, "float16")
    assert (compute.time_s, compute.bound, compute.intensity) == (1.0, "compute", math.inf)
    copy = roofline("A100-SXM4-80GB", 0, 2039e9, "float16")
    assert (copy.time_s, copy.bound, copy.intensity) == (1.0, "memory", 0.0)


@pytest.mark.parametrize(("flops", "bytes", "message"), [
    (-1, 1, r"flops must be a finite number >= 0; got flops=-1"),
    (math.nan, 1, r"flops must be .* got flops=nan"),
    (1, math.inf, r"bytes must be .* got bytes=inf"),
    ("3", 1, r"flops must be .* got flops='3'"),
    (True, 1, r"flops must be .* got flops=True"),
    (0, 0, r"flops and bytes are both 0"),
])
def test_bad_work_is_named(flops, bytes, message):  # noqa: A002
    with pytest.raises(ValueError, match=message):
        roofline("A100-SXM4-80GB", flops, bytes, "float16")


def test_bad_device_and_dtype():
    with pytest.raises(KeyError, match="did you mean 'A100-SXM4-40GB' or 'A100-SXM4-80GB'"):
        roofline("A100", 1, 1, "float16")
    with pytest.raises(ValueError, match="dtype must be one of"):
        roofline("A100-SXM4-80GB", 1, 1, "half")


class Counted(np.ndarray):
    """An array that counts the FLOP of elementwise operations and sums done on it."""

    flops = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(x) for x in inputs]
        result = getattr(ufunc, method)(*plain, **kwargs)
        size = plain[0].size if method == "reduce" else np.size(result)
        Counted.flops += size
        return np.asarray(result).view(Counted)


def count(function, *arrays):
    Counted.flops = 0
    function(*(array.view(Counted) for array in arrays))
    return Counted.flops


def test_adam_counts_equal_running_it():
    n = 1000
    lr, eps = 1e-3, 1e-8  # with the bias corrections folded in, once per step

    def adam(w, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * (g * g)
        return w - lr * m / (np.sqrt(v) + eps)

    arrays = [np.ones(n, np.float32) for _ in range(4)]
    assert adam_step(n).flops == count(adam, *arrays)
    assert adam_step(n).bytes == sum(a.nbytes for a in arrays) + 3 * arrays[0].nbytes


def test_layer_norm_counts_equal_running_it_up_to_the_rows():
    rows, features = 8, 512

    def norm(x, gamma, beta):
        centred = x - np.add.reduce(x, axis=-1, keepdims=True) / features
        variance = np.add.reduce(centred * centred, axis=-1, keepdims=True) / features
        return centred * (1 / np.sqrt(variance + 1e-5)) * gamma + beta

    arrays = np.ones((rows, features)), np.ones(features), np.ones(features)
    per_row = 5  # two divisions, plus ε, square root, reciprocal
    assert layer_norm(rows, features).flops == count(norm, *arrays) - per_row * rows


def test_gemm_counts():
    m, n, k = 3, 4, 5
    products = sum(1 for _ in np.ndindex(m, n, k))
    assert gemm(m, n, k).flops == 2 * products
    arrays = [np.zeros(shape, np.float16) for shape in ((m, k), (k, n), (m, n))]
    assert gemm(m, n, k, np.float16).bytes == sum(a.nbytes for a in arrays)
    assert gemm(2, 2, 2).name == "GEMM 2" and gemm(m, n, k).name == "GEMM 3×4×5"
    assert isinstance(gemm(m, n, k), Work)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "4"])
def test_sizes_are_checked(size):
    with pytest.raises(ValueError, match="m must be an integer >= 1; got m="):
        gemm(size, 1, 1)
    with pytest.raises(ValueError, match="parameters must be an integer"):
        adam_step(size)


def test_work_of_every_kind_runs_on_every_device():
    for work in (gemm(1024, 1024, 1024), layer_norm(4096, 1024), adam_step(10**6)):
        for known in devices():
            assert roofline(known, *work[1:]).time_s > 0
