"""Figures printed in papers, recomputed."""

from __future__ import annotations

import pytest

from distlearn.pipeline import Costs, Schedule, bubble_time, build, peak_activations, simulate
from distlearn.pipeline.schedules.bpipe import most
from distlearn.pipeline.schedules.xpipe import version_difference

# Zero Bubble Pipeline Parallelism (arXiv:2401.10241): Table 6 (profiled times, ms) -> Table 5
# (bubble rates). Stages per rank of the interleaved column, hidden size, heads, p, m, F, I, W,
# comm, (1F1B, 1F1B-I, ZB-H1, ZB-H2, ZB-1p, ZB-2p).
ZERO_BUBBLE = [
    (3, 2304, 24, 8, 24, 18.522, 18.086, 9.337, 0.601,
     (0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433)),
    (3, 2304, 24, 8, 32, 18.513, 18.086, 9.331, 0.626,
     (0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039)),
    (3, 2304, 24, 8, 64, 18.546, 18.097, 9.321, 0.762,
     (0.124, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026)),
    (4, 4096, 32, 8, 24, 29.718, 29.444, 19.927, 0.527,
     (0.2347, 0.0808, 0.1323, 0.0698, 0.1323, 0.0029)),
    (4, 4096, 32, 8, 32, 29.802, 29.428, 19.53, 0.577,
     (0.1898, 0.0628, 0.1045, 0.0559, 0.1045, 0.0022)),
    (4, 4096, 32, 8, 64, 29.935, 29.621, 19.388, 0.535,
     (0.1091, 0.032, 0.0554, 0.0294, 0.0554, 0.001)),
    (3, 5120, 40, 16, 48, 11.347, 11.248, 8.132, 0.377,
     (0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066)),
    (3, 5120, 40, 16, 64, 11.307, 11.254, 8.101, 0.379,
     (0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054)),
    (3, 5120, 40, 16, 128, 11.325, 11.308, 8.109, 0.378,
     (0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028)),
    (2, 6144, 48, 32, 96, 10.419, 10.207, 7.715, 0.408,
     (0.2646, 0.1493, 0.1421, 0.0641, 0.1421, 0.0038)),
    (2, 6144, 48, 32, 128, 10.408, 10.204, 7.703, 0.408,
     (0.2168, 0.1164, 0.1106, 0.049, 0.1106, 0.0029)),
    (2, 6144, 48, 32, 256, 10.402, 10.248, 7.698, 0.46,
     (0.1352, 0.0624, 0.0594, 0.0257, 0.0594, 0.0018)),
]
ZERO_BUBBLE_ARGUMENTS = ("v", "hidden", "heads", "p", "m", "F", "I", "W", "comm", "printed")


def rate(schedule: Schedule, costs: Costs, span: str = "makespan") -> float:
    timeline = simulate(schedule, costs)
    return round(1 - timeline.ideal / getattr(timeline, span), 4)


@pytest.mark.parametrize(ZERO_BUBBLE_ARGUMENTS, ZERO_BUBBLE)
def test_zero_bubble_table_5(
    v: int, hidden: int, heads: int, p: int, m: int, F: float, I: float, W: float, comm: float,
    printed: tuple[float, ...],
) -> None:
    costs = Costs(F=F, I=I, W=W, comm=comm, activation=34 * hidden + 5 * heads * 1024,
                  activation_after_I=32 * hidden)
    assert rate(build("1f1b", p, m), costs) == printed[0]
    assert rate(build("zb_h1", p, m), costs) == printed[2]
    assert rate(build("zb_h2", p, m), costs, "longest_span") == printed[3]
    for one_memory in (costs, Costs(F=F, I=I, W=W, comm=comm))[: 2 if p == 8 else 1]:
        one = build("zb_1p", p, m, costs=one_memory)
        assert rate(one, costs, "longest_span") == rate(one, costs) == printed[4]
        assert rate(build("zb_2p", p, m, costs=one_memory), costs, "longest_span") == printed[5]
    for name, limit in (("zb_1p", p), ("zb_2p", 2 * p)) if p == 8 else ():
        peak = max(simulate(build(name, p, m, costs=costs), costs).peak_bytes)
        assert peak <= limit * costs.activation * (1 + 1e-9)  # type: ignore[operator]
    thin = Costs(F=F / v, I=I / v, W=W / v, comm=comm)
    assert round(rate_without_most_wraps(build("interleaved_1f1b", p, m, v), thin), 4) == printed[1]


