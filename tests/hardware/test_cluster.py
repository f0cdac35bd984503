"""Clusters and their collectives against published measurements; memories against known sums."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.hardware import (
    Cluster,
    Link,
    ai_core,
    collective_time,
    device,
    devices,
    memory_hierarchy,
)
from distlearn.hardware.collective_mesh import MESH_OPS
from distlearn.hardware.collective_traffic import TRAFFIC

DATA = Path(__file__).parents[1] / "data" / "gpu"

# GB/s that a public benchmark (limulidae) measured with 2 and with 8 cards of one node.
MEASURED = {
    ("Ascend-910B2", "all_gather"): (38, 149), ("Ascend-910B2", "all_reduce"): (18, 72),
    ("A800-SXM4-80GB", "all_gather"): (230, 173), ("A800-SXM4-80GB", "all_reduce"): (143, 89),
}


@pytest.mark.parametrize(("name", "op"), MEASURED)
def test_measured_bandwidth_is_a_usual_share_of_the_model(name, op):
    shares = [measured * collective_time(op, 1e9, group, Cluster(name))
              for group, measured in zip((2, 8), MEASURED[name, op], strict=True)]
    assert all(0.55 < share < 0.8 for share in shares)


@pytest.mark.parametrize("op", ["all_gather", "all_reduce"])
def test_a_mesh_of_8_is_four_times_as_fast_as_a_pair_and_a_switch_is_slower(op):
    def speedup(name):
        return collective_time(op, 1e9, 2, Cluster(name)) / collective_time(op, 1e9, 8,
                                                                            Cluster(name))

    assert speedup("Ascend-910B2") == pytest.approx(4)
    assert speedup("A800-SXM4-80GB") == pytest.approx(4 / 7)
    pair, eight = MEASURED["Ascend-910B2", op]
    assert eight / pair == pytest.approx(4, rel=0.03)


@pytest.mark.parametrize("op", MESH_OPS)
def test_mesh_moves_at_least_what_must_cross_its_links(op):
    # Each rank takes in at least (p - 1) / p n, over p - 1 links at once.
    cluster = Cluster("Ascend-910B3")
    least = 8e9 / 8 / 28e9 * (2 if op == "all_reduce" else 1)
    assert collective_time(op, 8e9, 8, cluster) >= least * (1 - 1e-12)
    assert collective_time(op, 8e9, 1, cluster) == 0


def test_across_nodes():
    cluster = Cluster("Ascend-910B2", 2, 8, inter_bytes_per_s=25e9)
    # Inside: two exchanges of n / 8 at 28 GB/s; between two nodes: two steps of n / 16 at 25 GB/s.
    assert collective_time("all_reduce", 16e9, 16, cluster) == pytest.approx(
        2 * 2e9 / 28e9 + 2 * 1e9 / 25e9)
    assert collective_time("all_to_all", 16e9, 16, cluster) == pytest.approx(
        1e9 / 28e9 + 8 * 1e9 / 25e9)
    with pytest.raises(ValueError, match="group = 12 ranks do not fill nodes of 8"):
        collective_time("all_reduce", 1e9, 12, cluster)
    with pytest.raises(ValueError, match="op = 'broadcast' has no mesh algorithm across nodes"):
        collective_time("broadcast", 1e9, 16, cluster, "mesh")


@given(st.sampled_from([op for op in TRAFFIC if op != "barrier"]), st.integers(2, 8))
def test_a_switch_is_the_plain_link(op, group):
    a100 = Cluster("A100-SXM4-80GB", intra_latency_s=3e-6)
    link = Link.from_bandwidth(300e9, latency_s=3e-6)
    assert collective_time(op, 1e6, group, a100) == collective_time(op, 1e6, group, link)


def test_topology_follows_the_links():
    kinds = {spec.name: Cluster(spec, devices_per_node=2).joined_by for spec in devices()}
    assert kinds["T4"] == kinds["RTX-4090"] == "host"
    assert kinds["Ascend-910B4"] == "mesh"
    assert kinds["H100-SXM5-80GB"] == kinds["Ascend-910C"] == "switch"
    assert Cluster("T4").intra.time(16e9) == pytest.approx(1)
    assert Cluster("H100-SXM5-80GB", 4).size == 32


@pytest.mark.parametrize(("arguments", "message"), [
    (("A100-SXM4-80GB", 0), "nodes must be an integer >= 1; got nodes=0"),
    (("A100-SXM4-80GB", 1, 2.0), "devices_per_node must be an integer >= 1; got"),
    (("Ascend-910B2", 1, 9), "a mesh of Ascend-910B2 joins at most 8 devices"),
    (("T4", 1, 2, "switch"), "topology = 'switch': T4 has no links"),
    (("T4", 1, 2, "ring"), "topology must be 'switch', .* got 'ring'"),
    (("T4", 2, 2, None, 0.0), "inter_bytes_per_s must be positive"),
])
def test_bad_clusters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Cluster(*arguments)


def test_bad_calls_are_named():
    with pytest.raises(ValueError, match="group = 9 is more than the 8 devices"):
        collective_time("all_reduce", 1, 9, Cluster("A100-SXM4-80GB"))
    with pytest.raises(ValueError, match="algorithm = 'mesh' needs a Cluster"):
        collective_time("all_reduce", 1, 8, Cluster("A100-SXM4-80GB"), "mesh")
    with pytest.raises(KeyError, match="no device is called"):
        Cluster("A1000")


@pytest.mark.parametrize("spec", devices(), ids=lambda spec: spec.name)
def test_memories_get_larger_and_slower_outwards(spec):
    levels = [level for level in memory_hierarchy(spec) if level.bytes_per_s is not None]
    if spec.compute_capability is not None:
        rates = [level.bytes_per_s for level in levels]
        assert rates == sorted(rates, reverse=True)
    for level in levels:
        assert level.count >= 1 and level.bytes_per_s > 0 and level.origin
    assert levels[-1].total_bytes is None


def test_a100_memories():
    registers, shared, l2, hbm, *_ = memory_hierarchy("A100-SXM4-80GB")
    assert (registers.total_bytes, shared.bytes) == (108 * 256 * 1024, 164 * 1024)
    assert l2.bytes_per_s == pytest.approx(7.2e12, rel=0.01)  # 2.3 times the V100's: whitepaper
    assert l2.bytes_per_s / memory_hierarchy("V100-SXM2-32GB")[2].bytes_per_s == \
        pytest.approx(2.3, abs=0.01)
    assert hbm.bytes == 80 * 2**30


def test_ai_cores_equal_the_platform_configurations():
    with (DATA / "ascend_core.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cores = {"910A": ai_core("Ascend-910A"), "910B": ai_core("Ascend-910B3")}
    names = {"L0A", "L0B", "L0C", "L1", "UB", "BT"}
    checked = 0
    for row in rows:
        if row["item"] in names | {"FB"}:
            assert cores[row["chip"]].buffers[row["item"]] == 1024 * int(row["value"])
            checked += 1
    assert checked == 12
    b = cores["910B"]
    steps = {row["item"]: row["value"] for row in rows}
    m, k, n = map(int, steps["cube_fp16_mkn"].split(","))
    assert b.cube_clocks(m, n, k, "float16") == 1 and b.fractal("fp16") == (m, k)
    m, k, n = map(int, steps["cube_int8_mkn"].split(","))
    assert b.cube_clocks(m, n, k, "int8") == 1 and b.fractal("int8") == (m, k)
    assert b.vector_cores == int(steps["vector_cores_per_cube_core"]) and b.split


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float32"])
def test_cube_clocks_give_the_catalogues_peak(dtype):
    spec = device("Ascend-910B2")
    flops = 2 * 4096**3 / ai_core(spec).cube_clocks(4096, 4096, 4096, dtype)
    assert flops * spec.cores * spec.clock_hz == pytest.approx(
        spec.peak_flops(dtype, "matrix"), rel=1e-3)


def test_no_ai_core():
    with pytest.raises(ValueError, match=r"T4 has no AI cores; Ascend-910A, .* have"):
        ai_core("T4")
    with pytest.raises(ValueError, match="dtype must be float16, bfloat16, float32 or int8"):
        ai_core("Ascend-910A").cube_clocks(16, 16, 16, "float64")
