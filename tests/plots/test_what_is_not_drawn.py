"""What the figures cannot draw is refused by name; everything else in NAMES is drawn."""

from __future__ import annotations

import pytest

from distlearn.pipeline import NAMES, build, simulate
from distlearn.plots import timeline, timeline_svg

REFUSED = {"bpipe": "E, L", "dualpipe": "F&B", "dualpipe_v": "F&B", "mario": "R"}


@pytest.mark.parametrize("name", NAMES)
def test_drawn_or_refused_by_name(name: str) -> None:
    run = simulate(build(name, p=4, m=8))
    for draw in (timeline, timeline_svg):
        if name in REFUSED:
            with pytest.raises(ValueError, match=f"{name} also has {REFUSED[name]}"):
                draw(run)
        else:
            draw(run)
