"""The picture of a difference: right boxes, right marks, well-formed, readable without colour."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.plots import difference_svg

SVG = "{http://www.w3.org/2000/svg}"
ACTIONS = st.lists(st.from_regex(r"[FBIW][0-9]\.[0-9]", fullmatch=True), max_size=40)


def labels(svg: str, cls: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter(f"{SVG}text")
            if cls in (e.get("class") or "").split()]


def test_order_marks_the_first_difference_and_every_other() -> None:
    svg = difference_svg(["F0.0", "F0.1", "B0.0", "B0.1"], ["F0.0", "B0.0", "F0.1", "B0.1"])
    assert labels(svg, "dld-b") == ["F0.0", "F0.1", "B0.0", "B0.1", "F0.0", "B0.0", "F0.1", "B0.1"]
    signs = re.findall(">([=≠])<", svg)
    assert signs == ["=", "≠", "≠", "="]
    assert "first difference, at index 1: got F0.1, wanted B0.0" in svg
    assert svg.count('class="dld-f"') == 2


@settings(max_examples=50)
@given(got=ACTIONS, wanted=ACTIONS)
def test_any_two_orders_can_be_drawn(got: list[str], wanted: list[str]) -> None:
    svg = difference_svg(got, wanted)
    ET.fromstring(svg)
    first = next((k for k, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b),
                 min(len(got), len(wanted)))
    if got != wanted:
        assert f"first difference, at index {first}" in svg
    else:
        assert "no difference" in svg
    assert len(labels(svg, "dld-b")) <= 24


@pytest.mark.parametrize(("got", "wanted"), [
    (0.375, 0.25), (-1, 2), (-3.0, -1.0), (0, 0.0), (float("nan"), 1), (float("inf"), 1),
    (1e300, 1e-300), (7, 8)])
def test_bars_are_to_scale(got: float, wanted: float) -> None:
    svg = difference_svg(got, wanted)
    widths = [float(e.get("width", 0)) for e in ET.fromstring(svg).iter(f"{SVG}rect")]
    assert labels(svg, "dld-t")[0::2] == ["got", "wanted"]
    assert labels(svg, "dld-t")[1::2] == [f"{x:.6g}" for x in (got, wanted)]
    if len(widths) == 2 and min(widths) > 1:
        assert widths[0] / widths[1] == pytest.approx(abs(got / wanted), rel=0.02)


@pytest.mark.parametrize(("got", "wanted"), [("a", "b"), (None, 1), (True, 1), ([1], 2), ({}, {})])
def test_other_values_have_no_picture(got: Any, wanted: Any) -> None:
    assert difference_svg(got, wanted) == ""


def test_text_of_learners_is_escaped() -> None:
    svg = difference_svg(["<script>", "&"], ["F0.0"])
    assert "<script" not in svg
    ET.fromstring(svg)
