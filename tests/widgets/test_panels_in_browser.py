"""The explorers in a browser, by mouse and keyboard, alone on pages from ``file://``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from distlearn.widgets import CoalescingExplorer
from distlearn.widgets.panel import Panel

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[1] / "browser" / "vendor" / "axe.min.js"


@pytest.fixture
def face_of(chromium: Any, tmp_path: Path) -> Iterator[Callable[[Panel], Any]]:
    """Shows a panel; at the end: no error, no request, no new name, axe clean, dark and narrow."""
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url))
    file = tmp_path / "page.html"

    def opened(panel: Panel) -> Any:
        file.write_text(
            '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>one</title>'
            "<script>var before = Object.keys(window);</script>"
            f"<main><h1>one</h1>{panel.static_html()}</main>", encoding="utf-8")
        page.goto(file.as_uri())
        face = page.locator(".dl-face")
        assert_shows(face, panel)
        return face

    yield opened
    added = page.evaluate("Object.keys(window).filter(k => !before.includes(k) && k !== 'before'"
                          " && !k.startsWith('__pw'))")
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function("document.querySelector('.dl-scroll svg').clientWidth <= 900")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(AXE.read_text(encoding="utf-8"))
    broken = page.evaluate("axe.run().then(r => r.violations.map(v => v.id))")
    page.close()
    assert (trouble, added, broken) == ([file.as_uri()], [], [])


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


def test_coalescing(face_of: Callable[[Panel], Any]) -> None:
    face = face_of(CoalescingExplorer())
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
