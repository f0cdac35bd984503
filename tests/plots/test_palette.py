"""Can every reader tell the boxes apart, see them, and read the number in them?"""

from __future__ import annotations

import io
import itertools
import math
import re

import numpy as np
import pytest

from distlearn import plots
from distlearn.pipeline import build, simulate
from distlearn.plots import PALETTE
from distlearn.plots.palette import CHUNKS, box_colour, contrast, ink
from distlearn.plots.picture import dark_style

# Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, table 1, severity 1; on linear RGB
SIGHT = {
    "trichromat": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                        [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                        [0.004733, 0.691367, 0.303900]]),
}


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of linear sRGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                       [0.0193, 0.1192, 0.9505]])
    x, y, z = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = [t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_known_contrasts() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # WebAIM's example
    assert contrast("#0000ff", "#ffffff") == pytest.approx(8.59, abs=0.005)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_kinds_stay_apart(mode: str, sight: str) -> None:
    seen = {kind: lab(SIGHT[sight] @ linear(PALETTE[mode][kind])) for kind in "FBIWR"}
    for a, b in itertools.combinations("FBIWR", 2):
        assert math.dist(seen[a], seen[b]) > 20, f"{a} and {b} look alike"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_boxes_stand_out(mode: str) -> None:
    colours = PALETTE[mode]
    for kind in "FBIWR":  # pale chunks have an edge in the kind's own colour
        for behind in ("background", "idle"):
            assert contrast(colours[kind], colours[behind]) >= 3
    assert contrast(colours["memory"], colours["background"]) >= 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_writing_can_be_read(mode: str) -> None:
    for kind in "FBIWR":
        for chunk in range(CHUNKS):
            fill = box_colour(kind, chunk, mode)
            assert contrast(ink(fill), fill) >= 4.5
    for name in ("text", "muted", "good", "bad"):
        for behind in ("background", "idle"):
            assert contrast(PALETTE[mode][name], PALETTE[mode][behind]) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("kind", "FBIWR")
def test_chunks_differ_in_lightness(mode: str, kind: str) -> None:
    lightness = [lab(linear(box_colour(kind, chunk, mode)))[0] for chunk in range(4)]
    steps = np.diff(lightness)
    assert (steps > 5).all() if mode == "light" else (steps < -5).all()


def test_dark_ink_is_a_function_of_light_ink() -> None:
    """Figures turn dark colour by colour, so one ink must not have to become two."""
    for kind in "FBIWR":
        for chunk in range(CHUNKS):
            light, dark = (ink(box_colour(kind, chunk, mode)) for mode in ("light", "dark"))
            assert light != dark


def test_letters_change_with_their_boxes_also_where_they_are_drawn_as_paths() -> None:
    buffer = io.StringIO()
    plots.timeline(simulate(build("chimera", 4, 4))).savefig(buffer, format="svg")
    letters = set(re.findall(r'<g style="fill: (#[0-9a-f]{6})', buffer.getvalue()))
    known = set(re.findall(r'g\[style\*="fill: (#[0-9a-f]{6})"\]', dark_style({})))
    assert {ink(box_colour("F", 0)), ink(box_colour("F", 1))} <= letters & known
