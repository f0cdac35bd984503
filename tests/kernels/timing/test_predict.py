"""The time model: laws, hand counts, and a measured ladder of kernels."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.hardware import device
from distlearn.kernels import KernelError, kernels_from_text, launch, simt
from distlearn.kernels.counters import NAMES, Flow
from distlearn.kernels.gemm import GEMM
from distlearn.kernels.memory import bind
from distlearn.kernels.timing import Resources, Work, predict, resources
from distlearn.kernels.timing.network import Station, alternating, throughput
from distlearn.kernels.timing.predict import GLOBAL_LATENCY, ISSUE_SHARE, SHARED_LATENCY

A6000 = "RTX-A6000"
PUBLISHED = {name: rung.published[A6000] for name, rung in GEMM.items() if rung.published}

KERNELS = kernels_from_text('''
def copy(out, a):
    i = cuda.grid(1)
    out[i] = a[i]

def twice(low, whole, high):
    i = cuda.grid(1)
    before = low[i]
    low[i] = before * float32(2.0)
    high[i] = whole[i]
    if whole[i] == before:
        high[i] = before * before

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
    """All eleven, though three of them were measured within 3 %.

    The registers are those of our rungs. Some of the published kernels need others: as nvcc 13.0
    compiles `warp_tiled`, three blocks fit on an SM where two of ours do (by the model 4 % faster,
    and no longer 0.1 % from `deeper`), of `register_2d` two where one does (31 % faster, and out of
    order).
    """
    assert len(PUBLISHED) == 11
    assert (sorted(PUBLISHED, key=lambda name: ladder[name].gflops)
            == sorted(PUBLISHED, key=PUBLISHED.get))


def test_published_figures_closer_than_asked(ladder):
    for name, told in ladder.items():
        assert 0.9 < told.gflops / PUBLISHED[name] < 1.2, name


def test_issue_share_is_what_the_library_leaves():
    """NVIDIA's product on the same card, M = N = K = 4096: no rung of the ladder.

    If all clocks that are left were used by the instructions of a 128 x 128 tile.
    """
    work = GEMM["vectorised"].work(4096, 4096, 4096)
    multiply_adds = work.counts["flops"] / 64
    issued = predict(work, GEMM["vectorised"].needs, A6000).pipes["issue"] * 4 * ISSUE_SHARE
    reached = 23249.6e9 / device(A6000).peak_flops("float32", "vector")
    assert reached / (multiply_adds / issued) == pytest.approx(ISSUE_SHARE, abs=0.01)


@pytest.mark.parametrize(("size", "measured"), [
    (128, 209.2), (256, 888.1), (512, 4590.9), (1024, 17075.9), (2048, 44766.6), (4096, 47180.7)])
def test_warp_tiles_measured_on_another_chip(size, measured):
    """An RTX 4090, most sizes with few blocks: github.com/siboehm/SGEMM_CUDA, issue 21.

    The model knows nothing of the microseconds that a launch takes: the smallest took 20.
    """
    told = GEMM["warp_tiled"].predict(size, size, size, "RTX-4090")
    assert told.gflops / measured == pytest.approx(1, abs=0.15 if size > 256 else 0.35)


@given(st.integers(1, 64), st.floats(0.1, 1e6), st.floats(0, 1e6))
def test_network_between_its_bounds(customers, service, wait):
    """Little's law: a customer alone never queues, and the server never does more than it can."""
    cycle = customers / throughput(customers, [Station(service)], wait)
    assert cycle >= max(customers * service, wait + service) * (1 - 1e-3)
    assert cycle <= (wait + customers * service) * (1 + 1e-9)


@pytest.mark.parametrize(("customers", "service", "wait"), [(2, 10, 90), (8, 5, 40), (30, 3, 50)])
def test_fixed_point_near_the_exact_recursion(customers, service, wait):
    """Reiser and Lavenberg's recursion over the number of customers, and the repairman's chain."""
    queue, cycle = 0.0, 0.0
    for n in range(1, customers + 1):
        response = service * (1 + queue)
        cycle = wait + response
        queue = n * response / cycle
    exact = customers / cycle
    assert throughput(customers, [Station(service)], wait) == pytest.approx(exact, rel=0.04)
    assert alternating([0, *[1 / service] * customers], wait) == pytest.approx(exact)


