"""The matplotlib figures hold the simulated values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from distlearn import plots
from distlearn.pipeline import Costs, Timeline, build, simulate

CASES = [("1f1b", 4, 8, 1), ("interleaved_1f1b", 4, 8, 2), ("zb_h1", 3, 5, 1), ("gpipe", 1, 1, 1),
         ("1f1b", 16, 8, 1)]


def polygons(figure: Figure, axes: int) -> dict[str, list[np.ndarray]]:
    """Label of each collection -> corners of its polygons."""
    return {str(c.get_gid()): [path.vertices for path in c.get_paths()]
            for c in figure.axes[axes].collections if isinstance(c, PolyCollection)}


def simulated(name: str, p: int, m: int, v: int) -> Timeline:
    return simulate(build(name, p, m, v), Costs(F=0.7, I=1.2, W=0.4, comm=0.3))


@pytest.mark.parametrize(("name", "p", "m", "v"), CASES)
def test_timeline_bars_are_the_events(name: str, p: int, m: int, v: int) -> None:
    timeline = simulated(name, p, m, v)
    figure = plots.timeline(timeline)
    drawn: dict[int, list[tuple[float, float, str]]] = {rank: [] for rank in range(p)}
    for label, shapes in polygons(figure, 0).items():
        kind, *_, rank = label.split()
        for corners in shapes:
            if kind == "idle":
                assert (corners[:, 0].min(), corners[:, 0].max()) == (0, timeline.makespan)
                continue
            assert int(rank) == round(corners[:-1, 1].mean())
            drawn[int(rank)].append((corners[:, 0].min(), corners[:, 0].max(), kind))
    for rank in range(p):
        expected = [(e.start, e.end, e.action.kind) for e in timeline.rank_events(rank)]
        assert [kind for *_, kind in sorted(drawn[rank])] == [kind for *_, kind in expected]
        assert np.array([d[:2] for d in sorted(drawn[rank])]) == pytest.approx(
            np.array([e[:2] for e in expected]))
    assert figure.axes[0].get_ylim()[0] > figure.axes[0].get_ylim()[1]  # rank 0 on top


@pytest.mark.parametrize(("name", "p", "m", "v"), CASES)
def test_memory_curves_are_the_activations_kept(name: str, p: int, m: int, v: int) -> None:
    timeline = simulated(name, p, m, v)
    figure = plots.timeline(timeline)
    lines = figure.axes[1].lines
    assert len(lines) == p
    most = max(timeline.peak_activations)
    for rank, line in enumerate(lines):
        curve = timeline.memory_curve(rank)
        times, heights = line.get_data()
        assert list(times) == [time for time, _ in curve] + [timeline.makespan]
        kept = (rank + 0.42 - np.asarray(heights)) / 0.84 * most
        assert kept[:-1] == pytest.approx([count for _, count in curve])
    notes = [text.get_text() for text in figure.axes[1].texts]
    assert notes == [f"peak {peak / v:.4g}" for peak in timeline.peak_activations]


def test_numbers_legend_title_and_unit() -> None:
    figure = plots.timeline(simulate(build("1f1b", 2, 3)), title="Two ranks", unit="ms")
    numbers = [text.get_text() for text in figure.axes[0].texts if text.get_text().isdigit()]
    assert sorted(numbers) == sorted(["0", "1", "2"] * 4)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["F forward: 1", "B backward: 2", "bubble (idle)"]
    assert figure.get_suptitle() == "Two ranks"
    assert figure.axes[1].get_xlabel() == "time in ms"
    bare = plots.timeline(simulate(build("1f1b", 2, 3)), memory=False)
    assert len(bare.axes) == 1
    assert "unit of the costs" in bare.axes[0].get_xlabel()


def test_chunks_are_in_the_legend() -> None:
    figure = plots.timeline(simulate(build("interleaved_1f1b", 2, 2, 3)))
    legend = figure.axes[0].get_legend()
    assert next(text.get_text() for text in legend.get_texts()).endswith("(chunks 0 to 2)")
    fills = {patch.get_facecolor() for patch in legend.findobj(Rectangle)}
    assert len(fills) == 3 + 3 + 1


def test_a_wide_legend_leaves_the_rows_their_width() -> None:
    costs = Costs(F=1 / 2, I=1 / 2, W=1 / 2)
    figure = plots.timeline(simulate(build("zb_v", 4, 8), costs), memory=False)
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.8


def test_shows_itself_the_same_each_time() -> None:
    def text() -> str:
        return plots.timeline(simulate(build("1f1b", 2, 3)))._repr_svg_()  # type: ignore[attr-defined]
    first = text()
    assert first == text()
    assert "<svg" in first


def test_bubble_lines_are_the_closed_formulas() -> None:
    ms = [4, 6, 8, 16]
    figure = plots.bubble(
        {"1F1B": {"name": "1f1b"}, "v=2": {"name": "interleaved_1f1b", "v": 2}}, 4, ms,
        definition="bubble_over_ideal")
    whole, halves = figure.axes[0].lines
    assert whole.get_xdata() == pytest.approx(ms)
    assert whole.get_ydata() == pytest.approx([3 / m for m in ms])  # SC21, section 2.2.1
    assert halves.get_xdata() == pytest.approx([4, 8, 16])  # m=6 is refused
    assert halves.get_ydata() == pytest.approx([3 / m / 2 for m in (4, 8, 16)])
    assert figure.axes[0].get_ylabel() == "bubble: idle / ideal"


def test_bubble_refusals() -> None:
    with pytest.raises(ValueError, match="definition must be one of bubble_fraction"):
        plots.bubble({"a": {"name": "1f1b"}}, 4, [4], definition="bubbles")
    with pytest.raises(ValueError, match="none of the m given: interleaved_1f1b needs m % p"):
        plots.bubble({"a": {"name": "interleaved_1f1b", "v": 2}}, 4, [5, 6])
    with pytest.raises(ValueError, match="equal stages"):
        plots.bubble({"a": {"name": "1f1b"}}, 2, [4], costs=Costs(F=[1, 2]))


def test_memory_bars_are_whole_microbatches() -> None:
    figure = plots.memory({
        "1F1B": simulate(build("1f1b", 4, 8)),
        "v=2": simulate(build("interleaved_1f1b", 4, 8, 2)),
    }, title="Memory")
    plain, halves = figure.axes[0].containers
    assert [bar.get_height() for bar in plain] == [4, 3, 2, 1]
    assert [bar.get_height() for bar in halves] == [5.5, 4.5, 3.5, 2.5]
    with pytest.raises(ValueError, match=r"one p; got p = {'a': 2, 'b': 3}"):
        plots.memory({"a": simulate(build("1f1b", 2, 2)), "b": simulate(build("1f1b", 3, 2))})


def test_every_colour_of_the_figures_has_a_dark_one() -> None:
    timeline = simulate(build("interleaved_1f1b", 4, 8, 2))
    figures = [plots.timeline(timeline), plots.timeline(simulate(build("zb_h1", 3, 4))),
               plots.memory({"a": timeline}), plots.bubble({"a": {"name": "gpipe"}}, 2, [2, 4])]
    for figure in figures:
        text = figure._repr_svg_()  # type: ignore[attr-defined]
        drawing, style = text.split("<style>")[0], text.split("<style>")[-1]
        for key, colour in re.findall(r"\b(fill|stroke): (#\w{6})", drawing):
            assert f'"{key}: {colour}"' in style, f"{key} {colour} stays as it is in the dark"
