"""An explorer's scripts without a browser, and a page in one that must stay quiet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py_mini_racer import MiniRacer

from distlearn.widgets.face import asset


class Scripts:
    """The scripts of a static face and its data, without a browser."""

    def __init__(self, explorer: Any) -> None:
        self.engine = MiniRacer()
        for name in explorer.scripts:
            self.engine.eval(asset(f"js/{name}"))
        self.data = json.dumps(explorer.static_data(), separators=(",", ":"))
        self.engine.eval(f"var data = {self.data};")

    def call(self, expression: str) -> Any:
        return json.loads(str(self.engine.eval(f"JSON.stringify({expression})")))


@contextmanager
def scripts(explorer: Any) -> Iterator[Scripts]:
    """The scripts, and an end to their engine."""
    found = Scripts(explorer)
    yield found
    found.engine.close()


@contextmanager
def quiet_page(chromium: Any, folder: Path, faces: str) -> Iterator[Any]:
    """A page with these faces; at the end, no error, no request, no new global name."""
    file = folder / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>two</title>'
        f"<script>var before = Object.keys(window);</script>{faces}", encoding="utf-8")
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url))
    page.goto(file.as_uri())
    yield page
    added = page.evaluate("Object.keys(window).filter(k => !before.includes(k) && k !== 'before'"
                          " && !k.startsWith('__pw'))")
    page.close()
    assert trouble == [file.as_uri()]
    assert added == []


def assert_announced(page: Any, face: int, words: str) -> None:
    """A screen reader is told these words at last.

    On a slow machine, a pause of the test is a pause of the reader: what was shown meanwhile
    may have been announced before.
    """
    from playwright.sync_api import expect

    expect(page.locator("[role=status]").nth(face)).to_have_text(words, timeout=30_000)
