"""The catalogue against arithmetic and against figures known from elsewhere."""

import itertools
import math

import numpy as np
import pytest

from distlearn.hardware import device, devices, dtype_name, itemsize

RATES = [(spec, rate) for spec in devices() for rate in spec.rates]


@pytest.mark.parametrize(
    ("spec", "rate"), RATES, ids=[f"{s.name} {r.unit} {r.dtype}" for s, r in RATES])
def test_published_peak_is_cores_times_clock_times_flop_per_clock(spec, rate):
    computed = spec.cores * rate.clock_hz * rate.flop_per_clock
    assert rate.peak_flops == pytest.approx(computed, rel=0.005)


# Bus width in bits and transfers per second: what the driver reports for these boards.
@pytest.mark.parametrize(("name", "bits", "transfers_per_s"), [
    ("A100-SXM4-80GB", 5120, 2 * 1593e6),
    ("H100-SXM5-80GB", 5120, 2 * 2619e6),
])
def test_memory_bandwidth_is_bus_width_times_transfer_rate(name, bits, transfers_per_s):
    assert device(name).memory_bytes_per_s == pytest.approx(bits / 8 * transfers_per_s, rel=0.001)


# Links per device x GB/s each way: NVLink 3 and 4 have 25 GB/s a link, an HCCS mesh link has 28.
@pytest.mark.parametrize(("name", "links", "each"), [
    ("A100-SXM4-80GB", 12, 25e9), ("H100-SXM5-80GB", 18, 25e9), ("Ascend-910B2", 7, 28e9)])
def test_link_bandwidth_is_links_times_one_link(name, links, each):
    assert device(name).link_bytes_per_s == links * each


@pytest.mark.parametrize(("name", "lanes", "transfers_per_s"), [
    ("A100-SXM4-80GB", 16, 16e9), ("H100-SXM5-80GB", 16, 32e9), ("Ascend-910B2", 16, 16e9)])
def test_host_bandwidth_is_the_raw_pcie_rate(name, lanes, transfers_per_s):
    assert device(name).host_bytes_per_s == lanes * transfers_per_s / 8


def test_ascend_is_sold_as_the_sum_of_cube_and_vector():
    spec = device("Ascend-910B2")
    total = spec.peak_flops("fp16", "matrix") + spec.peak_flops("fp16", "vector")
    assert total / 1e12 == pytest.approx(376, abs=0.05)


def test_tensor_cores_double_when_the_operands_halve():
    for name, chain in (("A100-SXM4-80GB", ("tf32", "float16", "int8")),
                        ("H100-SXM5-80GB", ("tf32", "bfloat16", "float8"))):
        peaks = [device(name).peak_flops(dtype, "matrix") for dtype in chain]
        assert [b / a for a, b in itertools.pairwise(peaks)] == pytest.approx([2, 2],
                                                                                      rel=1e-3)


def test_every_figure_has_a_source():
    for spec in devices():
        figures = {"cores", "l2_bytes", "memory_bytes", "memory_type", "memory_bytes_per_s",
                   "link_type", "link_bytes_per_s", "host_type", "host_bytes_per_s"}
        figures |= {f"{rate.unit} {rate.dtype}" for rate in spec.rates}
        if spec.compute_capability is not None:
            figures.add("compute_capability")
        assert set(spec.sources) == figures
        assert all(len(source) > 15 for source in spec.sources.values())
        assert set(spec.doubts) <= figures


def test_figures_are_positive_and_finite():
    for spec in devices():
        for value in (spec.cores, spec.l2_bytes, spec.memory_bytes, spec.memory_bytes_per_s,
                      spec.link_bytes_per_s, spec.host_bytes_per_s):
            assert 0 < value < math.inf


def test_names_are_unique_and_found_in_any_case():
    names = [spec.name for spec in devices()]
    assert len({name.lower() for name in names}) == len(names)
    for name in names:
        assert device(name.lower()) is device(name)


def test_devices_are_values():
    a100 = device("A100-SXM4-80GB")
    assert hash(a100) == hash(device("A100-SXM4-80GB"))
    with pytest.raises(AttributeError):
        a100.cores = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        a100.sources["cores"] = "me"  # type: ignore[index]


@pytest.mark.parametrize(("name", "expected"), [
    ("A100-SXM-80GB", "'A100-SXM4-80GB'"),
    ("h100", "'H100-SXM5-80GB'"),
    ("910B2", "'Ascend-910B2'"),
    ("zzz", "devices are A100-SXM4-80GB, H100-SXM5-80GB, Ascend-910B2"),
    ("", "devices are"),
])
def test_unknown_device_lists_near_matches(name, expected):
    with pytest.raises(KeyError) as caught:
        device(name)
    text = str(caught.value)
    assert text.startswith(f"no device is called {name!r}; ")
    assert expected in text


def test_fastest_unit_is_the_default_and_missing_rates_are_named():
    a100 = device("A100-SXM4-80GB")
    assert a100.rate("float64").unit == "matrix"
    assert a100.peak_flops("float64", "vector") == 9.7e12
    with pytest.raises(ValueError, match=r"A100-SXM4-80GB has no rate for float8; it has float64"):
        a100.rate("fp8")
    with pytest.raises(ValueError, match="has no vector rate for tf32; it has float64, float32"):
        a100.rate("tf32", "vector")
    with pytest.raises(ValueError, match=r"unit must be .* got 'tensor'"):
        a100.rate("float16", "tensor")


@pytest.mark.parametrize("dtype", ["float16", "fp16", np.float16, np.dtype("float16")])
def test_dtype_spellings(dtype):
    assert dtype_name(dtype) == "float16"
    assert itemsize(dtype) == np.dtype("float16").itemsize


@pytest.mark.parametrize("dtype", ["half", "", None, 16, np.int64])
def test_unknown_dtype(dtype):
    with pytest.raises(ValueError, match=r"dtype must be one of float64, .* got "):
        dtype_name(dtype)
