"""Formulas and single figures printed in papers, over grids of sizes and times."""

from __future__ import annotations

from itertools import takewhile

import pytest

from distlearn.pipeline import Costs, build, simulate

TIMES = [(4.0, 4.0, 4.0, 0.0), (3.0, 4.0, 2.0, 0.5), (2.5, 3.0, 1.25, 0.25)]  # F, I, W, transfer
UNIT = Costs(F=1, I=1, W=1)


@pytest.mark.parametrize(("F", "I", "W", "c"), TIMES)
@pytest.mark.parametrize("p", [2, 4, 8])
def test_zero_bubble_h2_with_transfers(p: int, F: float, I: float, W: float, c: float) -> None:
    """(p-1)(F+I+2c-2W) within the longest span: an assertion in the authors' script."""
    costs = Costs(F=F, I=I, W=W, comm=c)
    timeline = simulate(build("zb_h2", p, 4 * p), costs)
    idle = timeline.longest_span - min(timeline.busy)
    assert idle == pytest.approx((p - 1) * (F + I + 2 * c - 2 * W), abs=1e-9)


@pytest.mark.parametrize("p", [2, 4, 8])
def test_zero_bubble_h2_memory_of_each_stage(p: int) -> None:
    """Section 2.3: stage i (from 1) keeps (2p-2i+1) M_B + (2i-2) M_W."""
    MB, MW = 5.0, 2.0
    timeline = simulate(build("zb_h2", p, 4 * p),
                        Costs(F=1, I=1, W=1, activation=MB, activation_after_I=MW))
    assert timeline.peak_bytes == tuple(
        (2 * p - 2 * i + 1) * MB + (2 * i - 2) * MW for i in range(1, p + 1))


@pytest.mark.parametrize(("p", "m"), [(p, m) for p in (2, 4, 8) for m in range(1, p + 1)])
def test_zero_bubble_appendix_h(p: int, m: int) -> None:
    """For m <= p: 1F1B (m+p-1)(F+I+W); zero bubble (m+p-1)(F+I)+W."""
    for F, I, W, _ in TIMES:
        costs = Costs(F=F, I=I, W=W)
        assert simulate(build("1f1b", p, m), costs).makespan == (m + p - 1) * (F + I + W)
        assert simulate(build("zb_h1", p, m), costs).makespan == (m + p - 1) * (F + I) + W


@pytest.mark.parametrize(("D", "N", "pipes", "slots"), [
    (4, 4, 2, 10), (4, 8, 2, 18), (4, 12, 2, 26), (4, 16, 2, 34), (8, 8, 2, 22), (8, 16, 2, 38),
    (4, 4, 4, 8), (8, 8, 4, 18), (8, 16, 4, 34), (8, 24, 4, 50), (8, 32, 4, 66)])
def test_chimera_slots(D: int, N: int, pipes: int, slots: int) -> None:
    """The authors' generator, F = B."""
    assert simulate(build("chimera", D, N, directions=pipes), Costs(F=1, B=1)).makespan == slots


def test_chimera_ratios_with_longer_backwards() -> None:
    """B = 2F: .25, .200, .172 at N = 4, 8, 16; 1F1B has .158 at N = 16."""
    ratios = [round(simulate(build("chimera", 4, N)).bubble_fraction, 3) for N in (4, 8, 16)]
    assert ratios == [0.25, 0.2, 0.172]
    assert round(simulate(build("1f1b", 4, 16)).bubble_fraction, 3) == 0.158


@pytest.mark.parametrize(("p", "m", "time"), [(4, 8, 26), (6, 12, 40), (8, 20, 66)])
def test_dualpipe_figures(p: int, m: int, time: int) -> None:
    """README's cases: F = I = W = 1, a pair as long as its parts."""
    timeline = simulate(build("dualpipe", p, m), UNIT)
    assert timeline.makespan == time
    assert max(timeline.peak_activations) == p + 1
    half = simulate(build("dualpipe_v", p // 2, m // 2), UNIT)  # DualPipeV p=4, m=10 the last
    assert half.makespan - half.ideal == p - 2


@pytest.mark.parametrize(("d", "v", "full", "halved"), [(4, 4, 16, 10), (8, 2, 16, 12)])
def test_pipe_offload_figures(d: int, v: int, full: int, halved: int) -> None:
    """Peaks of GIS and GIS-H, in thin-stage activations; warm-up d(v-1) + d-i, i from 0."""
    for name, peak in (("gis", full), ("gis_h", halved)):
        timeline = simulate(build(name, d, 4 * d, v), UNIT)
        assert max(timeline.peak_activations) == peak
    for i, row in enumerate(build("gis", d, 4 * d, v).ranks):
        assert len(list(takewhile(lambda a: a.kind == "F", row))) == d * (v - 1) + d - i


@pytest.mark.parametrize(("p", "m", "v"), [(2, 2, 2), (4, 4, 3), (4, 7, 2), (8, 12, 4)])
def test_breadth_first(p: int, m: int, v: int) -> None:
    """T = (m v + p - 1)(F + B) / v, and m v stage activations kept."""
    timeline = simulate(build("breadth_first", p, m, v), Costs(F=3, B=6))
    assert timeline.makespan == (m * v + p - 1) * (3 + 6)
    assert set(timeline.peak_activations) == {m * v}


@pytest.mark.parametrize(("n", "b"), [(n, b) for n in (32, 128) for b in (32, 128, 512)])
def test_megatron_figure_6(n: int, b: int) -> None:
    """Bubble / ideal = (n-d) / b' with n GPUs, d of them for data, b' = batch / microbatch."""
    for d in (4, 8, 16, 32):
        if d <= n and b // d <= 64:
            timeline = simulate(build("1f1b", n // d, b // d))
            assert timeline.bubble_over_ideal == pytest.approx((n - d) / b)


@pytest.mark.parametrize(("p", "q"), [(p, q) for p in (1, 2, 4, 8) for q in (2, 3, 4)])
def test_seq1f1b_warm_up(p: int, q: int) -> None:
    """p - s - 2 + q slices before F and B alternate, and one more F with the first B."""
    for s, row in enumerate(build("seq1f1b", p, 2 * p, slices=q).ranks):
        assert len(list(takewhile(lambda a: a.kind == "F", row))) == p - s - 2 + q + 1


@pytest.mark.parametrize(("d", "m"), [(2, 2), (4, 4), (4, 8), (8, 16)])
def test_memory_of_pipedream_2bw(d: int, m: int) -> None:
    """Section 3: 2 |W| / d of weights a stage, at most d microbatches under way; m in GPipe.

    PipeDream-Flush (our 1f1b) keeps one version.
    """
    costs = Costs(weight=6, activation=1)
    two = simulate(build("pipedream_2bw", d, m), costs)
    assert two.state_bytes == (2 * 6,) * d
    assert max(two.peak_activations) == d
    flush, gpipe = (simulate(build(name, d, m), costs) for name in ("1f1b", "gpipe"))
    assert flush.state_bytes == gpipe.state_bytes == (6,) * d
    assert (max(flush.peak_activations), max(gpipe.peak_activations)) == (d, m)
