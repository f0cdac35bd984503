"""Exercises: `check` for learners, `grade` for instructors, `release` to make the notebooks.

Everything is imported on use, because pytest loads this package for its plugin in every run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distlearn.grading.grader import check_file, grade, grade_file
    from distlearn.grading.handing_out import Handout, hand_out
    from distlearn.grading.notebook import check
    from distlearn.grading.question import Case, Mistake, Question, find, questions
    from distlearn.grading.releasing import ReleaseError, check_release, release
    from distlearn.grading.report import Report

__all__ = [
    "Case",
    "Handout",
    "Mistake",
    "Question",
    "ReleaseError",
    "Report",
    "check",
    "check_file",
    "check_release",
    "find",
    "grade",
    "grade_file",
    "hand_out",
    "questions",
    "release",
]

_HOMES = {
    "notebook": ("check",),
    "grader": ("check_file", "grade", "grade_file"),
    "handing_out": ("Handout", "hand_out"),
    "question": ("Case", "Mistake", "Question", "find", "questions"),
    "releasing": ("ReleaseError", "check_release", "release"),
    "report": ("Report",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"distlearn.grading.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
