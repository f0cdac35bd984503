"""The time model: laws, hand counts, and a measured ladder of kernels."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.hardware import device
from distlearn.kernels import KernelError, kernels_from_text, launch
from distlearn.kernels.counters import NAMES
from distlearn.kernels.gemm import GEMM
from distlearn.kernels.timing import Resources, Work, predict, resources
from distlearn.kernels.timing.predict import GLOBAL_LATENCY, SHARED_LATENCY, _closed_network

A6000 = "RTX-A6000"
PUBLISHED = {name: rung.published[A6000] for name, rung in GEMM.items() if rung.published}

KERNELS = kernels_from_text('''
def copy(out, a):
    i = cuda.grid(1)
    out[i] = a[i]

def staged(out, a):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for k in range(4):
        s[t] = a[cuda.blockIdx.x, k, t]
        cuda.syncthreads()
        out[cuda.blockIdx.x, k, t] = s[63 - t]
        cuda.syncthreads()

def ahead(out, a):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = a[cuda.blockIdx.x, 0, t]
    cuda.syncthreads()
    for k in range(4):
        later = a[cuda.blockIdx.x, (k + 1) % 4, t]
        out[cuda.blockIdx.x, k, t] = s[k % 2, 63 - t]
        s[(k + 1) % 2, t] = later
        cuda.syncthreads()

def dynamic(out):
    s = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    s[t] = float32(t)
    cuda.syncthreads()
    out[t] = s[31 - t]

def reads(out, a):
    s = cuda.shared.array((8, 128), float32)
    r = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for k in range(8):
        for n in range(4):
            s[k, n * 32 + t] = a[k, n * 32 + t]
    cuda.syncthreads()
    for k in range(8):
        for j in range(4):
            r[j] = s[k, t * 4 + j]
        out[k, t] = r[0] + r[1] + r[2] + r[3]
''')


@pytest.fixture(scope="module")
def ladder():
    return {name: GEMM[name].predict(4096, 4096, 4096, A6000) for name in PUBLISHED}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_ladder_within_a_factor(name, ladder):
    assert 1 / 1.5 < ladder[name].gflops / PUBLISHED[name] < 1.5


def test_published_order(ladder):
    """All rungs but three.

    `linearised` and `extra_column` trade bank conflicts for instructions: by the counters the first
    gains and the second loses, measured were a tenth less than before and as much as before. The
    published double buffering is another one than ours (see its file).
    """
    names = [name for name in PUBLISHED
             if name not in ("linearised", "extra_column", "double_buffered")]
    assert sorted(names, key=lambda n: ladder[n].gflops) == sorted(names, key=PUBLISHED.get)
    assert len(names) == 8


@given(st.integers(1, 64), st.floats(0.1, 1e6), st.floats(0, 1e6))
def test_closed_network_between_its_bounds(customers, service, wait):
    cycle = _closed_network(customers, service, wait)
    assert cycle >= max(customers * service, wait + service) * (1 - 1e-9)
    assert cycle <= (wait + customers * service) * (1 + 1e-9)


def one(blocks=1, threads=256, round_trips=0.0, memory_bytes=0.0, **counts):
    return Work(blocks, threads, {name: counts.get(name, 0.0) for name in NAMES}, round_trips, 0.0,
                memory_bytes)


@given(st.integers(1, 2000), st.integers(0, 100))
def test_more_blocks_never_take_less(blocks, more):
    needs, counts = Resources(32, 0), {"flops": 1e6, "barrier_warps": 80.0}
    few = predict(one(blocks, round_trips=3, **counts), needs, A6000).time_s
    assert predict(one(blocks + more, round_trips=3, **counts), needs, A6000).time_s >= few


def test_wave_quantisation():
    """84 SMs, 6 blocks each: block 505 costs what a block alone costs."""
    needs, spec = Resources(32, 0), device(A6000)
    held = spec.occupancy(threads_per_block=256, registers_per_thread=32).blocks_per_sm
    slots = held * spec.cores
    work = {"flops": 1e6, "barrier_warps": 8.0, "round_trips": 2}
    times = [predict(one(n, **work), needs, A6000).time_s for n in (1, slots, slots + 1, slots * 2)]
    assert times[2] == pytest.approx(times[1] + times[0])
    assert times[3] == pytest.approx(2 * times[1])


def test_a_block_alone_by_hand():
    work = one(round_trips=2, flops=256 * 1000.0, barrier_warps=16.0, shared_load_requests=100.0,
               shared_load_wavefronts=3000.0)
    told = predict(work, Resources(32, 0), A6000)
    clocks = 2 * GLOBAL_LATENCY + 16 / 8 * SHARED_LATENCY + 3000
    assert told.pipes["arithmetic"] == 1000  # 256 FLOP a clock
    assert told.time_s == pytest.approx(clocks / 1.8e9)


def test_copying_is_bound_by_memory():
    a = np.zeros(2**18, np.float32)
    report = launch(KERNELS["copy"], 2**10, 256, np.zeros_like(a), a, device="A100-SXM4-80GB")
    assert report.prediction.memory_s == pytest.approx(2 * a.nbytes / 2039e9)
    assert "GFLOP/s" in str(report) and "A100-SXM4-80GB" in str(report)
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in str(report)


def test_what_is_not_used_is_not_carried():
    a, out = np.zeros(2**18, np.float32), np.zeros(256, np.float32)
    told = launch(KERNELS["copy"], 1, 256, out, a, device="A100-SXM4-80GB").prediction
    assert told.memory_s == pytest.approx(2 * 1024 / 2039e9)


def test_round_trips_and_double_buffering():
    shape = (2, 4, 64)
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    waits = {}
    for name in ("staged", "ahead"):
        out = np.zeros(shape, np.float32)
        waits[name] = launch(KERNELS[name], 2, 64, out, a, device=A6000).prediction.wait_clocks
        np.testing.assert_array_equal(out, a[:, :, ::-1])
    assert waits["staged"] == 4 * GLOBAL_LATENCY + 8 * SHARED_LATENCY
    assert waits["ahead"] == 1 * GLOBAL_LATENCY + 5 * SHARED_LATENCY


def test_neighbouring_shared_reads_are_merged():
    """32 lanes read 16 bytes each, 512 in a row: 4 wavefronts, where four reads had 4 each."""
    a = np.zeros((8, 128), np.float32)
    report = launch(KERNELS["reads"], 1, 32, np.zeros((8, 32), np.float32), a, device=A6000)
    assert report.counters["shared_load_wavefronts"] == 8 * 16
    rest = report.counters["shared_store_wavefronts"] + report.counters["global_load_lines"] \
        + report.counters["global_store_lines"]
    assert report.prediction.pipes["shared"] == 8 * 4 + rest


def test_registers_against_nvcc():
    table = Path(__file__).parents[2] / "data" / "gpu" / "nvcc_registers.csv"
    rows = csv.DictReader(table.read_text().splitlines())
    twins = {"naive": "naive_columns", "tiled": "shared_tiled", "regtile": "register_2d"}
    for row in rows:
        estimate = resources(GEMM[twins[row["kernel"]]]).registers_per_thread
        assert 1 / 1.6 < estimate / int(row["registers"]) < 1.6


def test_registers_against_ptxas():
    """Of the ladder itself. Fragments are left out: PTX makes two of each that is loaded."""
    table = Path(__file__).parents[2] / "data" / "gpu" / "ladder_registers.csv"
    for row in csv.DictReader(table.read_text().splitlines()):
        if GEMM[row["rung"]].dtype == np.float32:
            estimate = resources(GEMM[row["rung"]]).registers_per_thread
            assert 1 / 1.3 < estimate / int(row["registers"]) < 1.3, row


def test_dynamic_shared_memory_counts():
    out = np.zeros(32, np.float32)
    launch(KERNELS["dynamic"], 1, 32, out, shared_bytes=128)
    np.testing.assert_array_equal(out, np.arange(32)[::-1])
    report = launch(KERNELS["dynamic"], 1, 32, out, shared_bytes=40_000, device=A6000)
    assert report.prediction.occupancy.limiter == "shared"
    with pytest.raises(KernelError, match="shared_bytes"):
        KERNELS["dynamic"][1, 32, 0, -4](out)


def test_refuses():
    with pytest.raises(KeyError, match="A6000"):
        launch(KERNELS["copy"], 1, 1, np.zeros(1), np.zeros(1), device="A6000")
    with pytest.raises(ValueError, match="does not fit"):
        predict(one(), Resources(32, 200_000), A6000)
    with pytest.raises(ValueError, match="no SMs"):
        predict(one(), Resources(32, 0), "Ascend-910B2")