@given(st.integers(1, 40), st.floats(0.1, 10))
def test_fork_and_join_near_the_exact_chain(customers, second):
    """A customer has two servers work for it at the same time, and comes back when both are done.

    The lead of the first server over the second is a birth and death chain from -N to N, which
    stays at each lead in a geometric ratio.
    """
    weights = np.power(float(second), np.arange(-customers, customers + 1))
    exact = 1 - weights[-1] / weights.sum()  # the first rests if all customers wait for the second
    found = throughput(customers, [Station(1)], beside=[Station(second)])
    assert found == pytest.approx(exact, rel=0.02)
    if second == 1:
        assert found == pytest.approx(2 * customers / (2 * customers + 1))


def test_copies_do_not_queue_for_each_other():
    """Four customers, each with a server of its own, and sixteen."""
    assert throughput(4, [Station(10, 4)]) == pytest.approx(4 / 10)
    assert throughput(16, [Station(10, 4)]) == pytest.approx(4 / 10)
    assert throughput(4, [Station(10, 4)], 30) == pytest.approx(4 / 40)


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


def test_a_warp_alone_by_hand():
    """Its accesses go from pipe to pipe, beside its arithmetic; the later counts, then it waits."""
    work = one(threads=32, round_trips=2, flops=32 * 1000.0, barrier_warps=16.0,
               shared_load_requests=100.0, shared_load_wavefronts=3000.0)
    told = predict(work, Resources(32, 0), A6000)
    issue = (500 + 100 + 16) / 0.65  # 500 multiply-adds; one scheduler of four has the warp
    # 8 addresses a clock in its quarter, 16 load/store units in the SM
    accesses = 100 * 4 + 100 * 2 + 3000 + 100 / 8 * SHARED_LATENCY
    later = issue + accesses - 1 / (1 / issue + 1 / accesses)
    assert told.pipes["arithmetic"] == 125  # 256 FLOP a clock
    assert told.pipes["address"] == 100
    assert told.pipes["load/store"] == 200
    assert told.wait_clocks == 2 * GLOBAL_LATENCY + 2 * 16 * SHARED_LATENCY
    assert told.time_s == pytest.approx((later + told.wait_clocks) / 1.8e9)
    assert told.bound == "shared"


def test_warps_that_rest():
    """Half of a block's warps at a time: slower than all, at most by half."""
    work = one(flops=1e6, barrier_warps=8.0, shared_load_requests=800.0,
               shared_load_wavefronts=3200.0)
    all_, half = (predict(replace(work, busy=busy), Resources(32, 0), A6000).time_s
                  for busy in ({8: 1.0}, {4: 0.5, 8: 0.5}))
    assert all_ < half < 1.5 * all_


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


def test_views_are_predicted_as_they_lie():
    """Elements 32 bytes apart: a warp's load takes 32 sectors, its store 4, of 32 bytes each."""
    columns, rows = np.zeros((256, 8), np.float32), np.zeros((8, 256), np.float32, order="F")
    for view in (columns[:, 3], columns.reshape(-1)[5::8], rows[2]):
        report = launch(KERNELS["copy"], 2, 128, np.zeros(256, np.float32), view, device=A6000)
        assert report.counters["global_load_sectors"] == 256
        assert report.prediction.pipes["l2"] == 4 * (32 + 4) * 32 / 64  # of a block's 4 warps
        assert report.prediction.requested_bytes == 8 * (32 + 4) * 32


@pytest.mark.parametrize("name", ["coalesced", "shared_tiled", "register_1d"])
def test_products_of_views_are_predicted_as_they_lie(name):
    """A rung's prediction, of one tile, against that of the whole launch on the same matrices."""
    rung, n = GEMM[name], 64
    one, wide = np.zeros((n, n), np.float32), np.zeros((2 * n, 4 * n), np.float32)
    times = {}
    for what, a, b in (("rows", one, one), ("columns", one.T, np.asfortranarray(one)),
                       ("part", wide[:n, n:2 * n], one), ("apart", one, wide[:n, ::4]),
                       ("backwards", wide[n - 1::-1, :2 * n:2], one)):
        C, report = rung.multiply(a, b, device=A6000)
        whole = launch(rung, rung.grid(n, n), rung.block, a, b, C, np.float32(1), np.float32(0),
                       device=A6000, needs=rung.needs).prediction
        assert report.prediction.pipes == pytest.approx(whole.pipes), what
        times[what] = report.prediction.time_s
        assert times[what] == pytest.approx(whole.time_s), what
    assert times["rows"] == times["part"] == rung.predict(n, n, n, A6000).time_s
    assert times["columns"] > times["rows"]


