"""The report of a launch: the source shaded by cost, in text and in a notebook."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from distlearn.kernels import kernels_from_text
from distlearn.kernels.report import SHADES, costs

TEXT = """\
def f(out, a):
    i = cuda.grid(1)
    x = a[i] * float32(2.0)
    if x < a[0]:
        out[i] = x
"""


@pytest.fixture(scope="module")
def report():
    a = np.arange(64, dtype=np.float32) + 1
    return kernels_from_text(TEXT)["f"][2, 32](np.zeros(64, np.float32), a * 0 + a[::-1])


def test_shares_are_of_sectors_tests_and_operations(report):
    # Line 3: 4 sectors and one operation of a warp, twice; line 4: a sector and a test, twice.
    turns = {3: 10, 4: 4, 5: 4}
    rows = costs(report.counters.by_line)
    assert sum(share for share, _ in rows.values()) == pytest.approx(1)
    assert {line: share for line, (share, _) in rows.items()} == pytest.approx(
        {line: n / sum(turns.values()) for line, n in turns.items()})


def test_listing_says_the_share_with_and_without_colour(report):
    plain, coloured = report.listing(), report.listing(colour=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    lines = plain.splitlines()
    assert len(lines) == 5
    shares = [float(m[1]) if (m := re.search(r"(\d+\.\d)%", line)) else 0 for line in lines]
    assert max(shares) == shares[2]
    assert all(line.count("#") >= 1 for line, share in zip(lines, shares, strict=True) if share)
    assert f"48;5;{SHADES[-1][0]}m" in coloured.splitlines()[2]


def test_notebooks_get_a_table_with_headings_and_escaped_source(report):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.cells, self.code, self.told = [], [], [], ""
            self.headings = []

        def handle_starttag(self, tag, attributes):
            self.open.append(tag)
            self.cells += [dict(attributes)] if tag == "td" else []
            self.headings += [dict(attributes)] if tag == "th" else []

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            if self.open == ["pre", "code"]:
                self.told += data
            elif self.open[-1] == "code":
                self.code += [data]

    reader = Reader()
    reader.feed(report._repr_html_())
    assert not reader.open
    assert reader.told == str(report)
    side = re.compile(r"text-align:(\w+)")
    assert [side.search(cell["style"])[1] for cell in reader.cells[:4]] \
        == [side.search(heading["style"])[1] for heading in reader.headings] \
        == ["right", "right", "left", "left"]
    assert "".join(f"{line}\n" for line in reader.code) == TEXT
    assert SHADES[-1][1] in reader.cells[4 * 2 + 2]["style"]


def _luminance(colour):
    parts = [int(colour[n:n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_shades_differ_in_lightness_and_black_reads_on_them():
    lightness = [_luminance(css) for _, css in SHADES]
    assert sorted(lightness, reverse=True) == lightness
    assert all((light + 0.05) / 0.05 >= 4.5 for light in lightness)
