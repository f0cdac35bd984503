"""The pipeline explorer inside the built chapter: the page around it does not get in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distlearn.pipeline import Costs, build, simulate
from tests.widgets.test_explorer_in_browser import assert_shows, value


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_explorer_in_the_chapter(
    visit: Callable[..., Any], shots: Path, theme: str, width: int
) -> None:
    with visit("pipeline.html", theme=theme, width=width) as page:
        face = page.locator(".dl-face").first
        face.scroll_into_view_if_needed()

        # keyboard: the list of schedules, then p, m
        schedule = face.locator("select[name=schedule]")
        schedule.focus()
        page.keyboard.type("zb")
        assert schedule.input_value() == "zb_h1"
        page.keyboard.press("Tab")
        page.keyboard.press("Home")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Tab")
        page.keyboard.press("Home")
        for _ in range(11):
            page.keyboard.press("ArrowRight")
        settings = {
            name: float(face.locator(f"input[name={name}]").input_value())
            for name in ("F", "B", "W", "comm")
        }
        assert_shows(face, simulate(build("zb_h1", 6, 12), Costs(**settings)))

        # mouse: drag the transfer time
        slider = face.locator("input[name=comm]")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
        page.mouse.up()
        settings["comm"] = float(slider.input_value())
        assert settings["comm"] > 0
        timeline = simulate(build("zb_h1", 6, 12), Costs(**settings))
        assert_shows(face, timeline)
        assert value(face, "peak activations") == str(max(timeline.peak_activations))

        # a refusal is the library's own words
        schedule.select_option("interleaved_1f1b")
        face.locator("input[name=m]").fill("13")
        with pytest.raises(ValueError) as error:
            build("interleaved_1f1b", 6, 13, int(face.locator("input[name=v]").input_value()))
        assert face.locator(".dl-message").inner_text() == str(error.value)
        schedule.select_option("1f1b")
        face.screenshot(path=shots / f"explorer-{theme}-{width}.png")
