"""Tables: read by a Markdown parser, every cell arrives in its column as it was."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from distlearn.plots import table


class Cells(HTMLParser):
    """Text and alignment of all cells of a table in HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.aligned: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "th":
            self.aligned.append((dict(attributes).get("style") or "").removeprefix("text-align:"))

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


def read(markdown: str) -> Cells:
    return Cells(MarkdownIt("commonmark").enable("table").render(markdown))


PLAIN = st.text(st.sampled_from("ab|1 \\"), max_size=6).map(str.strip).filter(
    lambda text: "\\" not in text)


@given(st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(PLAIN, min_size=n, max_size=n), max_size=4)))
def test_every_cell_arrives(rows: list[list[str]]) -> None:
    width = len(rows[0]) if rows else 2
    seen = read(str(table(" | ".join(["head"] * width), rows)))
    assert seen.rows == [["head"] * width, *rows]


def test_numbers_are_rounded_and_set_to_the_right() -> None:
    rows = [["1f1b", 1 / 3, 7, "12.5%", "", "ring"], ["zb_h1", np.float64(1e-9), -7, "–", 1, "2D"]]
    seen = read(table("name | x | n | share | some | kind", rows)._repr_markdown_())
    assert seen.rows[1:] == [["1f1b", "0.3333", "7", "12.5%", "", "ring"],
                             ["zb_h1", "1e-09", "-7", "–", "1", "2D"]]
    assert seen.aligned == ["left", "right", "right", "right", "right", "left"]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"each of its 2 headings; rows\[1\] has 3: \['1', '2'"):
        table("a | b", [[1, 2], [1, 2, 3]])