def test_prediction_runs_on_memory_of_its_own():
    """Views that overlap still do: a thread that sees no change would multiply once more."""
    whole = np.arange(64, dtype=np.float32) + 1
    low, high = whole[:32], whole[32:]
    report = launch(KERNELS["twice"], 1, 32, low, whole, high, device=A6000)
    np.testing.assert_array_equal(whole, np.tile(np.arange(2, 66, 2), 2))
    assert report.prediction.flops == report.counters["flops"] == 32


def test_round_trips_and_double_buffering():
    shape = (2, 4, 64)
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    waits = {}
    for name in ("staged", "ahead"):
        out = np.zeros(shape, np.float32)
        waits[name] = launch(KERNELS[name], 2, 64, out, a, device=A6000).prediction.wait_clocks
        np.testing.assert_array_equal(out, a[:, :, ::-1])
    assert waits["staged"] == 4 * GLOBAL_LATENCY + 2 * 8 * SHARED_LATENCY
    assert waits["ahead"] == 1 * GLOBAL_LATENCY + 2 * 5 * SHARED_LATENCY


def compiled(kernel, threads, *arguments):
    """Counters and flow of one block as the time model takes them."""
    flow = Flow()
    bound = bind(kernel.parameters, arguments, kernel.name)
    return simt.run(kernel, (1, 1, 1), (threads, 1, 1), bound, flow=flow).freeze(), flow


def test_neighbouring_shared_reads_are_merged():
    """32 lanes read 16 bytes each, 512 in a row: 4 wavefronts, where four reads had 4 each."""
    a = np.zeros((8, 128), np.float32)
    report = launch(KERNELS["reads"], 1, 32, np.zeros((8, 32), np.float32), a, device=A6000)
    assert report.counters["shared_load_wavefronts"] == 8 * 16
    sectors = report.counters["global_load_sectors"] + report.counters["global_store_sectors"]
    assert report.prediction.pipes["shared"] == (
        8 * 4 + report.counters["shared_store_wavefronts"] + sectors / 4)
    assert report.prediction.pipes["tags"] == (
        report.counters["global_load_lines"] + report.counters["global_store_lines"])


@pytest.mark.parametrize(("rung", "loads"), [
    ("register_1d", 24), ("register_2d", 32), ("vectorised", 32), ("linearised", 80),
    ("extra_column", 38)])
def test_shared_loads_as_nvcc_compiles_them(rung, loads):
    """LDS instructions of a warp in 8 steps along K, counted in nvcc 13.0's code for sm_86.

    Of the published kernels that these are built like; there 8 more of `register_2d`'s, which its
    registers have no room to keep.
    """
    steps = 10
    gemm = GEMM[rung]
    work = gemm.work(gemm.tile[0], gemm.tile[1], 8 * steps)
    assert work.counts["shared_load_requests"] == work.warps * steps * loads


def test_lanes_in_pairs_take_half_the_clocks():
    """16 bytes a lane: 4 clocks; 2 if lanes n and n ^ 1, or n and n ^ 2, read the same."""
    kernels = kernels_from_text('''
def pairs(out, a):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    for k in range(8):
        s[k * 32 + t] = a[k * 32 + t]
    cuda.syncthreads()
    out[t] = load4(s, t * 4).x
    out[t] = load4(s, t // 2 * 4).x
    out[t] = load4(s, (t // 4 * 2 + t % 2) * 4).x
    out[t] = load4(s, t // 16 * 8).x
    out[t] = load4(s, t % 16 * 4).x
''')
    counters, _ = compiled(kernels["pairs"], 32, np.zeros(32, np.float32),
                           np.zeros(256, np.float32))
    found = [row["shared_load_wavefronts"] for row in counters.by_line.values()
             if "shared_load_wavefronts" in row]
    assert found == [4, 2, 2, 2, 4]


def test_half_of_the_warps_at_a_time():
    """`double_buffered`: in two of three parts 4 of 8 warps multiply, in one all of them."""
    work = GEMM["double_buffered"].work(4096, 4096, 4096)
    assert set(work.busy) == {4, 8}
    assert work.busy[8] == pytest.approx(0.5, abs=0.03)
    assert work.round_trips == 1  # the first tiles
    assert work.hidden_round_trips == 2 * 4096 / 32 - 1  # both halves' tiles; the last are none


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
            if row["target"] == "8.0":
                assert GEMM[row["rung"]].needs.registers_per_thread == int(row["registers"])


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
