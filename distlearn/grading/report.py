"""The result of grading: per student, per question, and for the class."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from distlearn.grading.judge import QuestionResult
from distlearn.grading.question import Question

NOT_HANDED_IN = "not handed in"


@dataclass(frozen=True)
class StudentResult:
    """One learner's verdicts.

    Attributes
    ----------
    student : str
    file : str
        Name of the file that counted, or of several, for several sets; "" if there is none.
    results : tuple of QuestionResult
        In the order of the report's questions.
    notes : tuple of str
        What there is to say about the files.
    """

    student: str
    file: str
    results: tuple[QuestionResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def not_handed_in(self) -> dict[str, list[QuestionResult]]:
        """Results of the notebooks of which nothing was handed in, by notebook."""
        found: dict[str, list[QuestionResult]] = {}
        for result in self.results:
            if result.status == NOT_HANDED_IN:
                found.setdefault(result.question.notebook, []).append(result)
        return found

    @property
    def failed(self) -> list[QuestionResult]:
        """Results below full points, of what was handed in."""
        return [one for one in self.results if not one.ok and one.status != NOT_HANDED_IN]

    @property
    def total(self) -> int:
        """Points reached."""
        return sum(result.points for result in self.results)

    @property
    def maximum(self) -> int:
        """Points that could be reached."""
        return sum(result.question.points for result in self.results)


@dataclass(frozen=True)
class QuestionSummary:
    """How a class did on one question.

    Attributes
    ----------
    question : Question
    mean : float
        Mean points.
    share_full : float
        Share of the class with full points, 0 to 1.
    common_failure : str
        The most frequent failure and its number, or "".
    """

    question: Question
    mean: float
    share_full: float
    common_failure: str


@dataclass(frozen=True)
class Report:
    """Everything that grading found out.

    Attributes
    ----------
    questions : tuple of Question
    students : tuple of StudentResult
        By name.
    notes : tuple of str
        Remarks for the instructor.
    graded : bool
        False if it only shows a learner the visible cases.
    strays : tuple of (str, str)
        Files that are nobody's submission, and why not.
    """

    questions: tuple[Question, ...]
    students: tuple[StudentResult, ...]
    notes: tuple[str, ...] = ()
    graded: bool = True
    strays: tuple[tuple[str, str], ...] = ()

    @property
    def scores(self) -> dict[str, dict[str, int]]:
        """Points by student and question id."""
        return {one.student: {result.question.id: result.points for result in one.results}
                for one in self.students}

    @property
    def ok(self) -> bool:
        """Whether every student has full points on every question."""
        return all(result.ok for one in self.students for result in one.results)

    def summary(self) -> tuple[QuestionSummary, ...]:
        """The class on each question."""
        found = []
        for k, question in enumerate(self.questions):
            results = [one.results[k] for one in self.students]
            number = len(results) or 1
            failures = Counter(_failure(result) for result in results if not result.ok)
            best = min(failures, key=lambda x: (-failures[x], x), default="")
            found.append(QuestionSummary(
                question, sum(result.points for result in results) / number,
                sum(result.ok for result in results) / number,
                f"{best} ({failures[best]})" if best else ""))
        return tuple(found)

    def to_text(self, *, details: bool = False) -> str:
        """The report for a terminal.

        Parameters
        ----------
        details : bool
            Say of every question how it went, instead of one line per student.
        """
        from distlearn.grading.faces import text

        lines: list[str] = []
        width = max([len(one.student) for one in self.students], default=7)
        for one in self.students:
            head = f"{one.student:{width}}"
            if self.graded:
                head += f"  {one.total:>3} of {one.maximum} points"
            failed = [f"{r.question.id.partition('/')[2]}: {r.status}" for r in one.failed]
            failed += [f"{name}: {NOT_HANDED_IN}" for name in one.not_handed_in]
            if details:
                lines += [head, *(f"  {note}" for note in one.notes), ""]
                for result in one.results:
                    lines += [text(result, graded=self.graded), ""]
            else:
                lines.append(f"{head}  {'; '.join(failed)}".rstrip())
        notes = list(self.notes)
        if not details:
            notes += [f"{one.student}: {note}" for one in self.students for note in one.notes[:2]]
        if not self.graded:
            results = [result for one in self.students for result in one.results]
            right = sum(result.ok for result in results)
            notes.append(f"{right} of {len(results)} questions pass all visible cases.")
        notes += [f"No submission, left out: {why}" for _, why in self.strays]
        return "\n".join([*lines, *notes]).rstrip()


def _failure(result: QuestionResult) -> str:
    """A short name of a failure, so that equal ones can be counted."""
    if result.status == "wrong" and result.hint:
        return f"wrong: {result.hint.split('. ')[0].split(': ')[0].rstrip('.')}"
    return result.status
