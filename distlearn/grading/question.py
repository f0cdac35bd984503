"""A graded question as data: what is called, what is wanted, which mistakes are known."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar

from distlearn.grading.answer import Answer, short
from distlearn.grading.programs import CubeProgram, KernelProgram

SETS = ("pipeline", "ranks", "gpu")


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
    harness: ClassVar[str] = "rank_program"

    def head(self, function: str, parameters: Sequence[str]) -> str:
        """``async def ring_all_reduce(comm, x)``."""
        return f"async def {self.signature(function, parameters)}"

    def signature(self, function: str, parameters: Sequence[str]) -> str:
        """``ring_all_reduce(comm, x)``."""
        return f"{function}({', '.join(('comm', *parameters))})"

    def call_text(self, function: str, named: Mapping[str, Any], width: int) -> str:
        """``f(comm, x, k=2) on 2 ranks: x=[1.0] on rank 0, x=[2.0] on rank 1``."""
        ranks = len(named[self.each[0]])
        room = width // (len(self.each) * ranks + len(named))
        shared = [name if name in self.each else f"{name}={short(value, room)}"
                  for name, value in named.items()]
        each = [", ".join(f"{name}={short(named[name][rank], room)}" for name in self.each)
                + f" on rank {rank}" for rank in range(ranks)]
        head = f"{function}({', '.join(['comm', *shared])})"
        return f"{head} on {ranks} rank{'s' * (ranks > 1)}: {', '.join(each)}"


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
    program : RankProgram, KernelProgram, CubeProgram or None
        How to run it, if it is not just called.
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
    program: RankProgram | KernelProgram | CubeProgram | None = None
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
        if self.program is not None:
            return self.program.signature(self.function, self.parameters)
        return f"{self.function}({', '.join(self.parameters)})"

    @property
    def how(self) -> dict[str, Any] | None:
        """What `programs.performer` takes; None for a plain function."""
        if self.program is None:
            return None
        return {"harness": self.program.harness, "function": self.function,
                "parameters": self.parameters, **asdict(self.program)}

    @property
    def head(self) -> str:
        """``def bubble_fraction(p, m)``."""
        if self.program is not None:
            return self.program.head(self.function, self.parameters)
        return f"def {self.signature}"


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
