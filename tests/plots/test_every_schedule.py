"""Both figures draw every schedule: halves of pairs, slices, copies, recomputation, transfers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from distlearn import plots
from distlearn.pipeline import NAMES, Action, Costs, Timeline, build, simulate
from distlearn.pipeline.action import TRANSFERS
from distlearn.plots.palette import box_colour
from distlearn.plots.timeline_svg import LEFT, RIGHT

SVG = "{http://www.w3.org/2000/svg}"
WIDTH = 2400
COSTS = Costs(F=1, I=1.25, W=0.75, R=0.9, swap=0.5)
SIZES = [(name, p, m) for name in NAMES for p, m in ((4, 8), (8, 16))
         if (name, p) != ("v_auto", 8)]  # a search of seconds
OFFLOADING = [("gis", 4, 8), ("gis_h", 4, 8)]

Make = Callable[[str, int, int], Timeline]
Box = tuple[float, float, float, float]  # left, top, width, height


@lru_cache
def simulated(name: str, p: int, m: int) -> Timeline:
    return simulate(build(name, p, m), COSTS)


@lru_cache
def offloading(name: str, p: int, m: int) -> Timeline:
    return simulate(build(name, p, m, 2, offload=1), COSTS)


CASES = [pytest.param(simulated, *size, id="-".join(map(str, size))) for size in SIZES] + [
    pytest.param(offloading, *size, id=f"{size[0]}-offload") for size in OFFLOADING]


def drawn_boxes(root: ElementTree.Element) -> list[tuple[str, str, Box]]:
    """Class of the group, first words of the tooltip, place."""
    def place(at: dict[str, str]) -> Box:
        return float(at["x"]), float(at["y"]), float(at["width"]), float(at["height"])
    return [(group.attrib["class"], str(rect.findtext(f"{SVG}title")).split(":")[0],
             place(rect.attrib))
            for group in root.iter(f"{SVG}g") for rect in group.findall(f"{SVG}rect")
            if rect.find(f"{SVG}title") is not None]


def shade(timeline: Timeline, part: Action) -> int:
    """Of the stages that a rank holds, copy after copy, the how-manieth this is."""
    s = timeline.schedule
    copy = s.direction[part.microbatch] if s.direction else 0
    rank = s.home(part.stage, part.microbatch)
    held = [stage for stage, home in enumerate((s.copies or (s.placement,))[copy]) if home == rank]
    return copy * s.v + held.index(part.stage)


def number_in(part: Action) -> str:
    return f"{part.microbatch}" + ("" if part.slice is None else f" {part.slice}")


@pytest.mark.parametrize(("make", "name", "p", "m"), CASES)
def test_svg_boxes_are_the_events(make: Make, name: str, p: int, m: int) -> None:
    timeline = make(name, p, m)
    root = ElementTree.fromstring(plots.timeline_svg(timeline, width=WIDTH))
    scale = (WIDTH - LEFT - RIGHT) / timeline.makespan
    found: dict[str, list[tuple[str, Box]]] = {}
    for look, words, place in drawn_boxes(root):
        found.setdefault(words, []).append((look, place))
    computed = [e for e in timeline.events if e.action.kind not in TRANSFERS]
    assert len(found) == len(computed)
    tops: dict[int, set[tuple[float, float]]] = {}
    for event in computed:
        parts = event.action.parts
        boxes = sorted(found[f"{event.action} on rank {event.rank}"], key=lambda box: box[1][1])
        assert [look for look, _ in boxes] == [
            f"dl-{part.kind}{min(shade(timeline, part), 7)}" for part in parts]
        for _, (x, _, w, _) in boxes:
            assert x == pytest.approx(LEFT + event.start * scale, abs=0.006)
            assert w == pytest.approx((event.end - event.start) * scale, abs=0.006)
        if len(parts) == 2:  # the halves fill the row, one above the other
            (_, (_, y, _, high)), (_, (_, below, _, _)) = boxes
            assert below == y + high
        tops.setdefault(event.rank, set()).add((boxes[0][1][1], sum(b[3] for _, b in boxes)))
    assert all(len(places) == 1 for places in tops.values())


@pytest.mark.parametrize(("make", "name", "p", "m"), CASES)
def test_svg_shows_numbers_kinds_and_transfers(make: Make, name: str, p: int, m: int) -> None:
    timeline = make(name, p, m)
    text = plots.timeline_svg(timeline, width=2 * WIDTH, tooltips=False)
    root = ElementTree.fromstring(text)
    shown: Counter[tuple[str, str]] = Counter()
    for group in root.iter(f"{SVG}g"):
        for label in group.findall(f"{SVG}text"):
            if group.attrib.get("pointer-events") == "none":  # the legend's has none
                shown[group.attrib["class"], " ".join(label.itertext())] += 1
    expected = Counter((f"dl-{part.kind}{min(shade(timeline, part), 7)}t", number_in(part))
                       for e in timeline.events if e.action.kind not in TRANSFERS
                       for part in e.action.parts)
    assert shown == expected
    legend = [str(label.text) for label in root.findall(f"{SVG}text")]
    for kind in {event.action.kind for event in timeline.events}:
        start = "F and B overlapped: " if kind == "F&B" else f"{kind} {plots.KIND_NAMES[kind]}: "
        assert any(entry.startswith(start) for entry in legend)
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(re.findall(r"(--[\w-]+):", text))
    moved = [e for e in timeline.events if e.action.kind in TRANSFERS]
    bars = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v1h-", text)
    scale = (2 * WIDTH - LEFT - RIGHT) / timeline.makespan
    assert sorted((float(x), float(w)) for x, _, w in bars) == [
        pytest.approx(bar, abs=0.006) for bar in sorted(
            (LEFT + e.start * scale, (e.end - e.start) * scale) for e in moved)]
    assert any("transfers beside" in entry for entry in legend) == bool(moved)


@pytest.mark.parametrize(("make", "name", "p", "m"), CASES)
def test_figure_boxes_are_the_events(make: Make, name: str, p: int, m: int) -> None:
    timeline = make(name, p, m)
    axes = plots.timeline(timeline).axes[0]
    drawn = []
    for bars in axes.collections:
        if not isinstance(bars, PolyCollection) or str(bars.get_gid()).startswith("idle"):
            continue
        label = str(bars.get_gid())
        half = "upper" if "upper" in label else "lower" if "lower" in label else "whole"
        for path in bars.get_paths():
            corners = np.asarray(path.vertices)
            x, y = corners[:, 0], corners[:-1, 1]
            drawn.append((int(label.split()[-1]), x.min(), x.max(), half, label[0],
                          int(label.split()[2]), round(y.mean() - int(label.split()[-1]), 3)))
    expected = []
    for e in timeline.events:
        if e.action.kind in TRANSFERS:
            continue
        for part, half in zip(e.action.parts, ("upper", "lower") if len(e.action.parts) == 2
                              else ("whole",), strict=True):
            middle = {"whole": 0, "upper": -0.21, "lower": 0.21}[half]
            expected.append((e.rank, e.start, e.end, half, part.kind, shade(timeline, part),
                             middle))
    key = lambda box: (box[0], round(box[1], 6), box[3], box[4])  # noqa: E731
    drawn.sort(key=key)
    expected.sort(key=key)
    assert [box[3:6] for box in drawn] == [box[3:6] for box in expected]
    columns = [0, 1, 2, 6]
    assert np.array([[box[c] for c in columns] for box in drawn]) == pytest.approx(
        np.array([[box[c] for c in columns] for box in expected]))
    assert {str(line.get_gid()): tuple(np.asarray(line.get_xdata())) for line in axes.lines} == {
        f"{e.action} rank {e.rank}": (e.start, e.end)
        for e in timeline.events if e.action.kind in TRANSFERS}


def test_dark_figure_knows_recomputation() -> None:
    text = plots.timeline(simulated("mario", 4, 8))._repr_svg_()  # type: ignore[attr-defined]
    drawing, style = text.split("<style>")[0], text.split("<style>")[-1]
    assert box_colour("R") in drawing
    for key, colour in re.findall(r"\b(fill|stroke): (#\w{6})", drawing):
        assert f'"{key}: {colour}"' in style


def test_words_say_what_is_special() -> None:
    paired = simulate(build("dualpipe", 4, 8))
    pairs = paired.schedule.to_text().count("&")
    assert pairs > 0
    assert f"Pairs of F and B run overlapped: {pairs}. " in plots.describe(paired)
    assert "in each of 2 copies of the model." in plots.describe(paired)
    sliced = plots.describe(simulate(build("seq1f1b", 4, 8)))
    # Sun et al., Seq1F1B: rank r warms up with p-2-r+slices slices and keeps one more
    assert "m=8 microbatches in 2 slices each" in sliced
    assert "from rank 0 on: 2.5, 2, 1.5, 1." in sliced
    recomputed = simulate(build("mario", 4, 8))
    again = sum(a.kind == "R" for row in recomputed.schedule.ranks for a in row)
    assert f"Recomputations: {again}. " in plots.describe(recomputed)
    swapped = plots.describe(simulate(build("bpipe", 4, 8)))
    assert re.search(r"E evict to partner: (\d+), L load from partner: \1\. ", swapped)


def test_slices_that_take_unequally_long() -> None:
    timeline = simulate(build("terapipe", 2, 2), Costs(F=2, B=4, slice_scale=[0.5, 1.5]))
    text = plots.timeline_svg(timeline)
    assert ">F forward: 1 to 3<" in text
    assert ">B backward: 2 to 6<" in text


def test_memory_bars_of_slices_are_whole_microbatches() -> None:
    figure = plots.memory({"slices": simulate(build("seq1f1b", 4, 8))})
    assert [bar.get_height() for bar in figure.axes[0].containers[0]] == [2.5, 2, 1.5, 1]


def test_legend_of_a_pair_says_what_overlapping_leaves() -> None:
    timeline = simulate(build("dualpipe", 2, 4), Costs(F=1, B=2, pair=2))
    assert "F and B overlapped: 2<" in plots.timeline_svg(timeline)