def rate_without_most_wraps(schedule: Schedule, costs: Costs) -> float:
    """The authors' way: at a wrap-around only the first microbatch of each group of p waits."""
    p, end, free, position = schedule.p, {}, [0.0] * schedule.p, [0] * schedule.p
    seconds = {"F": costs.F, "B": costs.B}

    def source(kind: str, stage: int, i: int) -> tuple[str, int, int] | None:
        before = stage - 1 if kind == "F" else stage + 1
        if not 0 <= before < schedule.stages:
            return None if kind == "F" else ("F", stage, i)
        wraps = abs(schedule.placement[before] - schedule.placement[stage]) == p - 1 > 0
        return None if wraps and i % p else (kind, before, i)

    while any(at < len(row) for at, row in zip(position, schedule.ranks, strict=True)):
        for r, row in enumerate(schedule.ranks):
            while position[r] < len(row):
                kind, stage, i = row[position[r]]
                needed = source(kind, stage, i)
                if needed is not None and needed not in end:
                    break
                if needed is not None:
                    hop = costs.comm if schedule.placement[needed[1]] != r else 0.0
                    free[r] = max(free[r], end[needed] + hop)  # type: ignore[operator]
                free[r] += seconds[kind]  # type: ignore[operator]
                end[kind, stage, i] = free[r]
                position[r] += 1
    ideal = schedule.m * schedule.v * (costs.F + costs.B)  # type: ignore[operator]
    return 1 - ideal / max(free)


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


# The later version of the same paper, with ZB-V: p, m, times of half a stage (us) F, I, W, comm,
# (1F1B, 1F1B-I with two stages per rank, ZB-H1, ZB-H2, ZB-V), as the authors' script prints them.
ZB_V = [
    (16, 48, 14407, 14380, 9676, 1610, (0.2668, 0.1499, 0.1536, 0.0823, 0.0697)),
    (16, 64, 14412, 14393, 9688, 1621, (0.2206, 0.1169, 0.1198, 0.063, 0.0533)),
    (16, 128, 14316, 14306, 9639, 1619, (0.139, 0.0621, 0.0637, 0.0325, 0.0274)),
    (24, 72, 6763, 6969, 5251, 755, (0.2699, 0.1519, 0.1439, 0.0628, 0.0638)),
    (24, 96, 6783, 6984, 5259, 758, (0.2229, 0.1184, 0.1121, 0.048, 0.0483)),
    (24, 192, 6785, 6990, 5260, 770, (0.1403, 0.063, 0.0595, 0.0247, 0.025)),
    (32, 96, 9458, 9748, 7288, 879, (0.2676, 0.1509, 0.1429, 0.0629, 0.0593)),
    (32, 128, 9469, 9744, 7306, 892, (0.2204, 0.1177, 0.1111, 0.0478, 0.0451)),
    (32, 256, 9447, 9644, 7193, 887, (0.1362, 0.0626, 0.0593, 0.0251, 0.0236)),
]


@pytest.mark.parametrize(("p", "m", "F", "I", "W", "comm", "printed"), ZB_V)
def test_zero_bubble_v_table(
    p: int, m: int, F: float, I: float, W: float, comm: float, printed: tuple[float, ...]
) -> None:
    half = Costs(F=F, I=I, W=W, comm=comm)
    whole = Costs(F=2 * F, I=2 * I, W=2 * W, comm=comm)
    assert rate(build("1f1b", p, m), whole) == printed[0]
    assert round(rate_without_most_wraps(build("interleaved_1f1b", p, m, 2), half), 4) == printed[1]
    assert rate(build("zb_h1", p, m), whole) == printed[2]
    assert rate(build("zb_h2", p, m), whole, "longest_span") == printed[3]
    found = build("zb_v", p, m, method="heuristic", costs=half)
    assert rate(found, half, "longest_span") == printed[4]
    assert max(simulate(found, half).peak_activations) <= 2 * p


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


P, M = (2, 4, 6, 8, 12), (1, 2, 3)  # ranks, and how many units of microbatches


