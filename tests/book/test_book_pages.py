"""The built book: no page asks for anything from outside, and every chapter brings its notebook.

Needs a built book (``make book``); the browser tests open the same pages.
"""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from distlearn.pipeline import NAMES

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "book" / "_build" / "html"
PAGES = sorted(BUILT.glob("*.html"))
CHAPTERS = [p.stem for p in sorted((ROOT / "book").glob("*.md")) if "kernelspec:" in p.read_text()]

pytestmark = pytest.mark.skipif(
    not (BUILT / "index.html").exists(), reason="the book is not built: run make book")

OUTSIDE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
FETCHED = {  # attributes that a browser loads without being asked
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "embed": ("src",), "object": ("data",),
    "link": ("href",), "image": ("href", "xlink:href"), "use": ("href", "xlink:href"),
}
LINKS_NOT_FETCHED = {"canonical", "alternate", "next", "prev", "index", "search", "author"}


class Fetches(HTMLParser):
    """What a page makes the browser fetch: addresses in tags, in styles and in scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self._inside = tag
        if tag == "link" and set(values.get("rel", "").split()) <= LINKS_NOT_FETCHED:
            return
        for name in FETCHED.get(tag, ()):
            if name in values:
                self.addresses.append(values[name])
        self.addresses += css_addresses(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.addresses += css_addresses(data)
        elif self._inside == "script":
            self.addresses += script_addresses(data)


def css_addresses(css: str) -> list[str]:
    """Addresses in ``url(...)`` and ``@import``."""
    found = re.findall(r"""url\(\s*["']?([^"')]+)""", css)
    return found + re.findall(r"""@import\s+["']([^"']+)""", css)


def script_addresses(script: str) -> list[str]:
    """Addresses that a script imports, fetches or sets as a source."""
    call = r"(?:\bimport\s*\(?|\bfrom\s|\bfetch\s*\(|importScripts\s*\(|\.src\s*=)"
    return re.findall(call + r"""\s*["']([^"']+)""", script)


def outside(html: str) -> list[str]:
    """Addresses outside the book that a page fetches."""
    parser = Fetches()
    parser.feed(html)
    return [address for address in parser.addresses if OUTSIDE.match(address)]


@pytest.mark.parametrize("html", [
    '<script src="https://cdn.example/x.js"></script>',
    '<link rel="stylesheet" href="//cdn.example/x.css">',
    "<style>@import 'https://fonts.example/f.css';</style>",
    '<p style="background: url(http://x.example/y.png)">',
    '<script type="module">import x from "https://esm.example/x"</script>',
    '<img srcset="https://x.example/y.png 2x">',
])
def test_the_scan_sees_what_is_fetched(html: str) -> None:
    assert outside(html)


def test_the_scan_lets_ordinary_links_be() -> None:
    assert not outside('<a href="https://doi.org/x">x</a><link rel="canonical" href="https://y">')


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_fetches_anything_from_outside(page: Path) -> None:
    assert not outside(page.read_text(encoding="utf-8"))


def test_no_style_sheet_fetches_anything_from_outside() -> None:
    sheets = list(BUILT.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        css = sheet.read_text(encoding="utf-8")
        assert not [a for a in css_addresses(css) if OUTSIDE.match(a)], sheet


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_needs_requirejs_or_thebe(page: Path) -> None:
    text = page.read_text(encoding="utf-8").lower()
    assert not re.findall(r"""(?:src|href)=["'][^"']*(?:require|thebe|html-manager)[^"']*""", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_cells_leave_no_stray_output(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "&lt;Figure size" not in text and "&lt;Axes:" not in text
    assert "\x1b[" not in text and "Traceback (most recent" not in text
    assert not re.search(r"\b\w*Warning: ", text)


def test_figures_are_svg_and_follow_the_page_to_dark_mode() -> None:
    figures = [path for path in (BUILT / "_images").iterdir() if path.is_file()]
    assert figures and {path.suffix for path in figures} == {".svg"}
    assert all("prefers-color-scheme:dark" in path.read_text("utf-8") for path in figures)


def test_the_table_of_all_schedules_is_in_the_page_itself() -> None:
    text = (BUILT / "pipeline-choose.html").read_text(encoding="utf-8")
    table = re.search(r'class="[^"]*tag_sortable.*?<tbody>(.*?)</tbody>', text, re.DOTALL)
    assert table
    cells = [row.split("<td", 2)[1] for row in table[1].split("<tr")[1:]]
    names = [re.sub(r"<[^>]*>", " ", f"<td{cell}").split()[0] for cell in cells]
    assert sorted(names) == sorted(NAMES)
    pages = [re.search(r'href="(pipeline[\w-]*\.html)', cell) for cell in cells]
    for name, page in zip(names, pages, strict=True):  # each leads to what explains it
        assert page and name in (BUILT / page[1]).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_brings_its_notebook(name: str) -> None:
    page = (BUILT / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="_sources/{name}.ipynb"' in page  # in the header's download menu
    text = (BUILT / "_sources" / f"{name}.ipynb").read_text(encoding="utf-8")
    if name != "index":  # and in the bar below the title, where it works from file:// too
        assert f"book/{name}.md" in page
        link = re.search(rf'href="data:[^,"]+;base64,([^"]+)" download="{name}.ipynb"', page)
        assert link and base64.b64decode(link[1]).decode() == text
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and not any(cell.outputs for cell in code)
    assert notebook.metadata.kernelspec.name == "python3"
