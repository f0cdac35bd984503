"""A graded question as data: what is called, what is wanted, which mistakes are known."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from distlearn.grading.answer import Answer

SETS = ("pipeline",)


@dataclass(frozen=True)
class Case:
    """One call: arguments (plain data, by position) and the value that is wanted."""

    args: tuple[Any, ...]
    wanted: Any


@dataclass(frozen=True)
class Mistake:
    """A typical wrong answer, as a function of the same arguments, and what to say about it."""

    wrong: Callable[..., Any]
    hint: str


@dataclass(frozen=True)
class Question:
    """One graded item.

    Attributes
    ----------
    id : str
        ``set/name``, for example ``pipeline/bubble``.
    title : str
    function : str
        The name that the learner's function must have.
    parameters : tuple of str
        Its parameters, in order.
    answer : Answer
        The kind of value it returns.
    points : int
        All or nothing: every case must pass.
    cases : tuple of Case
        The visible ones, which learners may see. Hidden ones are kept elsewhere.
    mistakes : tuple of Mistake
    without : tuple of str
        Functions of distlearn that would give the answer away and must not be called.
    """

    id: str
    title: str
    function: str
    parameters: tuple[str, ...]
    answer: Answer
    points: int
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...] = field(default=(), repr=False)
    without: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """``bubble_fraction(p, m)``."""
        return f"{self.function}({', '.join(self.parameters)})"


def questions(*sets: str) -> tuple[Question, ...]:
    """All questions of the given sets, or of every set, in the order of the notebooks.

    Raises
    ------
    ValueError
        For a set that does not exist.
    """
    found: list[Question] = []
    for name in sets or SETS:
        if name not in SETS:
            raise ValueError(f"no exercise set is called {name!r}; sets are {', '.join(SETS)}")
        found += importlib.import_module(f"distlearn.grading.sets.{name}").QUESTIONS
    return tuple(found)


def find(question_id: str) -> Question:
    """The question with this id.

    Raises
    ------
    ValueError
        Listing the nearest ids if there is none.
    """
    known = {question.id: question for question in questions()}
    if question_id not in known:
        near = get_close_matches(str(question_id), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"no question is called {question_id!r}; {hint}"
                         f"questions are {', '.join(known)}")
    return known[question_id]
