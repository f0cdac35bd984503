"""Load the hidden cases, which live outside the package, in the instructor's repository."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from distlearn.grading.question import Case, find

Hidden = Mapping[str, tuple[Case, ...]]


def default_path() -> Path | None:
    """``tests/exercises`` of the repository that this package runs from, if there is one."""
    path = Path(__file__).resolve().parents[2] / "tests" / "exercises"
    return path if any(path.glob("hidden_*.py")) else None


def load(path: str | Path | None) -> dict[str, tuple[Case, ...]]:
    """Hidden cases by question id.

    Parameters
    ----------
    path : path or None
        A file, or a folder of ``hidden_*.py`` files. Each has a function ``cases()`` that returns a
        dict from question id to a list of `Case`.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no such files in the folder.
    ValueError
        If a file cannot be run or has no ``cases()``, or a case does not fit its question.
    """
    if path is None:
        return {}
    path = Path(path)
    files = sorted(path.glob("hidden_*.py")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise FileNotFoundError(f"no hidden cases (hidden_*.py) at {path}")
    found: dict[str, tuple[Case, ...]] = {}
    for file in files:
        spec = importlib.util.spec_from_file_location(f"distlearn_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise ValueError(f"hidden cases {file} are not a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            made = module.cases() if callable(getattr(module, "cases", None)) else None
        except Exception as error:
            raise ValueError(f"hidden cases {file} cannot be run: {type(error).__name__}: {error}"
                             ) from error
        if not isinstance(made, Mapping):
            raise ValueError(f"hidden cases {file} need a function cases() that returns a dict")
        for question, cases in made.items():
            for number, case in enumerate(cases):
                problem = _misfit(question, case)
                if problem:
                    raise ValueError(f"hidden cases {file}: {question}, case {number}: {problem}")
            found[question] = (*found.get(question, ()), *cases)
    return found


def _misfit(name: str, case: object) -> str:
    """Why a case cannot belong to the question of this name; "" if it can."""
    try:
        question = find(name)
    except ValueError as error:
        return str(error)
    if not isinstance(case, Case):
        return f"it is a {type(case).__name__}, not a Case"
    if len(case.args) != len(question.parameters):
        return (f"it has {len(case.args)} arguments, {question.signature} takes "
                f"{len(question.parameters)}")
    return ""
