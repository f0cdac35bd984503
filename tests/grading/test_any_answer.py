"""Whatever plain data an answer is: a verdict, in few clean lines, and a small card."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from distlearn.grading import Question, questions
from distlearn.grading.faces import html, text
from distlearn.grading.judge import judge
from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.plain import decode, encode
from distlearn.plots import difference_svg

NUMBERS = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.sampled_from(
        [10**400, -10**1200, 2**1000, 2**1000 + 1, 1e308, -1e308, 5e-324, -0.0]))
ITEMS = st.one_of(st.none(), NUMBERS, st.text(), st.sampled_from(
    ["F0.0", "B2.1", "\x1b[31m", "\x00", "a\nb", "`|<>&\"'", "\u202e", "x" * 5000, "f2.0 ", ""]))
VALUES = st.recursive(ITEMS, lambda inner: st.one_of(
    st.lists(inner, max_size=20), st.lists(inner, max_size=3).map(tuple),
    st.dictionaries(st.text(max_size=3), inner, max_size=3)), max_leaves=30)


def verdict(question: Question, values: list[Any]) -> None:
    got = [Outcome("value", value=decode(encode(value))) for value in values]
    cases = question.cases[: len(got)]
    result = judge(question, cases, Run(tuple(got[: len(cases)])))
    if not result.ok:
        assert result.points == 0
    lines = text(result).split("\n")
    assert len(lines) <= 14
    assert all(len(line) <= 110 and line.isprintable() for line in lines)
    card = html(result)
    assert card.isprintable()
    assert len(card) < 20_000
    assert "<script" not in card


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.id)
@settings(max_examples=15)  # of each question; the examples below are the ones that broke it
@given(values=st.lists(VALUES, min_size=1, max_size=2))
@example(values=[10**400])
@example(values=[[1e308, -1e308] * 4, 2**1000])
@example(values=[["\x00", "F0.0"], [10**400]])
@example(values=[{"results": [], "sent": [], "to": [], "groups": []}])
@example(values=[{"results": [1] * 4, "sent": [10**400] * 4, "to": [[]] * 4, "groups": [[[], 5]]}])
@example(values=[{"results": [1, 2], "sent": [True, None], "to": 3, "groups": "abc"}])
def test_any_value_gets_a_verdict(question: Question, values: list[Any]) -> None:
    verdict(question, values)


@given(got=VALUES, wanted=VALUES)
@example(got=10**400, wanted=1)
@example(got=-1e308, wanted=1e308)
def test_any_two_values_have_a_picture_or_none(got: Any, wanted: Any) -> None:
    svg = difference_svg(got, wanted)
    if svg:
        ElementTree.fromstring(svg)
        assert len(svg) < 20_000
        for word in (">nan<", ">inf<", ' width="nan', ' x="nan', '="inf', '="-inf'):
            assert word not in svg or word[0] == ">"
