"""The ladder figure: its points are the time model's and the published ones, its text says them."""

import pytest

from distlearn.kernels.gemm import GEMM
from distlearn.plots.ladder import ladder, ladder_steps, ladder_text

NAMES = ("naive_rows", "coalesced", "shared_tiled")


def test_steps_by_hand():
    """The naive product asks for 33 sectors of 32 bytes for 32 multiply-adds, or for 5."""
    rows, coalesced, tiled = ladder_steps("RTX-A6000", 4096, NAMES)
    assert rows.intensity == pytest.approx(64 / (33 * 32), rel=1e-3)
    assert coalesced.intensity == pytest.approx(64 / (5 * 32), rel=1e-3)
    assert tiled.intensity == pytest.approx(32 * 64 / (8 * 32), rel=1e-2)
    assert [s.published for s in (rows, coalesced, tiled)] == [
        GEMM[name].published["RTX-A6000"] for name in NAMES]


def test_figure_shows_them():
    figure = ladder("RTX-A6000", 4096, NAMES)
    again = ladder("RTX-A6000", 4096, steps=ladder_steps("RTX-A6000", 4096, NAMES))
    assert again.get_label() == figure.get_label()
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    steps = ladder_steps("RTX-A6000", 4096, NAMES)
    assert list(lines["predicted"].get_xdata()) == [s.intensity for s in steps]
    assert list(lines["predicted"].get_ydata()) == [s.gflops for s in steps]
    assert all(s.gflops == s.prediction.gflops for s in steps)
    assert list(lines["published"].get_ydata()) == [s.published for s in steps]
    assert figure.get_label() == ladder_text("RTX-A6000", steps, 4096)
    assert {text.get_text() for text in axes.texts} == set(NAMES)


def test_other_device_has_nothing_published():
    figure = ladder("A100-SXM4-80GB", 1024, NAMES[:1])
    assert "published" not in figure.get_label()


def test_unknown_rung():
    with pytest.raises(KeyError):
        ladder("RTX-A6000", 64, ("fastest",))
