"""Where the tests find the hidden cases and the mutants."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from distlearn.grading import Case
from distlearn.grading.hidden import load

HERE = Path(__file__).parent


@cache
def hidden() -> dict[str, tuple[Case, ...]]:
    """The hidden cases of all sets."""
    return load(HERE)


def mutants() -> dict[str, dict[str, str]]:
    """The wrong answers of all sets: question id, name of the mistake, source."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(HERE.glob("mutants_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.update(module.MUTANTS)
    return found
