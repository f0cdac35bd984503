"""Figures printed in papers, recomputed."""

from __future__ import annotations

import pytest

from distlearn.pipeline import Costs, build, simulate

# Zero Bubble Pipeline Parallelism (arXiv:2401.10241): Table 6 (profiled times, ms) -> Table 5
# (bubble rates): p, m, F, I, W, comm, 1F1B, ZB-H1.
ZERO_BUBBLE = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397),
    (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106),
    (32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594),
]


@pytest.mark.parametrize(("p", "m", "F", "I", "W", "comm", "one_f_one_b", "zb_h1"), ZERO_BUBBLE)
def test_zero_bubble_table_5(
    p: int, m: int, F: float, I: float, W: float, comm: float, one_f_one_b: float, zb_h1: float
) -> None:
    costs = Costs(F=F, I=I, W=W, comm=comm)
    assert round(simulate(build("1f1b", p, m), costs).bubble_fraction, 4) == one_f_one_b
    assert round(simulate(build("zb_h1", p, m), costs).bubble_fraction, 4) == zb_h1


# The same table's interleaved column, with every wrap-around edge enforced (the authors' script
# drops most of them and prints less): p, m, v, F, I, W, comm, rate.
INTERLEAVED = [
    (8, 24, 3, 18.522, 18.086, 9.337, 0.601, 0.1090),
    (8, 32, 3, 18.513, 18.086, 9.331, 0.626, 0.0847),
    (8, 64, 3, 18.546, 18.097, 9.321, 0.762, 0.0461),
    (8, 24, 4, 29.718, 29.444, 19.927, 0.527, 0.0827),
    (8, 32, 4, 29.802, 29.428, 19.530, 0.577, 0.0644),
    (8, 64, 4, 29.935, 29.621, 19.388, 0.535, 0.0328),
    (16, 48, 3, 11.347, 11.248, 8.132, 0.377, 0.1136),
    (16, 64, 3, 11.307, 11.254, 8.101, 0.379, 0.0878),
    (32, 96, 2, 10.419, 10.207, 7.715, 0.408, 0.1528),
]


@pytest.mark.parametrize(("p", "m", "v", "F", "I", "W", "comm", "rate"), INTERLEAVED)
def test_zero_bubble_table_5_interleaved_with_all_edges(
    p: int, m: int, v: int, F: float, I: float, W: float, comm: float, rate: float
) -> None:
    costs = Costs(F=F / v, I=I / v, W=W / v, comm=comm)
    timeline = simulate(build("interleaved_1f1b", p, m, v), costs)
    assert round(timeline.bubble_fraction, 4) == rate


@pytest.mark.parametrize("m", [4, 8, 12, 24])
@pytest.mark.parametrize("p", [2, 4, 8])
def test_gpipe_and_megatron_bubbles(p: int, m: int) -> None:
    """GPipe (section 2.3): (K-1)/(M+K-1) of all. Megatron-LM (section 2.2): (p-1)/m of ideal."""
    for name in ("gpipe", "1f1b"):
        timeline = simulate(build(name, p, m))
        assert timeline.bubble_fraction == pytest.approx((p - 1) / (m + p - 1), rel=1e-12)
        assert timeline.bubble_over_ideal == pytest.approx((p - 1) / m, rel=1e-12)
    if m % p == 0:
        for v in (2, 3):
            timeline = simulate(build("interleaved_1f1b", p, m, v), Costs(F=1 / v, B=2 / v))
            assert timeline.bubble_over_ideal == pytest.approx((p - 1) / (v * m), rel=1e-9)


def test_zb_h1_memory_of_each_stage() -> None:
    """Zero bubble, section 2.2: stage i (from 1) keeps (p-i+1) M_B + (i-1) M_W."""
    p, m, MB, MW = 8, 24, 5.0, 2.0
    timeline = simulate(
        build("zb_h1", p, m), Costs(F=1, I=1, W=1, activation=MB, activation_after_I=MW)
    )
    assert timeline.peak_bytes == tuple((p - i + 1) * MB + (i - 1) * MW for i in range(1, p + 1))


def test_zero_bubble_appendix_h_fewer_microbatches_than_ranks() -> None:
    """(m+p-1)(F+I)+W for m <= p; 23 units at p=8, m=4."""
    assert simulate(build("zb_h1", 8, 4)).makespan == 23
