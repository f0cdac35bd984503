"""The figures of collectives hold what the engine recorded and what the α-β model says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from distlearn.comm import ALGORITHMS
from distlearn.hardware import Link, TwoLevelNetwork
from distlearn.plots import collective_cost, collective_story, collective_svg, crossovers, trace
from distlearn.plots.collective_svg import least_width

SVG = "{http://www.w3.org/2000/svg}"
LINK = Link.from_bandwidth(25e9, latency_s=5e-6)


def groups(svg: str, name: str) -> list[ElementTree.Element]:
    """Shapes within the groups of a class, legend included."""
    return [shape for group in ElementTree.fromstring(svg).iter(f"{SVG}g")
            if group.get("class") == name for shape in group]


def filled(svg: str) -> list[str]:
    """Digits in filled boxes, in the order of drawing."""
    return [str(text.text) for name in ("dl-F0t", "dl-newt") for text in groups(svg, name)]


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_reduce"])
@pytest.mark.parametrize("p", [2, 5, 8])
def test_boxes_arrows_and_outlines_are_the_record(algorithm: str, p: int) -> None:
    one = trace("all_reduce", algorithm, p, -(-p // 2) if algorithm == "hierarchical" else None)
    for step in range(one.steps + 1):
        svg = collective_svg(one, step, 1200)
        bits = [r for row in one.held[step] for cell in row for r in range(p) if cell >> r & 1]
        assert sorted(map(int, filled(svg))) == sorted(bits)
        sent = [len(m.chunks) for m in (one.messages[step - 1] if step else ())]
        lines = [shape for name in ("dl-add", "dl-copy") for shape in groups(svg, name)]
        assert len(lines) == sum(sent) + 2  # two in the legend
        assert len(groups(svg, "dl-done")) == len(one.complete(step)) + 1
        values = [text.text for text in groups(svg, "dl-text") if str(text.text).endswith(" B")]
        assert values == [f"{one.sent_by(r, step)} B" for r in range(p)]


def test_what_arrived_is_told_apart_from_what_was_there() -> None:
    one = trace("all_reduce", "ring", 4)
    first, fourth = (collective_svg(one, step) for step in (1, 4))
    assert sorted(str(t.text) for t in groups(first, "dl-newt")) == ["0", "1", "2", "3"]
    assert len(groups(fourth, "dl-newt")) == 16  # a stored chunk is new as a whole


@pytest.mark.parametrize("p", range(2, 9))
def test_everything_lies_within_the_picture(p: int) -> None:
    for algorithm in ALGORITHMS["all_reduce"]:
        one = trace("all_reduce", algorithm, p,
                    -(-p // 2) if algorithm == "hierarchical" else None)
        for width in (least_width(one), 760):
            tree = ElementTree.fromstring(collective_svg(one, 1, width))
            height = int(str(tree.get("height")))
            for box in tree.iter(f"{SVG}rect"):
                x, y, w, h = (float(box.get(k, 0)) for k in ("x", "y", "width", "height"))
                assert x >= 0 and y >= 0 and x + w <= width and y + h <= height


def test_the_story_shows_every_state_and_says_it() -> None:
    one = trace("all_reduce", "ring", 4)
    story = collective_story(one)
    headings = re.findall(r">(start|step \d of 6: send and \w+)<", story)
    assert headings == ["start"] + [
        f"step {k} of 6: send and {'add' if k <= 3 else 'store'}" for k in range(1, 7)]
    tree = ElementTree.fromstring(story)
    words = tree.findtext(f"{SVG}desc")
    assert words and "Step 6 of 6" in words and "16 of 16 parts of the result" in words
    assert "prefers-color-scheme:dark" in story
    with pytest.raises(ValueError, match="width must be at least 324 px"):
        collective_story(one, columns=4)


def test_crossover_of_two_algorithms_is_where_the_formulas_meet() -> None:
    """Recursive doubling k (α + n β) against the ring 2 (p-1) α + 2 (p-1)/p n β, p = 2^k."""
    for k in range(2, 8):
        p = 2**k
        meet = (2 * (p - 1) - k) * LINK.alpha_s / ((k - 2 * (p - 1) / p) * LINK.beta_s_per_byte)
        found = crossovers(["recursive_doubling", "ring"], p, 1, 2**40, LINK)
        assert [name for _, name in found] == ["recursive_doubling", "ring"]
        assert found[1][0] == pytest.approx(meet, rel=1e-9)
    with pytest.raises(ValueError, match="0 < smallest < largest; got smallest=0"):
        crossovers(["ring"], 4, 0, 10, LINK)


def test_lines_of_the_cost_figure_are_the_model() -> None:
    figure = collective_cost(["ring", "tree"], 8, LINK, title="eight")
    ring, tree = figure.axes[0].lines[:2]
    n = np.asarray(ring.get_xdata())
    alpha, beta = LINK.alpha_s, LINK.beta_s_per_byte
    assert ring.get_ydata() == pytest.approx(14 * alpha + 1.75 * n * beta)
    assert tree.get_ydata() == pytest.approx(6 * (alpha + n * beta))
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["ring", "tree"]
    network = TwoLevelNetwork(Link.from_bandwidth(300e9), LINK, 8)
    assert len(collective_cost(["ring", "hierarchical"], 64, network).axes[0].lines) >= 2
    with pytest.raises(ValueError, match="draws 1 to 5 algorithms; got 0"):
        collective_cost([], 8, LINK)


def test_the_cost_figure_has_a_dark_colour_for_each_light_one() -> None:
    text = collective_cost(["ring", "tree"], 8, LINK)._repr_svg_()  # type: ignore[attr-defined]
    drawing, style = text.split("<style>")[0], text.split("<style>")[-1]
    for key, colour in re.findall(r"\b(fill|stroke): (#\w{6})", drawing):
        assert f'"{key}: {colour}"' in style, f"{key} {colour} stays as it is in the dark"
