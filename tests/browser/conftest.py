"""A headless Chromium on the built book, straight from ``file://``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book" / "_build" / "html"
SHOTS = ROOT / "build" / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not (BOOK / "index.html").exists():
                item.add_marker(pytest.mark.skip(reason="the book is not built: run make book"))


@pytest.fixture
def visit(chromium: Any) -> Callable[..., Any]:
    """Open a page of the book; at the end, no error was logged and nothing left the page."""

    @contextmanager
    def opened(
        page_name: str, *, theme: str = "light", width: int = 1280, query: str = ""
    ) -> Iterator[Any]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900 if width > 600 else 844},
            color_scheme=theme,
            reduced_motion="reduce",
        )
        context.add_init_script(
            f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}');"
        )
        page = context.new_page()
        trouble: list[str] = []
        page.on("console", lambda m: trouble.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda r: trouble.append(f"outside request {r.url}")
            if not r.url.startswith(("file:", "data:", "blob:"))
            else None,
        )
        page.goto(f"{(BOOK / page_name).as_uri()}?{query}".rstrip("?"), wait_until="load")
        page.wait_for_function("!window.MathJax || !MathJax.startup || !MathJax.startup.promise"
                               " || MathJax.startup.promise.then(() => true)")
        yield page
        context.close()
        assert not trouble, trouble

    return opened


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots are left to be looked at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS
