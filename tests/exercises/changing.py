"""An answer with a mistake: the solution, with one text in place of another."""

from __future__ import annotations

import json
from pathlib import Path

SOLUTIONS = Path(__file__).parents[2] / "solutions"
IMPORTS = (
    "import numpy as np\nfrom distlearn.kernels import cuda, float32\n"
    "from distlearn.kernels.ascend import CubeCore\n"
)
Change = tuple[str, str]

_CELLS = [
    "".join(cell["source"])
    for path in sorted(SOLUTIONS.glob("gpu_*.ipynb"))
    for cell in json.loads(path.read_text("utf-8"))["cells"]
    if cell["id"].endswith("-answer")
]


def changed(function: str, mistakes: dict[str, Change | list[Change]]) -> dict[str, str]:
    """The solution of a function with each of the mistakes: old text and new, or several."""
    (right,) = [cell for cell in _CELLS if f"def {function}(" in cell]
    made = {}
    for name, change in mistakes.items():
        source = right
        for old, new in change if isinstance(change, list) else [change]:
            assert old in source, (function, name, old)
            source = source.replace(old, new)
        made[name] = IMPORTS + source
    return made
