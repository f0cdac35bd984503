"""The collective stepper inside the built chapter: the page around it does not get in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distlearn.plots import trace
from distlearn.plots.collective_trace import cell_in_words
from tests.widgets.test_collective_stepper_in_browser import assert_shows


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_stepper_in_the_chapter(
    visit: Callable[..., Any], shots: Path, theme: str, width: int
) -> None:
    with visit("ranks.html", theme=theme, width=width) as page:
        face = page.locator(".dl-face").first
        face.scroll_into_view_if_needed()
        assert_shows(face, "all_reduce", "ring", 4, 0)

        # keyboard: the algorithm, the ranks, then the steps
        face.locator("select[name=algorithm]").focus()
        page.keyboard.type("halv")
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        face.locator(".dl-scroll").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert_shows(face, "all_reduce", "halving_doubling", 8, 2)

        # mouse: a button, and a chunk to read
        face.locator("[data-go=last]").click()
        assert_shows(face, "all_reduce", "halving_doubling", 8, 6)
        one = trace("all_reduce", "halving_doubling", 8)
        face.locator("svg g.dl-idle rect").nth(9).hover(force=True)
        assert face.locator(".dl-pointed").inner_text() == cell_in_words(one, 6, 1, 1)
        face.locator("[data-go=back]").click()
        face.screenshot(path=shots / f"stepper-{theme}-{width}.png")
