"""The SVG says what the simulation says: read back from the drawing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.pipeline import Costs, Timeline, build, simulate
from distlearn.plots import describe, timeline_svg
from distlearn.plots.timeline_svg import LEFT, RIGHT

PLAIN = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "pipedream")  # any p and m, whole passes
SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    name = draw(st.sampled_from(PLAIN))
    p = draw(st.integers(1, 10))
    v = draw(st.integers(1, 3)) if name == "interleaved_1f1b" else 1
    m = p * draw(st.integers(1, 2)) if name == "interleaved_1f1b" else draw(st.integers(1, 12))
    times = st.one_of(st.sampled_from([0.25, 1.0, 3.0]),
                      st.lists(st.floats(0.1, 5), min_size=p * v, max_size=p * v))
    costs = Costs(F=draw(times), I=draw(times), W=draw(times), comm=draw(st.floats(0, 2)))
    return simulate(build(name, p, m, v), costs)


def boxes(root: ElementTree.Element) -> dict[str, tuple[float, float, float]]:
    """Tooltip -> x, y, width."""
    return {
        str(rect.findtext(f"{SVG}title")): (
            float(rect.attrib["x"]), float(rect.attrib["y"]), float(rect.attrib["width"]))
        for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None
    }


@settings(max_examples=40)
@given(timelines(), st.sampled_from([320, 760, 1500]))
def test_boxes_are_the_events(timeline: Timeline, width: int) -> None:
    root = ElementTree.fromstring(timeline_svg(timeline, width=width))
    drawn = {name.split(":")[0]: place for name, place in boxes(root).items()}
    assert len(drawn) == len(timeline.events)
    scale = (width - LEFT - RIGHT) / timeline.makespan
    rows: dict[int, float] = {}
    for event in timeline.events:
        x, y, w = drawn[f"{event.action} on rank {event.rank}"]
        assert x == pytest.approx(LEFT + event.start * scale, abs=0.006)
        assert w == pytest.approx((event.end - event.start) * scale, abs=0.006)
        assert rows.setdefault(event.rank, y) == y
    assert [rows[rank] for rank in sorted(rows)] == sorted(set(rows.values()))


@settings(max_examples=15)
@given(timelines())
def test_boxes_without_tooltips_are_the_same(timeline: Timeline) -> None:
    with_tooltips = boxes(ElementTree.fromstring(timeline_svg(timeline))).values()
    root = ElementTree.fromstring(timeline_svg(timeline, tooltips=False))
    plain = [tuple(map(float, box)) for group in root.iter(f"{SVG}g")
             for path in group.findall(f"{SVG}path")
             for box in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v[\d.]+h-\3z", path.attrib["d"])]
    assert sorted(plain) == sorted(with_tooltips)


@settings(max_examples=25)
@given(timelines())
def test_curves_are_the_activations_kept(timeline: Timeline) -> None:
    root = ElementTree.fromstring(timeline_svg(timeline, width=1500))
    scale = (1500 - LEFT - RIGHT) / timeline.makespan
    paths = [path.attrib["d"] for path in root.iter(f"{SVG}path")
             if path.attrib["class"] == "dl-memory"]
    assert len(paths) == timeline.schedule.p
    tops = []
    for rank, path in enumerate(paths):
        base = float(path.split("H")[0].split()[1])
        steps = [(float(x), base - float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)]
        curve = timeline.memory_curve(rank)
        assert steps[-1][1] == 0
        assert [x for x, _ in steps[:-1]] == pytest.approx(
            [LEFT + time * scale for time, _ in curve], abs=0.006)
        unit = max(height for _, height in steps) / timeline.peak_activations[rank]
        assert [height for _, height in steps[:-1]] == pytest.approx(
            [kept * unit for _, kept in curve], abs=0.03)
        tops.append(unit)
    assert tops == pytest.approx([tops[0]] * len(tops), abs=0.03)  # one scale for all ranks


@settings(max_examples=25)
@given(timelines(), st.booleans())
def test_stands_alone(timeline: Timeline, memory: bool) -> None:
    text = timeline_svg(timeline, memory=memory, title="<&>", unit="<ms>")
    root = ElementTree.fromstring(text)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "<&>"
    assert root.findtext(f"{SVG}desc") == describe(timeline, "<ms>")
    assert text.count("http") == 1  # the name space
    assert not re.search(r"\b(href|src|id)=|url\(|@import", text)
    assert text == timeline_svg(timeline, memory=memory, title="<&>", unit="<ms>")
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(re.findall(r"(--[\w-]+):", text))


def test_words_hold_the_numbers() -> None:
    words = describe(simulate(build("interleaved_1f1b", 4, 8, 2), Costs(F=0.5, B=1)), "ms")
    # Narayanan et al. 2021: bubble (p-1)(F+B)/v = 4.5 on m(F+B) = 24, so 18.75 % of ideal
    assert "Makespan 28.5 ms." in words
    assert "15.8 % of the makespan, 18.8 % of the ideal time" in words
    assert "5.5, 4.5, 3.5, 2.5." in words


def test_numbers_appear_where_they_fit() -> None:
    timeline = simulate(build("1f1b", 4, 16), Costs(F=1, B=6))
    def numbers(width: int) -> list[tuple[str, str]]:
        root = ElementTree.fromstring(timeline_svg(timeline, width=width, tooltips=False))
        return [(group.attrib["class"], str(text.text)) for group in root.iter(f"{SVG}g")
                for text in group.findall(f"{SVG}text") if group.attrib["class"] in (
                    "dl-F0t", "dl-B0t")]
    assert {name for name, _ in numbers(760)} == {"dl-B0t"}
    wide = numbers(3000)
    assert sorted(text for name, text in wide if name == "dl-F0t") == sorted(
        4 * [str(i) for i in range(16)])


def test_legend_says_what_is_there() -> None:
    text = timeline_svg(simulate(build("zb_h1", 2, 3), Costs(F=1.5, I=[1, 2], W=0.5)))
    for entry in ("F forward: 1.5", "I input gradient: 1 to 2", "W weight gradient: 0.5"):
        assert f">{entry}<" in text
    assert "B backward" not in text
    assert "chunk" not in text
    assert "chunks 0 to 1" in timeline_svg(simulate(build("interleaved_1f1b", 2, 2, 2)))


def test_free_schedule_can_be_drawn() -> None:
    timeline = simulate(build("1f1b", 2, 2), Costs(F=0, B=0))
    assert len(boxes(ElementTree.fromstring(timeline_svg(timeline)))) == 8


@pytest.mark.parametrize("limit", [1.0, 3.5, 4.0, 7.5])
def test_a_limit_is_a_line_that_longer_curves_cross(limit: float) -> None:
    timeline = simulate(build("interleaved_1f1b", 4, 8, 2))  # peaks 5.5, 4.5, 3.5, 2.5
    root = ElementTree.fromstring(timeline_svg(timeline, limit=limit))
    lines = [path.attrib["d"] for path in root.iter(f"{SVG}path")
             if "stroke-dasharray" in path.attrib]
    curves = [path.attrib["d"] for path in root.iter(f"{SVG}path")
              if path.attrib.get("class") == "dl-memory"]
    assert len(lines) == len(curves) == 4
    crossed = []
    for line, curve in zip(lines, curves, strict=True):
        height = float(line.partition(" ")[2].partition("H")[0])
        crossed.append(min(map(float, re.findall(r"V([\d.]+)", curve))) < height)
    assert crossed == [peak / 2 > limit for peak in timeline.peak_activations]
    assert f"dashed: limit of {limit:g}" in "".join(root.itertext())
    assert "dasharray" not in timeline_svg(timeline, limit=11.5)  # twice the peak is 11
    assert "dasharray" not in timeline_svg(timeline)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_no_room_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match=f"limit must be a number >= 0; got limit={limit}"):
        timeline_svg(simulate(build("1f1b", 2, 2)), limit=limit)


def test_narrow_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 240 px; got width=100"):
        timeline_svg(simulate(build("1f1b", 1, 1)), width=100)
