"""A graded question as data: what is called, what is wanted, which mistakes are known."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

from distlearn.grading.answer import Answer

SETS = ("pipeline", "ranks")


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
class RankProgram:
    """The function is a rank program, ``async def name(comm, ...)``, to be run on virtual ranks.

    Attributes
    ----------
    operations : tuple of str
        What it may use of its communicator, such as ``("send", "recv")``.
    each : tuple of str
        Parameters of which every rank has its own: the arguments of a case give a list with one
        item per rank, and so the number of ranks. The others are the same on all ranks.
    arrays : tuple of str
        Parameters that the program gets as arrays of float64.
    """

    operations: tuple[str, ...]
    each: tuple[str, ...]
    arrays: tuple[str, ...]


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
        All or nothing: every case must pass. Only an open question gives a part of them, see
        `Answer.credit`.
    cases : tuple of Case
        The visible ones, which learners may see. Hidden ones are kept elsewhere.
    mistakes : tuple of Mistake
    without : tuple of str
        Functions of distlearn that would give the answer away and must not be called.
    program : RankProgram or None
        How to run it, if it is a program for several ranks.
    sheet : int
        In which of the set's notebooks it stands, from 1.
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
    program: RankProgram | None = None
    sheet: int = 1

    @property
    def set(self) -> str:
        """``pipeline``."""
        return self.id.partition("/")[0]

    @property
    def notebook(self) -> str:
        """``pipeline_1``: the name, without suffix, of the notebook in which it stands."""
        return f"{self.set}_{self.sheet}"

    @property
    def signature(self) -> str:
        """``bubble_fraction(p, m)``."""
        first = ("comm",) if self.program else ()
        return f"{self.function}({', '.join((*first, *self.parameters))})"

    @property
    def how(self) -> dict[str, Any] | None:
        """Parameters of `rank_program.performer`; None for a plain function."""
        if self.program is None:
            return None
        return {"function": self.function, "parameters": self.parameters, **asdict(self.program)}

    @property
    def head(self) -> str:
        """``def bubble_fraction(p, m)``."""
        return f"{'async def' if self.program else 'def'} {self.signature}"


def questions(*sets: str) -> tuple[Question, ...]:
    """All questions of the given sets, or of every set, in the order of the notebooks.

    Parameters
    ----------
    *sets : str
        Sets such as ``"pipeline"``, or notebooks of one such as ``"pipeline_2"``.

    Raises
    ------
    ValueError
        For a set or notebook that does not exist.
    """
    found: dict[str, Question] = {}
    for name in sets or SETS:
        home = name if name in SETS else str(name).rpartition("_")[0]
        every: tuple[Question, ...] = ()
        if home in SETS:
            every = importlib.import_module(f"distlearn.grading.sets.{home}").QUESTIONS
        asked = [question for question in every if name in (home, question.notebook)]
        if not asked:
            raise ValueError(f"no exercise set is called {name!r}; sets are {', '.join(SETS)}, "
                             f"their notebooks {', '.join(notebooks())}")
        found |= {question.id: question for question in asked}
    return tuple(found.values())


def notebooks() -> tuple[str, ...]:
    """The notebooks of all sets, such as ``pipeline_1``."""
    return tuple(dict.fromkeys(question.notebook for question in questions()))


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
