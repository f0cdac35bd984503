"""The explorers in a browser, by mouse and keyboard, alone on pages from ``file://``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from distlearn.widgets import (
    BankConflictExplorer,
    CoalescingExplorer,
    CubeTimeline,
    OccupancyExplorer,
    RooflineExplorer,
    ThreadIndexExplorer,
    WarpStepper,
)
from distlearn.widgets.panel import Panel

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[1] / "browser" / "vendor" / "axe.min.js"


PANELS = (CoalescingExplorer, BankConflictExplorer, ThreadIndexExplorer, OccupancyExplorer,
          WarpStepper, CubeTimeline, RooflineExplorer)


@pytest.fixture(scope="module")
def show(chromium: Any, tmp_path_factory: pytest.TempPathFactory
         ) -> Iterator[Callable[..., Any]]:
    """Opens a page with these panels; at the end: no error, no request, no new global name."""
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    file = tmp_path_factory.mktemp("panels") / "page.html"
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url)
            if request.url != file.as_uri() else None)

    def opened(*panels: Panel) -> Any:
        file.write_text(
            '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>panels</title>'
            "<script>var before = Object.keys(window);</script><main><h1>panels</h1>"
            f"{''.join(panel.static_html() for panel in panels)}</main>", encoding="utf-8")
        page.goto(file.as_uri())
        faces = page.locator(".dl-face").all()
        for face, panel in zip(faces, panels, strict=True):
            assert_shows(face, panel)
        return faces[0]

    yield opened
    page.close()
    assert not trouble


def assert_shows(face: Any, panel: Panel) -> None:
    """What the page shows is what Python says of the same setting."""
    view = panel.view()
    assert face.locator("dd.dl-value").all_inner_texts() == [row[1] for row in view.numbers]
    assert face.locator(".dl-words").inner_text() == view.words
    assert face.locator(".dl-message").inner_text() == view.message
    assert face.locator(".dl-scroll svg").get_attribute("aria-label") == view.words


def press(face: Any, *keys: str) -> None:
    face.locator(".dl-scroll").focus()
    for key in keys:
        face.page.keyboard.press(key)


def test_coalescing(show: Callable[..., Any]) -> None:
    face = show(CoalescingExplorer())
    press(face, "ArrowRight", "ArrowDown", "PageDown")
    assert_shows(face, CoalescingExplorer(lane=1, moved={1: 34}))
    face.locator('[data-pick="lane:3"]').click()
    face.locator('[data-pick="element:40"]').click()
    assert_shows(face, CoalescingExplorer(lane=3, moved={1: 34, 3: 40}))
    press(face, "Delete", "Home")
    assert_shows(face, CoalescingExplorer(moved={1: 34}))
    face.locator("[name=stride]").fill("2")  # a pattern takes all lanes along
    face.locator("[name=item]").select_option("8")
    assert_shows(face, CoalescingExplorer(stride=2, item_bytes=8))
    face.locator("[name=pattern]").focus()
    face.page.keyboard.type("sh")
    assert_shows(face, CoalescingExplorer("shuffled", stride=2, item_bytes=8))


def test_thread_indices(show: Callable[..., Any]) -> None:
    face = show(ThreadIndexExplorer())
    press(face, "ArrowDown", "ArrowRight", "End", "PageDown")
    assert_shows(face, ThreadIndexExplorer(thread=(23, 3)))  # out of the array
    face.locator('[data-pick="thread:30"]').click()
    assert_shows(face, ThreadIndexExplorer(thread=(6, 1)))
    face.locator('[name="blockDim.z"]').fill("4")
    press(face, "PageDown", "PageDown")
    assert_shows(face, ThreadIndexExplorer((8, 4, 4), (3, 2), (21, 7), (6, 1, 2)))
    face.locator('[name="blockDim.x"]').fill("2")  # the thread stays within the grid
    assert_shows(face, ThreadIndexExplorer((2, 4, 4), (3, 2), (21, 7), (5, 1, 2)))


def test_bank_conflicts(show: Callable[..., Any]) -> None:
    face = show(BankConflictExplorer())
    press(face, "End", "ArrowUp", "PageUp")
    assert_shows(face, BankConflictExplorer(lane=31, moved={31: 959}))
    face.locator('[data-pick="bank:7"]').last.click()  # the next element in that bank
    assert_shows(face, BankConflictExplorer(lane=31, moved={31: 967}))
    face.locator("[name=swizzle]").check()
    assert_shows(face, BankConflictExplorer(lane=31, moved={31: 967}, swizzle=True))
    face.locator("[name=swizzle]").uncheck()
    face.locator("[name=padding]").fill("1")
    face.locator("[name=item]").select_option("16")
    face.locator("[name=offset]").fill("5")
    assert_shows(face, BankConflictExplorer(offset=5, padding=1, item_bytes=16, lane=31))


def test_occupancy(show: Callable[..., Any]) -> None:
    face = show(OccupancyExplorer())
    press(face, "ArrowRight", "ArrowUp", "ArrowUp")
    assert_shows(face, OccupancyExplorer(threads=288, registers=66))
    face.locator('[data-pick="threads:1024"]').click()
    face.locator("[name=device]").select_option("H100-SXM5-80GB")
    face.locator("[name=shared]").fill("240000")  # more than there is: not taken
    face.locator("[name=registers]").fill("255")
    assert_shows(face, OccupancyExplorer("H100-SXM5-80GB", 1024, 255))  # cannot launch
    face.locator("[name=shared]").fill("9000")
    assert_shows(face, OccupancyExplorer("H100-SXM5-80GB", 1024, 255, 9000))


def test_warp_steps(show: Callable[..., Any]) -> None:
    face = show(WarpStepper())
    press(face, "ArrowRight", "ArrowRight", "ArrowDown")
    assert_shows(face, WarpStepper(step=2, lane=1))
    assert face.locator("[aria-current=step]").inner_text().strip() == "4         v = x[i] * 2"
    face.locator('[data-go="End"]').click()
    face.locator('[data-pick="lane:9"]').last.click()
    assert_shows(face, WarpStepper(step=5, lane=9))
    name = "the same without its barrier"
    face.locator("[name=kernel]").select_option(name)
    assert_shows(face, WarpStepper(kernel=name))
    face.locator("[name=step]").fill("7")
    assert_shows(face, WarpStepper(kernel=name, step=7))  # the race, in its own words
    assert face.locator(".dl-message").inner_text().startswith("race: threads 0")


def test_warp_plays_to_the_end_and_stops(show: Callable[..., Any]) -> None:
    face = show(WarpStepper())
    player, clock = face.locator('[data-go="play"]'), face.page.clock
    clock.install()
    show(WarpStepper())
    player.focus()
    face.page.keyboard.press("Enter")
    assert_shows(face, WarpStepper(step=1))
    assert (player.inner_text(), player.get_attribute("aria-label")) == ("pause", "pause")
    clock.run_for(3000)
    assert_shows(face, WarpStepper(step=3))
    press(face, "ArrowLeft")  # the reader takes over
    clock.run_for(6000)
    assert_shows(face, WarpStepper(step=2))
    player.click()
    clock.run_for(9000)
    assert_shows(face, WarpStepper(step=5))
    assert player.inner_text() == "play"
    player.click()  # again, from the start
    assert_shows(face, WarpStepper(step=0))


def test_cube_timeline(show: Callable[..., Any]) -> None:
    face = show(CubeTimeline())
    press(face, "ArrowRight", "ArrowRight")
    assert_shows(face, CubeTimeline(event=2))
    face.locator('[data-pick="event:9"]').click()
    assert_shows(face, CubeTimeline(event=9))
    face.locator("[name=l0]").uncheck()
    assert_shows(face, CubeTimeline(l0_double=False))
    face.locator("[name=forget]").select_option("M for MTE1: step is used")
    assert_shows(face, CubeTimeline(l0_double=False, forget="M for MTE1: step is used"))
    face.locator("[name=tile]").select_option("256 x 256")
    assert face.locator(".dl-message").inner_text().startswith("overflow: L0C overflows by")
    assert face.locator("[data-pick]").count() == 0
    press(face, "End")


def test_roofline(show: Callable[..., Any]) -> None:
    face = show(RooflineExplorer())
    press(face, "ArrowLeft", "ArrowDown")
    assert_shows(face, RooflineExplorer(M=2048, N=2048, K=2048, rung="vectorised"))
    face.locator('[data-pick="rung:0"]').click()
    face.locator("[name=K]").fill("200")  # no multiple of 128: not taken
    face.locator("[name=M]").fill("256")
    assert face.locator("[name=K]").input_value() == "2048"
    assert_shows(face, RooflineExplorer(M=256, N=2048, K=2048, rung="naive_rows"))
    face.locator("[name=dtype]").select_option("float16")
    face.locator("[name=device]").select_option("B200-SXM-180GB")
    assert_shows(face, RooflineExplorer("B200-SXM-180GB", "float16", 256, 2048, 2048,
                                        "naive_rows"))  # which has no such rate
    face.locator("[name=rung]").select_option("tensor_core")
    assert_shows(face, RooflineExplorer("B200-SXM-180GB", "float16", 256, 2048, 2048))


def test_all_on_one_page(show: Callable[..., Any]) -> None:
    page = show(*(panel() for panel in PANELS)).page
    added = page.evaluate("Object.keys(window).filter(k => !before.includes(k) && k !== 'before'"
                          " && !k.startsWith('__pw'))")
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert (added, page.evaluate("axe.run().then(r => r.violations.map(v => v.id))")) == ([], [])
