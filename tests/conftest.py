"""Shared settings of the whole suite."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# Two test processes on two cores: a matrix product must not start threads of its own.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A loaded machine must not fail a law, and a red run must be red again: no deadline, fixed seeds.
# `HYPOTHESIS_PROFILE=explore pytest` looks further, with fresh randomness.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First the file with the slowest fixture: at the end two processes would share its tests."""
    items.sort(key=lambda item: item.path.name != "test_javascript_twin.py")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium for all browser tests; they are skipped where there is none."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if path is None:
        pytest.skip("no chromium on PATH")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()
