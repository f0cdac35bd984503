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
    rounded = f"{rate.unit} {rate.dtype}" in spec.doubts  # says how
    assert rate.peak_flops == pytest.approx(computed, rel=0.025 if rounded else 0.005)


# Bus width in bits and transfers per second: what the driver reports for these boards.
@pytest.mark.parametrize(("name", "bits", "transfers_per_s"), [
    ("V100-SXM2-32GB", 4096, 2 * 877e6),
    ("T4", 256, 2 * 5001e6),
    ("A100-SXM4-40GB", 5120, 2 * 1215e6),
    ("A100-SXM4-80GB", 5120, 2 * 1593e6),
    ("RTX-A6000", 384, 2 * 8001e6),
    ("RTX-4090", 384, 2 * 10501e6),
    ("H100-PCIe-80GB", 5120, 2 * 1593e6),
    ("H100-SXM5-80GB", 5120, 2 * 2619e6),
])
def test_memory_bandwidth_is_bus_width_times_transfer_rate(name, bits, transfers_per_s):
    assert device(name).memory_bytes_per_s == pytest.approx(bits / 8 * transfers_per_s, rel=0.003)


# Links per device x GB/s each way: NVLink 2 to 4 have 25 GB/s a link, 5 has 50, HCCS has 28.
@pytest.mark.parametrize(("name", "links", "each"), [
    ("V100-SXM2-32GB", 6, 25e9), ("A100-SXM4-80GB", 12, 25e9), ("A800-SXM4-80GB", 8, 25e9),
    ("H100-SXM5-80GB", 18, 25e9), ("H200-SXM-141GB", 18, 25e9), ("B200-SXM-180GB", 18, 50e9),
    ("RTX-A6000", 4, 14.0625e9),
    ("Ascend-910B2", 7, 28e9), ("Ascend-910B3", 7, 28e9), ("Ascend-910C", 14, 28e9)])
def test_link_bandwidth_is_links_times_one_link(name, links, each):
    assert device(name).link_bytes_per_s == links * each
    assert device(name).link_count == links


@pytest.mark.parametrize(("name", "lanes", "transfers_per_s"), [
    ("V100-SXM2-32GB", 16, 8e9), ("A100-SXM4-80GB", 16, 16e9), ("H100-SXM5-80GB", 16, 32e9),
    ("Ascend-910B2", 16, 16e9)])
def test_host_bandwidth_is_the_raw_pcie_rate(name, lanes, transfers_per_s):
    assert device(name).host_bytes_per_s == lanes * transfers_per_s / 8


@pytest.mark.parametrize(("name", "sold"), [
    ("Ascend-910B2", 376), ("Ascend-910B3", 313.3), ("Ascend-910C", 752)])
def test_ascend_is_sold_as_the_sum_of_cube_and_vector(name, sold):
    spec = device(name)
    total = spec.peak_flops("fp16", "matrix") + spec.peak_flops("fp16", "vector")
    assert total / 1e12 == pytest.approx(sold, abs=0.1)


def test_catalogue_holds_the_chips_the_course_speaks_of():
    names = {spec.name for spec in devices()}
    assert names >= {
        "V100-SXM2-32GB", "T4", "A100-SXM4-40GB", "A100-SXM4-80GB", "A800-SXM4-80GB", "RTX-A6000",
        "RTX-4090", "H100-SXM5-80GB", "H100-PCIe-80GB", "H20-SXM-96GB", "H200-SXM-141GB",
        "B200-SXM-180GB", "Ascend-910A", "Ascend-910B2", "Ascend-910B3", "Ascend-910B4",
        "Ascend-910C"}


# CUDA cores as the vendor counts them: float32 lanes, half of the FLOP per clock.
@pytest.mark.parametrize(("name", "cuda_cores"), [
    ("V100-SXM2-32GB", 5120), ("T4", 2560), ("A100-SXM4-40GB", 6912), ("RTX-A6000", 10752),
    ("RTX-4090", 16384), ("H100-SXM5-80GB", 16896), ("H100-PCIe-80GB", 14592)])
def test_cuda_cores_are_float32_lanes(name, cuda_cores):
    spec = device(name)
    assert spec.cores * spec.rate("float32", "vector").flop_per_clock / 2 == cuda_cores


def test_streaming_multiprocessors():
    a100 = device("A100-SXM4-80GB")
    assert a100.clock_hz == 1.41e9 and a100.sm.registers == 65536
    assert a100.sm.shared_bytes == 164 * 1024 and a100.sm.threads == 2048
    assert device("H100-SXM5-80GB").clock_hz == 1.98e9
    with pytest.raises(ValueError, match="Ascend-910B2 has no SMs"):
        _ = device("Ascend-910B2").sm
    held = device("RTX-A6000").occupancy(threads_per_block=1024, registers_per_thread=37,
                                         shared_bytes_per_block=8192)
    assert (held.blocks_per_sm, held.warps_per_sm, held.limiter) == (1, 32, "warps|registers")


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
        figures |= {name for name in ("l2_bytes_per_clock", "link_count")
                    if getattr(spec, name) is not None}
        assert set(spec.sources) == figures
        assert all(len(source) > 15 for source in spec.sources.values())
        assert set(spec.doubts) <= figures


def test_figures_are_positive_and_finite():
    for spec in devices():
        for value in (spec.cores, spec.l2_bytes, spec.memory_bytes, spec.memory_bytes_per_s,
                      spec.host_bytes_per_s):
            assert 0 < value < math.inf
        assert 0 <= spec.link_bytes_per_s < math.inf
        assert (spec.link_bytes_per_s == 0) == (spec.link_type == "none")


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
    ("zzz", "devices are V100-SXM2-32GB, T4, A100-SXM4-40GB"),
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
