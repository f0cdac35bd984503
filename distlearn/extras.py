"""How to install what only some need, from where this package runs."""

from __future__ import annotations

import shlex
from pathlib import Path


def install_command(extra: str) -> str:
    """The pip command for an extra: of the checkout this package runs from, else by name.

    Parameters
    ----------
    extra : str
        A name in ``[project.optional-dependencies]``, such as ``torch``.
    """
    root = Path(__file__).resolve().parents[1]
    if (root / "pyproject.toml").is_file():
        here = "." if Path.cwd().resolve() == root else str(root)
        return f"pip install -e {shlex.quote(f'{here}[{extra}]')}"
    return f"pip install 'distlearn[{extra}]'"
