"""Make the learner's notebooks from the solved ones: same text, stubs instead of solutions.

Between ``### BEGIN SOLUTION`` and ``### END SOLUTION`` stands what learners do not get. The output
depends on the source alone, so the same source gives the same bytes. A notebook that somebody has
written in since it was made is somebody's work and is not overwritten.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distlearn.grading.files import write_texts

_BEGIN = re.compile(r"^\s*###\s*BEGIN SOLUTION\s*$")
_END = re.compile(r"^\s*###\s*END SOLUTION\s*$")
_DEF = re.compile(r"^\s*(?:async\s+)?def\s+(\w+)")
_KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class ReleaseError(ValueError):
    """A solved notebook that cannot be turned into an exercise, with cell and line."""


@dataclass(frozen=True)
class Released:
    """What `release` did.

    Attributes
    ----------
    written, unchanged : tuple of Path
        Notebooks made anew, and those that were there already, byte for byte.
    kept : tuple of Path
        Notebooks that somebody has edited: left as they are.
    """

    written: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()


def release(
    solutions_dir: str | Path = "solutions",
    exercises_dir: str | Path = "exercises",
    *,
    overwrite: bool = False,
) -> Released:
    """Write the exercise of every notebook in ``solutions_dir`` into ``exercises_dir``.

    Parameters
    ----------
    solutions_dir, exercises_dir : path
    overwrite : bool
        Also replace exercises that have been edited since they were made, and lose that work.

    Raises
    ------
    ReleaseError
        For a marker without its partner, or a notebook that cannot be read; then nothing is
        written.
    FileNotFoundError
        If there are no solutions.
    """
    target = Path(exercises_dir)
    made = dict(exercises(solutions_dir))
    written, unchanged, kept = [], [], []
    target.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        path = target / name
        old = path.read_text("utf-8") if path.exists() else None
        if old == text:
            unchanged.append(path)
        elif old is not None and not overwrite and edited(old):
            kept.append(path)
        else:
            written.append(path)
    write_texts({path: made[path.name] for path in written})
    return Released(tuple(written), tuple(unchanged), tuple(kept))


def check_release(
    solutions_dir: str | Path = "solutions", exercises_dir: str | Path = "exercises",
) -> list[str]:
    """What is out of step between solutions and exercises, one sentence each; empty if nothing is.

    Raises
    ------
    ReleaseError, FileNotFoundError
        As `release`.
    """
    target = Path(exercises_dir)
    made = dict(exercises(solutions_dir))
    problems = []
    for name, text in made.items():
        path = target / name
        if not path.exists():
            problems.append(f"{path} is missing: run `distlearn release`")
        elif path.read_text("utf-8") != text:
            problems.append(
                f"{path} has been written in since it was made. If these are your answers, keep "
                "them, under another name; then delete it and run `distlearn release`"
                if edited(path.read_text("utf-8"))
                else f"{path} is not what its solution gives now: run `distlearn release`")
    problems += [f"{path} has no solution in {solutions_dir}: remove it"
                 for path in sorted(target.glob("*.ipynb")) if path.name not in made]
    return problems


def edited(text: str) -> bool:
    """Whether the cells of a released notebook are no longer what `release` wrote."""
    try:
        notebook = json.loads(text)
        return bool(notebook["metadata"]["distlearn"]["digest"] != _digest(notebook["cells"]))
    except (ValueError, KeyError, TypeError):
        return True


def exercises(solutions_dir: str | Path) -> Iterator[tuple[str, str]]:
    """File name and text of every exercise, in order.

    Raises
    ------
    ReleaseError, FileNotFoundError
        As `release`.
    """
    paths = sorted(Path(solutions_dir).glob("*.ipynb"))
    if not paths:
        raise FileNotFoundError(f"there is no solved notebook (*.ipynb) in {solutions_dir}: "
                                "exercises are made in the instructor's checkout")
    for path in paths:
        yield path.name, exercise(path)


def solved(path: Path) -> Iterator[str]:
    """The solutions in the solved notebook at ``path``: what `exercise` takes out."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        block: list[str] | None = None
        for line in "".join(cell["source"]).split("\n"):
            if _BEGIN.match(line):
                block = []
            elif _END.match(line) and block is not None:
                yield "\n".join(block)
                block = None
            elif block is not None:
                block.append(line)


def exercise(path: Path) -> str:
    """The text of the exercise notebook made from the solved notebook at ``path``.

    Plain JSON in, plain JSON out, as nbformat writes it; importing nbformat takes seconds.

    Raises
    ------
    ReleaseError
        As `release`.
    """
    try:
        source_cells = json.loads(path.read_text("utf-8"))["cells"]
        parts = [(cell["cell_type"], cell["id"], "".join(cell["source"]), cell["metadata"])
                 for cell in source_cells]
    except (ValueError, KeyError, TypeError) as error:
        raise ReleaseError(f"{path} is not a notebook of format 4.5 or later: {error!r}") from None
    cells = []
    for number, (kind, name, source, metadata) in enumerate(parts, start=1):
        stripped = "\n".join(_strip(source, f"{path.name}, cell {number}"))
        if source.strip() and not stripped.strip():
            continue  # the whole cell was a solution
        made: dict[str, Any] = {
            "cell_type": kind, "id": name, "source": stripped.splitlines(keepends=True),
            "metadata": {"tags": metadata["tags"]} if metadata.get("tags") else {},
        }
        if kind == "code":
            made.update(execution_count=None, outputs=[])
        cells.append(made)
    notebook = {
        "cells": cells, "metadata": {**_KERNEL, "distlearn": {"digest": _digest(cells)}},
        "nbformat": 4, "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _strip(source: str, where: str) -> Iterator[str]:
    """The lines of a cell, with each solution replaced by one line that says it is missing."""
    opened, function = 0, "this"
    for number, line in enumerate(source.split("\n"), start=1):
        found = _DEF.match(line)
        if found and not opened:
            function = found[1]
        if _BEGIN.match(line):
            if opened:
                raise ReleaseError(f"{where}, line {number}: BEGIN SOLUTION inside the solution "
                                   f"that begins on line {opened}")
            opened = number
            indent = line[: len(line) - len(line.lstrip())]
            if indent:
                yield f'{indent}raise NotImplementedError("write {function} here")'
        elif _END.match(line):
            if not opened:
                raise ReleaseError(f"{where}, line {number}: END SOLUTION without a BEGIN SOLUTION")
            opened = 0
        elif not opened:
            yield line
    if opened:
        raise ReleaseError(f"{where}, line {opened}: BEGIN SOLUTION without an END SOLUTION")


def _digest(cells: list[Any]) -> str:
    """Of what a learner would change: kinds and sources of the cells, not outputs or counts."""
    kinds = []
    for cell in cells:
        source = cell["source"]
        kinds.append([cell["cell_type"], "".join(source) if isinstance(source, list) else source])
    return hashlib.sha256(json.dumps(kinds).encode()).hexdigest()[:16]
