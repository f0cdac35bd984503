"""Right and broken answers to the pipeline exercises, and helpers that write them to files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

SOLUTIONS = Path(__file__).parents[2] / "solutions"
SETUP = (
    "from distlearn.grading import check\n"
    "from distlearn.pipeline import build, simulate\n"
    "import numpy as np, sys, os"
)
FULL = {"pipeline/bubble": 2, "pipeline/order": 4, "pipeline/peak": 4, "pipeline/deadlock": 6,
        "pipeline/interleaving": 4}
FUNCTIONS = {
    "bubble_fraction": "pipeline/bubble", "order_1f1b": "pipeline/order",
    "peak_activations": "pipeline/peak", "stuck_actions": "pipeline/deadlock",
    "interleaving_gain": "pipeline/interleaving",
}


def right() -> dict[str, str]:
    """The reference solution of every question, by function name."""
    found = {}
    for path in SOLUTIONS.glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            for name in FUNCTIONS:
                if cell["cell_type"] == "code" and f"def {name}(" in source:
                    found[name] = source
    return found


def cells(**changed: str) -> list[str]:
    """Code cells of a submission: setup, then the right answers but for those given."""
    return [SETUP, *(changed.get(name, source) for name, source in right().items())]


def notebook(path: Path, sources: Sequence[str]) -> Path:
    """Write code cells as a notebook file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {},
        "cells": [{"cell_type": "code", "id": f"c{k}", "metadata": {}, "outputs": [],
                   "execution_count": None, "source": source} for k, source in enumerate(sources)],
    }))
    return path


def script(path: Path, sources: Sequence[str]) -> Path:
    """Write code cells as a Python file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n\n".join(sources) + "\n")
    return path


def expected(*failed: str) -> dict[str, int]:
    """Scores of a submission right in everything but the functions given."""
    lost = {FUNCTIONS[name] for name in failed}
    return {question: 0 if question in lost else points for question, points in FULL.items()}