@pytest.mark.parametrize("k", M)
@pytest.mark.parametrize("p", P)
def test_dualpipe(p: int, k: int) -> None:
    """DeepSeek-V3, table 2: (PP/2-1)(F&B + B - 3W) and PP+1; T = 3m + p - 2 at F = I = W = 1."""
    m = 2 * p * k
    timeline = simulate(build("dualpipe", p, m), Costs(F=1, I=1, W=1))
    assert timeline.makespan == 3 * m + p - 2
    assert timeline.peak_activations == (p + 1,) * p
    assert all(len(timeline.schedule.held(r)) == 2 for r in range(p))  # 2x parameters
    for pair in (2, 2.5, 3):
        timeline = simulate(build("dualpipe", p, m), Costs(F=1, I=1, W=1, pair=pair))
        idle = timeline.makespan - min(timeline.busy)
        assert idle == (p / 2 - 1) * (pair + 2 - 3)
        half = simulate(build("dualpipe_v", p, m), Costs(F=1, I=1, W=1, pair=pair))
        assert half.makespan - min(half.busy) == (2 * p / 2 - 1) * (pair + 2 - 3)
        assert half.peak_activations == (2 * p + 1,) * p


@pytest.mark.parametrize("k", M)
@pytest.mark.parametrize("p", P)
def test_chimera(p: int, k: int) -> None:
    """Section 3: (D-2)/(2N+D-2) for F = B; peaks from D/2 + 1 to D; two copies of the weights."""
    timeline = simulate(build("chimera", p, k * p), Costs(F=1, B=1))
    assert timeline.bubble_fraction == pytest.approx((p - 2) / (2 * k * p + p - 2))
    assert (min(timeline.peak_activations), max(timeline.peak_activations)) == (p // 2 + 1, p)
    assert all(len(timeline.schedule.held(r)) == 2 for r in range(p))
    if p % 4 == 0:
        four = simulate(build("chimera", p, k * p, directions=4), Costs(F=1, B=1))
        assert four.makespan == 2 * k * p + p / 2 - 2


def test_chimera_with_backwards_twice_as_long() -> None:
    """Ratios of the authors' orders timed with B = 2F; doubling and halving repair them."""
    times = [simulate(build("chimera", p, m)).makespan for p, m in ((4, 4), (4, 8), (4, 16))]
    assert times == [16, 30, 58]
    for method, m in (("forward_doubling", 16), ("backward_halving", 8)):
        timeline = simulate(build("chimera", 4, m, method=method))
        assert timeline.bubble_fraction == pytest.approx(3 / (48 + 3))
        assert timeline.bubble_fraction < simulate(build("1f1b", 4, 16)).bubble_fraction


@pytest.mark.parametrize("m", [1, 7, 24, 40])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 8, 16])
def test_bpipe(p: int, m: int) -> None:
    """1F1B's time; nobody over ceil((p+2)/2); stage x evicts if it has more, to p-1-x."""
    timeline = simulate(build("bpipe", p, m))
    assert timeline.makespan == simulate(build("1f1b", p, m)).makespan
    assert most(p) == (p + 3) // 2
    assert max(timeline.peak_activations) <= most(p)
    for swap in (0.25, 0.5, 1):  # F = 1, B = 2: hidden, except where the warm-up waits for room
        slower = simulate(timeline.schedule, Costs(swap=swap))
        assert max(slower.peak_activations) <= most(p)
        assert slower.makespan <= timeline.makespan + swap * p
    schedule = timeline.schedule
    for x, row in enumerate(schedule.ranks):
        out = sum(a.kind == "E" for a in row)
        assert out == sum(a.kind == "L" for a in row)
        assert bool(out) == (min(m, p - x) > most(p))
        assert schedule.partner[x] == p - 1 - x
    if p == 8 and m >= 24:  # evictions under way at once: 3, 2, 1, 0
        parked = []
        for row in schedule.ranks[:4]:
            level = highest = 0
            for action in row:
                level += (action.kind == "E") - (action.kind == "L")
                highest = max(highest, level)
            parked.append(highest)
        assert parked == [4, 3, 2, 0]  # one more each while a load overlaps an eviction


