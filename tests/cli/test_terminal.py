"""The drawing: read back from its characters it is the simulated timeline again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.cli.terminal import COLOURS, FILL, draw, legend
from distlearn.pipeline import Costs, build, simulate
from distlearn.plots import PALETTE

PLAIN = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "pipedream")  # any p and m, whole passes
whole_times = st.integers(0, 4)
any_times = st.floats(0.01, 5)


@st.composite
def timelines(draw_value, times=any_times):
    name = draw_value(st.sampled_from(PLAIN))
    p = draw_value(st.integers(1, 5))
    if name == "interleaved_1f1b":
        m, v = p * draw_value(st.integers(1, 3)), draw_value(st.integers(1, 3))
    else:
        m, v = draw_value(st.integers(1, 12)), 1
    F, I, W, comm = (draw_value(times) for _ in range(4))
    return simulate(build(name, p, m, v), Costs(F=F, I=I, W=W, comm=comm))


def rows(drawing, ranks):
    """Each rank's characters, the bands joined again."""
    joined = [""] * ranks
    for band in drawing.bands:
        for rank, line in enumerate(band.plain.splitlines()[:ranks]):
            start = len(f"rank {ranks - 1} ")
            assert line[:start].rstrip() == f"rank {rank}"
            joined[rank] += line[start:]
    return joined


def boxes(row):
    """(label, first column, last column + 1) of each box in a row of characters."""
    pattern = r"([FBIW][\d.]+)[-=~+]*"
    return [(match[1], *match.span()) for match in re.finditer(pattern, row)]


@given(timelines(), st.integers(30, 130))
def test_read_back_it_is_the_timeline(timeline, width):
    """Wrapped, every box has its label and stands where its action does, to the column."""
    drawing = draw(timeline, width, wrap=True)
    assert drawing.labelled
    schedule = timeline.schedule
    for rank, row in enumerate(rows(drawing, schedule.p)):
        found = boxes(row)
        events = timeline.rank_events(rank)
        for (text, left, right), event in zip(found, events, strict=True):
            kind, _, microbatch = event.action
            assert text == (str(event.action) if schedule.v > 1 else f"{kind}{microbatch}")
            assert abs(left - event.start * drawing.scale) <= 0.5 + 1e-6
            assert abs(right - event.end * drawing.scale) <= 0.5 + 1e-6


@given(timelines(), st.integers(30, 130), st.sampled_from([None, True, False]))
def test_it_fits_the_width(timeline, width, wrap):
    for band in draw(timeline, width, wrap).bands:
        lines = band.plain.splitlines()
        assert len(lines) == timeline.schedule.p + 1
        assert all(len(line) <= width for line in lines)


@given(timelines(times=whole_times.filter(bool)))
def test_whole_times_are_drawn_exactly(timeline):
    drawing = draw(timeline, 20_000, wrap=False)
    for rank, row in enumerate(rows(drawing, timeline.schedule.p)):
        for kind in "FBIW":
            columns = sum(right - left for text, left, right in boxes(row) if text[0] == kind)
            time = sum(e.end - e.start for e in timeline.rank_events(rank) if e.action.kind == kind)
            assert columns == pytest.approx(time * drawing.scale)


@given(timelines(), st.integers(40, 90))
def test_a_small_drawing_keeps_the_shares(timeline, width):
    """Without labels, a column is a letter; each rank's letters are its busy time to a column."""
    drawing = draw(timeline, width, wrap=False)
    if drawing.labelled:
        return
    for rank, row in enumerate(rows(drawing, timeline.schedule.p)):
        assert set(row) <= set("FBIW·")
        assert len(row) == round(timeline.makespan * drawing.scale)
        # Idle time lies between boxes: each gap is right to a column.
        gaps = len(timeline.rank_events(rank)) + 1
        assert abs((len(row) - row.count("·")) - timeline.busy[rank] * drawing.scale) <= gaps


def test_known_drawing():
    drawing = draw(simulate(build("1f1b", p=2, m=3)), 35)
    assert drawing.bands[0].plain.splitlines() == [
        "rank 0 F0F1····B0==F2B1==··B2==",
        "rank 1 ··F0B0==F1B1==F2B2==····",
        "       0         5         10",
    ]


def test_long_runs_are_drawn_small_unless_asked():
    timeline = simulate(build("1f1b", p=8, m=64))
    small = draw(timeline, 80)
    assert len(small.bands) == 1 and not small.labelled
    assert "One column is" in legend(timeline, small).plain
    full = draw(timeline, 80, wrap=True)
    assert len(full.bands) > 5 and full.labelled


@given(timelines(st.sampled_from([0.0, 1e-100, 1e-9, 1.0, 3.0, 1e9, 1e17, 1e99])),
       st.integers(1, 130), st.sampled_from([None, False]))
def test_times_of_any_size_are_drawn_within_the_width(timeline, width, wrap):
    drawing = draw(timeline, width, wrap)
    for band in drawing.bands:
        assert all(len(line) <= max(width, 20) for line in band.plain.splitlines())
    assert legend(timeline, drawing).plain


def test_zero_times_draw_nothing():
    timeline = simulate(build("1f1b", p=2, m=2), Costs(F=0, B=0))
    drawing = draw(timeline, 80)
    assert drawing.bands == ()
    assert "nothing to draw" in legend(timeline, drawing).plain


def test_colours_are_the_palette():
    assert {kind: PALETTE["light"][kind] for kind in "FBIW"} == COLOURS
    assert set(FILL) == set(COLOURS)


@pytest.mark.parametrize(("name", "options"), [
    ("1f1b", {}), ("1f1b", {"overlap": True}), ("interleaved_1f1b", {"v": 2}), ("chimera", {}),
    ("seq1f1b", {})])
def test_the_legend_names_boxes_as_the_drawing_does(name, options):
    timeline = simulate(build(name, 4, 4, **options))
    drawing = draw(timeline, 200, wrap=True)
    named = legend(timeline, drawing).plain.splitlines()[-1].split()[0]
    assert re.fullmatch(r"F\d(\.\d)*", named)
    first = re.match(r"rank 0 (F\d(\.\d)*)", drawing.bands[0].plain)
    assert first and first[1].count(".") == named.count(".")


def test_kinds_differ_without_colour():
    assert len(set(FILL.values())) == len(FILL)
