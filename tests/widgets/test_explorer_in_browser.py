"""The explorer's static face, driven by mouse and keyboard, alone on a page from ``file://``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distlearn.pipeline import Costs, Timeline, build, simulate
from distlearn.plots import describe
from distlearn.plots.numbers import number, percent
from distlearn.widgets import PipelineExplorer
from distlearn.widgets.pipeline_explorer import SCHEDULES
from tests.widgets.pages import assert_announced, quiet_page

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """A page with two explorers; at the end, no error, no request, no new global name."""
    faces = "".join(PipelineExplorer(*setting, schedules=SCHEDULES).static_html()
                    for setting in (("1f1b", 4, 8), ("zb_h1", 2, 3)))
    with quiet_page(chromium, tmp_path, faces) as page:
        yield page


def value(face: Any, name: str) -> str:
    return str(face.locator(f"xpath=.//dt[.='{name}']/following-sibling::dd[1]").inner_text())


def assert_shows(face: Any, timeline: Timeline) -> None:
    assert value(face, "makespan") == number(timeline.makespan, 6)
    assert value(face, "bubble / makespan") == percent(timeline.bubble_fraction)
    assert value(face, "bubble / ideal") == percent(timeline.bubble_over_ideal)
    peak = max(timeline.peak_activations) / timeline.schedule.v
    assert value(face, "peak activations") == number(peak)
    assert face.locator("svg desc").text_content() == describe(timeline)


def test_keyboard(page: Any) -> None:
    face, other = page.locator(".dl-face").all()
    assert_shows(face, simulate(build("1f1b", 4, 8)))
    page.keyboard.press("Tab")
    page.keyboard.type("gp")  # the first control is the list of schedules
    assert_shows(face, simulate(build("gpipe", 4, 8)))
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert_shows(face, simulate(build("gpipe", 5, 32)))
    page.keyboard.press("Tab")  # v is off, so the limit is next
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert_shows(face, simulate(build("gpipe", 5, 32), Costs(F=0.9, B=2.1)))
    assert_shows(other, simulate(build("zb_h1", 2, 3)))


def test_mouse(page: Any) -> None:
    face = page.locator(".dl-face").first
    slider = face.locator("input[name=comm]")
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    comm = float(slider.input_value())
    assert 0.5 < comm < 2.5
    assert slider.locator("xpath=../output").inner_text() == number(comm)
    assert_shows(face, simulate(build("1f1b", 4, 8), Costs(comm=comm)))
    assert f"needs comm=0; got comm={comm}" in face.locator(".dl-numbers p").inner_text()


def test_boxes_say_what_they_are(page: Any) -> None:
    face = page.locator(".dl-face").first
    picture, words = face.locator(".dl-scroll"), face.locator(".dl-pointed")
    picture.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert words.inner_text() == (
        "F2.0: forward, stage 2, microbatch 0; rank 2, from 2 to 3")
    idle = face.locator("svg > rect.dl-idle").nth(1)
    box = idle.bounding_box()
    unit = box["width"] / 33  # the makespan
    page.mouse.move(box["x"] + 10.5 * unit, box["y"] + 5)
    assert words.inner_text() == (
        "B0.0: backward, stage 0, microbatch 0; rank 0, from 10 to 12")
    page.mouse.move(box["x"] + 8 * unit, box["y"] + 5)
    assert "Point at a box" in words.inner_text()  # idle


def test_refusal_in_place_of_the_picture(page: Any) -> None:
    face = page.locator(".dl-face").first
    face.locator("select[name=schedule]").select_option("interleaved_1f1b")
    assert_shows(face, simulate(build("interleaved_1f1b", 4, 8, 2), Costs(F=0.5, B=1)))
    face.locator("input[name=m]").fill("9")
    with pytest.raises(ValueError) as error:
        build("interleaved_1f1b", 4, 9, 2)
    assert face.locator(".dl-message").inner_text() == str(error.value)
    assert not face.locator("svg").is_visible()
    face.locator("input[name=m]").fill("12")
    assert not face.locator(".dl-message").is_visible()
    assert_shows(face, simulate(build("interleaved_1f1b", 4, 12, 2), Costs(F=0.5, B=1)))


def test_orders_zoom_and_announcement(page: Any) -> None:
    face = page.locator(".dl-face").nth(1)
    face.locator("summary").click()
    page.wait_for_function(  # the list is filled by an event that follows the click
        "document.querySelectorAll('.dl-face')[1].querySelector('.dl-orders').innerText")
    assert face.locator(".dl-orders").inner_text().startswith("rank 0 F0.0 (0 to 1), F0.1 (1 to 2)")
    before = face.locator("svg").bounding_box()["width"]
    face.locator("select[name=zoom]").select_option("2")
    assert face.locator("svg").bounding_box()["width"] == pytest.approx(2 * before, abs=2)
    face.locator("input[name=m]").fill("5")
    assert_announced(page, 1, describe(simulate(build("zb_h1", 2, 5))))
    assert page.locator("[role=status]").first.text_content() == ""  # nothing was done there
    assert face.locator("code").first.inner_text() == (
        'simulate(build("zb_h1", p=2, m=5), Costs(F=1, B=2, W=1))')


@pytest.mark.parametrize("width", [390, 1280])
def test_follows_the_page(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    face = page.locator(".dl-face").first
    page.wait_for_function(
        "() => { var s = document.querySelector('.dl-scroll'); "
        "return Math.abs(s.scrollWidth - s.clientWidth) <= 1; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    fills = []
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        fills.append(face.locator("g.dl-F0").first.evaluate("e => getComputedStyle(e).fill"))
    assert fills == ["rgb(18, 73, 163)", "rgb(85, 154, 249)"]
    assert re.search(r"F0\.0|F forward", face.locator("svg").inner_html())