@pytest.mark.parametrize("p", range(2, 13))
def test_controllable_memory(p: int) -> None:
    """What the authors' greedy yields at F = I = W: extra time over 6m, and peak half stages."""
    m, unit = 3 * p, Costs(F=1, I=1, W=1)
    smallest = simulate(build("v_min", p, m), unit)
    assert max(smallest.peak_activations) == 2 * -(-(p + 2) // 3)
    assert smallest.makespan - 6 * m == 4 * p - 5 - (2 if p % 3 == 0 else 0)
    half = simulate(build("v_half", p, m), unit)
    assert max(half.peak_activations) == 2 * (p // 2) + 2
    if p > 2:
        assert half.makespan - 6 * m == 3 * p - (7 if p % 2 == 0 else 4)
    assert simulate(build("1f1b", p, m), Costs(F=2, B=4)).makespan - 6 * m == 6 * (p - 1)


def test_1f1b_v() -> None:
    """15 of 18 half-stage passes at p=4, 33 of 42 at p=8; 3/4 of the memory at p = 4, 8."""
    for p, extra in ((4, 15), (8, 33)):
        timeline = simulate(build("1f1b_v", p, 3 * p))
        assert timeline.makespan - 9 * 2 * p == extra
        assert max(timeline.peak_activations) == 2 * p * 3 / 4


@pytest.mark.parametrize(("p", "v"), [(4, 4), (8, 2), (6, 3), (5, 2)])
def test_pipe_offload(p: int, v: int) -> None:
    """Peak g(v-1) + d and extra bubble (d-g)(v-1), for g from ceil(d/2) to d."""
    for g in range((p + 1) // 2, p + 1):
        timeline = simulate(build("gis", p, 4 * g, v, group=g), Costs(F=1, I=1, W=1))
        assert max(timeline.peak_activations) == g * (v - 1) + p
        assert timeline.makespan - timeline.ideal == 2 * (p - 1) + (p - g) * (v - 1)
    interleaved = simulate(build("interleaved_1f1b", p, 4 * p, v))
    assert max(interleaved.peak_activations) == p * v + p - 1


def test_offloading_keeps_less_and_costs_nothing_if_hidden() -> None:
    plain, swapped = build("gis", 4, 16, 4), build("gis", 4, 16, 4, offload=2)
    costs = Costs(swap=1)
    assert simulate(swapped, costs).makespan == simulate(plain, costs).makespan
    assert simulate(swapped, costs).peak_activations[0] < simulate(plain, costs).peak_activations[0]
    slow = Costs(swap=5)  # PipeOffload: hidden if a transfer takes no longer than the computation
    assert simulate(swapped, slow).makespan > simulate(plain, slow).makespan


@pytest.mark.parametrize(("p", "waves", "ratio"), [
    (4, 1, 0.333), (4, 2, 0.213), (4, 4, 0.119), (8, 1, 0.368), (8, 2, 0.238), (8, 4, 0.135)])
def test_hanayo(p: int, waves: int, ratio: float) -> None:
    """Zigzag greedily simulated by others, N = P, B = 2F; the paper's formula is near."""
    timeline = simulate(build("hanayo", p, p, waves=waves))
    assert round(timeline.bubble_fraction, 3) == ratio
    assert timeline.bubble_fraction <= (2 * p - 2) / (3 * p * waves + p - 1) * 1.02
    assert timeline.schedule.placement[p - 1] == timeline.schedule.placement[p]  # a turn


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_seq1f1b_and_terapipe(slices: int) -> None:
    """Start-up 1/q of 1F1B's; warm-up p-s-2+q slices."""
    p, m = 4, 8
    whole = simulate(build("1f1b", p, m))
    for name in ("seq1f1b", "terapipe"):
        timeline = simulate(build(name, p, m, slices=slices),
                            Costs(F=1 / slices, B=2 / slices, activation=1 / slices))
        assert timeline.makespan - 24 == pytest.approx((whole.makespan - 24) / slices)
    timeline = simulate(build("seq1f1b", p, m, slices=slices), Costs(activation=1 / slices))
    assert timeline.peak_bytes[0] == pytest.approx((p - 1 + slices) / slices)


def test_dapple_policy_b_hides_transfers() -> None:
    """PPoPP 2021: twice the warm-up covers the way there and back; with free transfers no gain."""
    A, B = (build("dapple", 4, 16, policy=x) for x in "AB")
    assert simulate(A).makespan == simulate(B).makespan
    slow = Costs(comm=1)
    assert simulate(B, slow).makespan < simulate(A, slow).makespan


def test_pipedream_and_2bw_versions() -> None:
    """PipeDream: p-s versions, max(0, i-(p-1-s)). 2BW: two versions, max(k//m - 1, 0)."""
    for p, m in ((2, 2), (4, 8), (8, 8), (8, 24)):
        schedule = build("pipedream", p, m)
        assert simulate(schedule).versions_kept == tuple(min(p - s, m) for s in range(p))
        synced = build("pipedream", p, m, vertical_sync=True)
        assert simulate(synced).versions_kept == (min(p, m),) * p
        two = build("pipedream_2bw", p, m, batches=4)
        assert simulate(two).versions_kept == (2,) * p
        mare = build("pipemare", p, m)
        assert simulate(mare).versions_kept == (1,) * p
        for s, (row, versions) in enumerate(zip(mare.ranks, mare.versions, strict=True)):
            for action, version in zip(row, versions, strict=True):
                i = action.microbatch
                assert version == (i if action.kind == "B" else max(0, i - (p - 1 - s)))


def test_xpipe_predicts_the_version_that_the_update_meets() -> None:
    schedule = build("xpipe", 4, 2, batches=6)
    for row, versions in zip(schedule.ranks, schedule.versions, strict=True):
        for action, version in zip(row, versions, strict=True):
            assert version == action.microbatch // 2
    assert [version_difference(4, 2, r, 4) for r in range(4)] == [2, 1, 1, 0]


def test_amdp_mismatch_is_at_most_one_update() -> None:
    """Abstract: parameter mismatch within one optimisation step; two under way per first stage."""
    for p, m in ((4, 4), (4, 8), (8, 8), (8, 16)):
        schedule = build("amdp", p, m, batches=3)
        read: dict[tuple[int, ...], int] = {}
        for row, versions in zip(schedule.ranks, schedule.versions, strict=True):
            for action, version in zip(row, versions, strict=True):
                if action.kind == "F":
                    read[action[1:]] = version
                else:
                    assert version - read[action[1:]] in (0, 1)
        for pipe, copy in enumerate(schedule.copies):
            under_way = 0
            for action in schedule.ranks[copy[0]]:
                if action.stage == 0 and schedule.direction[action.microbatch] == pipe:
                    under_way += 1 if action.kind == "F" else -1
                    assert under_way <= 2


def test_mario_moves_recomputation_into_bubbles() -> None:
    """PPoPP 2025: R costs one F, and most of it is hidden; memory falls to one whole activation."""
    base = build("1f1b", 4, 8)
    for prepose in (False, True):
        timeline = simulate(build("mario", 4, 8, prepose=prepose))
        assert set(timeline.peak_activations) == {1}
        naive = simulate(base, Costs(F=1, B=3)).makespan  # recompute inside of every backward
        assert simulate(base).makespan < timeline.makespan < naive
    kinds = [a.kind for row in timeline.schedule.ranks for a in row]
    assert kinds.count("R") == 3 * 8  # the last rank's backward follows its forward at once


def test_interleaved_by_formula_and_megatron_figure_12() -> None:
    """Megatron-LM: with p=12 the bubble model gives the measured ratios' shape; interleaved v=3."""
    plain = [1 - simulate(build("1f1b", 12, m)).bubble_fraction for m in (12, 24, 36, 48, 60)]
    assert [round(x * 12 / 12 / (60 / 71), 3) for x in plain] == [0.617, 0.811, 0.906, 0.963, 1.0]
    thin = [1 - simulate(build("interleaved_1f1b", 12, m, 3)).bubble_fraction
            for m in (12, 24, 36, 48, 60)]
    assert [round(x / thin[-1], 3) for x in thin] == [0.813, 0.92, 0.963, 0.986, 1.0]


def test_interleaved_zero_bubble() -> None:
    """p=4, m=8, v=2: 51 - 48 = 3 thin units."""
    assert simulate(build("interleaved_zero_bubble", 4, 8, 2)).makespan == 51
    assert bubble_time("interleaved_zero_bubble", 4, 8, 2) == 3
    assert peak_activations("interleaved_zero_bubble", 4, 8, 2, r=0) == 8
