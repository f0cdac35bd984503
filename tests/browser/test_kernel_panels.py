"""The explorers of the GPU and NPU chapters inside the built pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distlearn.widgets import (
    BankConflictExplorer,
    CoalescingExplorer,
    CubeTimeline,
    OccupancyExplorer,
    RooflineExplorer,
    ThreadIndexExplorer,
    WarpStepper,
)
from distlearn.widgets.panel import Panel
from tests.widgets.test_panels_in_browser import assert_shows, press

PAGES: dict[str, list[tuple[type[Panel], str, dict[str, Any]]]] = {
    "gpu.html": [(ThreadIndexExplorer, "ArrowRight", {"thread": (12, 2)}),
                 (WarpStepper, "ArrowRight", {"step": 1})],
    "gpu-gemm.html": [(CoalescingExplorer, "ArrowRight", {"lane": 1}),
                      (BankConflictExplorer, "ArrowRight", {"lane": 1}),
                      (OccupancyExplorer, "ArrowRight", {"threads": 288}),
                      (RooflineExplorer, "ArrowLeft", {"rung": "vectorised"})],
    "npu.html": [(CubeTimeline, "ArrowRight", {"event": 1})],
}


@pytest.mark.parametrize(("page_name", "theme", "width"), [
    ("gpu.html", "light", 1280), ("gpu-gemm.html", "dark", 390), ("npu.html", "dark", 1280)])
def test_panels_in_the_chapters(visit: Callable[..., Any], shots: Path, page_name: str,
                                theme: str, width: int) -> None:
    with visit(page_name, theme=theme, width=width) as page:
        for view, key, then in PAGES[page_name]:
            face = page.locator(f'.dl-face[aria-label="{view.label}"]').first
            face.scroll_into_view_if_needed()
            assert_shows(face, view())
            press(face, key)
            assert_shows(face, view(**then))
            face.screenshot(path=shots / f"{view.__name__}-{theme}-{width}.png")
