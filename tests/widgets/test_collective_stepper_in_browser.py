"""The stepper's static face, driven by mouse and keyboard, alone on a page from ``file://``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distlearn.plots import describe_collective, trace
from distlearn.plots.collective_trace import cell_in_words, step_in_words
from distlearn.widgets import CollectiveStepper
from tests.widgets.pages import assert_announced, quiet_page

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """A page with two steppers; at the end, no error, no request, no new global name."""
    faces = (CollectiveStepper().static_html()
             + CollectiveStepper("all_reduce", "hierarchical", 8, step=3).static_html())
    with quiet_page(chromium, tmp_path, faces) as page:
        yield page


def assert_shows(face: Any, operation: str, algorithm: str, p: int, step: int,
                 per_node: int | None = None) -> None:
    one = trace(operation, algorithm, p, per_node)
    assert face.locator("svg desc").text_content() == describe_collective(one, step)
    assert face.locator(".dl-words").inner_text() == step_in_words(one, step)
    assert face.locator("dd.dl-value").first.inner_text() == f"{step} of {one.steps}"


def test_keyboard(page: Any) -> None:
    face, other = page.locator(".dl-face").all()
    assert_shows(face, "all_reduce", "ring", 4, 0)
    assert_shows(other, "all_reduce", "hierarchical", 8, 3, 4)
    picture = face.locator(".dl-scroll")
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert_shows(face, "all_reduce", "ring", 4, 2)
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # there is no step after the last
    assert_shows(face, "all_reduce", "ring", 4, 6)
    page.keyboard.press("ArrowLeft")
    assert_shows(face, "all_reduce", "ring", 4, 5)
    page.keyboard.press("Home")
    assert_shows(face, "all_reduce", "ring", 4, 0)
    page.keyboard.press("Shift+Tab")  # back to the slider of steps
    page.keyboard.press("ArrowRight")
    assert_shows(face, "all_reduce", "ring", 4, 1)
    face.locator("select[name=operation]").focus()
    page.keyboard.type("all_g")
    page.keyboard.press("Tab")
    page.keyboard.type("t")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert_shows(face, "all_gather", "tree", 8, 0)
    assert_shows(other, "all_reduce", "hierarchical", 8, 3, 4)
    assert_announced(page, 0, describe_collective(trace("all_gather", "tree", 8), 0))
    assert page.locator("[role=status]").nth(1).text_content() == ""


def test_mouse(page: Any) -> None:
    face = page.locator(".dl-face").first
    buttons = {name: face.locator(f"[data-go={name}]")
               for name in ("first", "back", "play", "next", "last")}
    assert buttons["first"].is_disabled() and buttons["back"].is_disabled()
    buttons["next"].click()
    assert_shows(face, "all_reduce", "ring", 4, 1)
    assert face.locator(".dl-packet").count() in (0, 4)  # gone when they have arrived
    buttons["last"].click()
    assert buttons["next"].is_disabled() and buttons["last"].is_disabled()
    buttons["back"].click()
    assert_shows(face, "all_reduce", "ring", 4, 5)
    one = trace("all_reduce", "ring", 4)
    boxes = face.locator("svg g.dl-idle rect")
    for index in (0, 5, 15):  # the cells, rank by rank
        boxes.nth(index).hover(force=True)
        assert face.locator(".dl-pointed").inner_text() == cell_in_words(one, 5, *divmod(index, 4))
    face.locator("summary").click()
    assert face.locator(".dl-orders p").nth(2).inner_text().startswith(
        f"rank 2 has sent {one.sent_by(2, 5)} bytes; ")


def test_play_goes_to_the_end_and_stops(page: Any) -> None:
    face = page.locator(".dl-face").first
    face.locator("select[name=algorithm]").select_option("recursive_doubling")
    page.clock.install()
    play = face.locator("[data-go=play]")
    play.click()
    assert play.inner_text() == "pause"
    assert_shows(face, "all_reduce", "recursive_doubling", 4, 1)
    page.clock.run_for(1600)
    assert_shows(face, "all_reduce", "recursive_doubling", 4, 2)
    page.clock.run_for(3000)
    assert_shows(face, "all_reduce", "recursive_doubling", 4, 2)
    assert play.inner_text() == "play"
    play.click()  # again, from the start
    assert_shows(face, "all_reduce", "recursive_doubling", 4, 0)
    play.click()
    assert play.inner_text() == "play"


def test_refusal_in_place_of_the_picture(page: Any) -> None:
    face = page.locator(".dl-face").nth(1)
    face.locator("select[name=operation]").select_option("reduce_scatter")
    assert_shows(face, "reduce_scatter", "hierarchical", 8, 0, 4)
    face.locator("input[name=p]").fill("5")
    with pytest.raises(ValueError) as error:
        trace("reduce_scatter", "hierarchical", 5, 3)
    assert face.locator(".dl-message").inner_text() == str(error.value)
    assert not face.locator("svg").is_visible()
    assert face.locator("[data-go=play]").is_disabled()
    face.locator("input[name=p]").fill("6")
    assert_shows(face, "reduce_scatter", "hierarchical", 6, 0, 3)


def test_no_movement_for_readers_who_want_none(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    face = page.locator(".dl-face").first
    face.locator("[data-go=next]").click()
    assert face.locator(".dl-packet").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_follows_the_page(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(
        "() => { var s = document.querySelector('.dl-scroll'); "
        "return s.scrollWidth - s.clientWidth <= 1; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    face, fills = page.locator(".dl-face").first, []
    face.locator("[data-go=next]").click()
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        fills.append(face.locator("g.dl-new").first.evaluate("e => getComputedStyle(e).fill"))
    assert fills == ["rgb(180, 74, 5)", "rgb(252, 136, 58)"]
