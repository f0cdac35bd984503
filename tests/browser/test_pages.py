"""Every built page: no error, no outside request, readable on a phone, accessible, both themes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import BOOK

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
GENERATED = {"genindex.html", "search.html"}
PAGES = sorted(
    str(path.relative_to(BOOK))
    for path in BOOK.rglob("*.html")
    if path.name not in GENERATED and not path.relative_to(BOOK).parts[0].startswith("_")
) or ["index.html"]


def test_axe_is_the_vendored_one() -> None:
    readme = (AXE.parent / "README.md").read_text()
    wanted = re.search(r"SHA-256 ([0-9a-f]{64})", readme)
    assert wanted and hashlib.sha256(AXE.read_bytes()).hexdigest() == wanted[1]


# Displayed formulas that a reader would have to scroll, and labels that leave their picture.
CUT_OFF = """async () => {
  await window.MathJax?.startup?.promise;
  const all = selector => [...document.querySelectorAll(selector)];
  const wide = all('mjx-container[display=true]').filter(f => f.scrollWidth > f.clientWidth + 2);
  const cut = all('article svg:not(mjx-container svg) text').filter(text => {
    const inner = text.getBoundingClientRect();
    const outer = text.ownerSVGElement.getBoundingClientRect();
    return inner.right > outer.right + 2 || inner.left < outer.left - 2;
  });
  return wide.concat(cut).map(element => element.textContent);
}"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_page(
    visit: Callable[..., Any], shots: Path, name: str, theme: str, width: int
) -> None:
    with visit(name, theme=theme, width=width) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        stem = name.removesuffix(".html").replace("/", "-")
        page.screenshot(path=shots / f"{stem}-{theme}-{width}.png", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{name} scrolls sideways by {wide} px at {width} px"
        assert page.evaluate(CUT_OFF) == []
        page.evaluate(AXE.read_text())
        result = page.evaluate(
            "axe.run(document, {resultTypes: ['violations'], preload: false})"
            ".then(r => r.violations)"
        )
        serious = [
            f"{violation['id']}: {violation['help']}: {node['html'][:160]}"
            for violation in result
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
        assert not serious, "\n".join(serious)


@pytest.mark.parametrize(("theme", "other"), [("light", "dark"), ("dark", "light")])
def test_a_first_visit_follows_the_system_and_the_switch_works_at_once(
    chromium: Any, theme: str, other: str
) -> None:
    page = chromium.new_page(color_scheme=theme)
    page.goto((BOOK / "index.html").as_uri())
    shown = "document.documentElement.dataset.theme"
    assert page.evaluate(shown) == theme
    page.locator("button.theme-switch-button").first.click()
    assert page.evaluate(shown) == other
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_has_a_text_alternative_and_every_local_link_leads_somewhere(
    visit: Callable[..., Any], name: str
) -> None:
    with visit(name) as page:
        bare = page.evaluate(
            "[...document.querySelectorAll('main img')].filter(i => !i.alt.trim()).map(i => i.src)"
        )
        assert not bare
        links = page.evaluate(
            "[...document.querySelectorAll('a[href]')].map(a => a.href.split('#')[0])"
            ".filter(h => h.startsWith('file:'))"
        )
        dead = [link for link in sorted(set(links)) if not page_exists(link)]
        assert not dead


def page_exists(uri: str) -> bool:
    from urllib.parse import unquote, urlparse

    return Path(unquote(urlparse(uri).path)).exists()


def test_search_finds_a_schedule(visit: Callable[..., Any]) -> None:
    with visit("search.html", query="q=interleaved") as page:
        page.wait_for_selector("#search-results li a[href*=pipeline]")  # they come one by one


def test_a_public_call_opens(visit: Callable[..., Any]) -> None:
    with visit("calls.html", width=390) as page:
        call = page.locator("[id='distlearn.pipeline.build']")
        assert not call.locator("pre").is_visible()
        call.locator("summary").press("Enter")
        assert "Pipeline ranks, microbatches, virtual stages" in call.locator("pre").inner_text()


def test_the_table_of_all_schedules_sorts(visit: Callable[..., Any]) -> None:
    with visit("pipeline-choose.html", width=390) as page:
        headings = page.locator(".tag_sortable th")
        heads = headings.all_inner_texts()

        def column(k: int) -> list[str]:
            cells = page.locator(f".tag_sortable td:nth-child({k + 1})")
            return list(cells.all_inner_texts())

        before = column(0)
        assert len(before) == 31 and page.locator(".tag_sortable th[aria-sort]").count() == 0
        for k, head in enumerate(heads):
            for order in ("ascending", "descending"):
                headings.nth(k).get_by_role("button").press("Enter")
                sorting = page.locator(".tag_sortable th[aria-sort]")
                assert sorting.count() == 1 and sorting.get_attribute("aria-sort") == order
                assert sorting.inner_text() == head
                cells = column(k)
                if cells[0][:1].isdigit() and k:
                    numbers = [float(cell.rstrip("%")) for cell in cells]
                    assert numbers == sorted(numbers, reverse=order == "descending")
            assert sorted(column(0)) == sorted(before)
