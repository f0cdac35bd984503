"""Compare what came back with what is wanted, and say it in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distlearn.grading.calling import Trouble
from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.plain import decode, encode
from distlearn.grading.programs import performer
from distlearn.grading.question import Case, Mistake, Question, RankProgram
from distlearn.grading.reasons import explain

FULL, PART, WRONG = "full points", "part of the points", "wrong"
MOST_COMPARED = 6  # wrong answers that are held against every known mistake


@dataclass(frozen=True)
class CaseResult:
    """One case: the call as text, whether it passed, and what came back.

    Attributes
    ----------
    call : str
        ``bubble_fraction(p=4, m=8)``.
    ok : bool or None
        None if the case was not reached.
    got, wanted : plain data
        What to show: the part of the answer that differs, if that can be said.
    part : str
        Which part it is, "" for the whole.
    listing : tuple of (int, str, int)
        See `View`.
    comparable : bool
        Whether ``got`` has the right type, so that a picture of the difference makes sense.
    trouble : str
        A sentence, if the call gave no value of the right type.
    """

    call: str
    ok: bool | None
    got: Any = None
    wanted: Any = None
    comparable: bool = False
    trouble: str = ""
    part: str = ""
    listing: tuple[tuple[int, str, int], ...] = ()


@dataclass(frozen=True)
class QuestionResult:
    """The verdict on one question.

    Attributes
    ----------
    question : Question
    points : int
        All of the question's points or 0; a part only where its answer gives credit for one.
    status : str
        "full points", "part of the points", "wrong", "not written yet", "missing",
        "syntax error", "exception", "time limit", ...: what a class summary counts.
    cases : tuple of CaseResult
        Empty if nothing could be called.
    shown : CaseResult or None
        The failing case to show.
    reason, hint : str
        What happened, and what to try.
    notes : tuple of str
    """

    question: Question
    points: int
    status: str
    cases: tuple[CaseResult, ...] = ()
    shown: CaseResult | None = None
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether every case passed."""
        return self.status == FULL

    @property
    def passed(self) -> int:
        """Number of cases that passed."""
        return sum(case.ok is True for case in self.cases)


def judge(
    question: Question,
    cases: Sequence[Case],
    run: Run,
    *,
    defined: Sequence[str] = (),
    kind: str = "notebook",
) -> QuestionResult:
    """The verdict on a run of all ``cases``.

    Parameters
    ----------
    question : Question
    cases : sequence of Case
        In the order in which they were called; the first ones are shown first.
    run : Run
    defined : sequence of str
        Names that the learner's code defines, to find a misspelt one.
    kind : str
        "notebook" or "file": how to call what the learner wrote.
    """
    results = [_case(question, case, outcome)
               for case, outcome in zip(cases, run.outcomes, strict=False)]
    if run.stopped is not None and (run.called or results):
        results.append(_case(question, cases[len(results)], run.stopped))
    results += [CaseResult(call_text(question, case), None) for case in cases[len(results) :]]
    before: Outcome | None = None
    if run.outcomes and run.outcomes[0].kind in ("stub", "not_callable", "plain_def"):
        before = run.outcomes[0]  # it is the same for every case
    elif not run.outcomes and not run.called:
        before = run.stopped
    if before is not None:
        why = explain(question, before, defined, kind)
        return QuestionResult(question, 0, why.status, (), None, why.text, why.hint, run.notes)
    if all(result.ok for result in results):
        return QuestionResult(question, question.points, FULL, tuple(results), notes=run.notes)
    return _failed(question, cases, run, tuple(results), defined, kind)


def _failed(question: Question, cases: Sequence[Case], run: Run, results: tuple[CaseResult, ...],
            defined: Sequence[str], kind: str) -> QuestionResult:
    """Choose the case to show: the first that a known mistake explains, else the first."""
    outcomes = [*run.outcomes, *([run.stopped] if run.stopped else [])]
    failing = [k for k, result in enumerate(results) if result.ok is False]
    first = next((k for k in failing if not _slight(question, results[k], outcomes[k], cases[k])),
                 failing[0])
    wrong = [k for k in sorted(failing, key=lambda k: (k != first, k))
             if results[k].comparable][:MOST_COMPARED]
    if wrong and not results[first].trouble:
        got = {k: outcomes[k].value for k in wrong}
        mistake = _best_mistake(question, [(cases[k], got[k]) for k in wrong])
        if mistake is not None:
            first = next(k for k in wrong if _explains(mistake, question, cases[k], got[k]))
            hint = mistake.hint
        else:
            hint = question.answer.hint(got[first], cases[first].wanted)
        points = _part(question, cases, outcomes, results)
        return QuestionResult(question, points, PART if points else WRONG, results, results[first],
                              hint=hint, notes=run.notes)
    why = explain(question, outcomes[first], defined, kind)
    return QuestionResult(question, 0, why.status, results, results[first], why.text, why.hint,
                          run.notes)


def _slight(question: Question, result: CaseResult, outcome: Outcome, case: Case) -> bool:
    return result.comparable and question.answer.slight(outcome.value, case.wanted)


def _part(question: Question, cases: Sequence[Case], outcomes: Sequence[Outcome],
          results: Sequence[CaseResult]) -> int:
    """The points of an answer that is not right everywhere: what its worst case is worth."""
    if not all(result.comparable for result in results):
        return 0
    worst = min(question.answer.credit(outcome.value, case.wanted)
                for outcome, case in zip(outcomes, cases, strict=True))
    return int(question.points * worst + 1e-9)


def _case(question: Question, case: Case, outcome: Outcome) -> CaseResult:
    text = call_text(question, case)
    if outcome.kind != "value":
        return CaseResult(text, False, None, _wanted(question, case), trouble=outcome.kind)
    misfit = question.answer.misfit(outcome.value)
    if misfit:
        return CaseResult(text, False, None, _wanted(question, case), trouble=misfit)
    if question.answer.same(outcome.value, case.wanted):
        return CaseResult(text, True, outcome.value, case.wanted, comparable=True)
    view = question.answer.view(outcome.value, case.wanted)
    return CaseResult(text, False, view.got, view.wanted, comparable=True, part=view.part,
                      listing=view.listing)


def _wanted(question: Question, case: Case) -> Any:
    return question.answer.view(None, case.wanted).wanted


def _explains(mistake: Mistake, question: Question, case: Case, got: Any) -> bool:
    try:
        value = wrong_value(question, mistake, case.args)
        return (not question.answer.misfit(value) and question.answer.same(got, value)
                and not question.answer.same(value, case.wanted))  # right here, it explains nothing
    except (ArithmeticError, ValueError, IndexError, Trouble):  # the wrong way has no value here
        return False


def wrong_value(question: Question, mistake: Mistake, args: tuple[Any, ...]) -> Any:
    """What somebody who makes this mistake gets, as plain data.

    Raises
    ------
    ArithmeticError, ValueError, IndexError, Trouble
        Where the mistake leads to no value.
    """
    if question.how is None or not isinstance(question.program, RankProgram):
        return mistake.wrong(*args)  # of a kernel: what it would have written
    return decode(encode(performer(question.how)(mistake.wrong, list(args))))


def _best_mistake(question: Question, wrong: Sequence[tuple[Case, Any]]) -> Mistake | None:
    """The known mistake that explains most of the wrong values, and at least half."""
    scores = [sum(_explains(mistake, question, case, got) for case, got in wrong)
              for mistake in question.mistakes]
    best = max(scores, default=0)
    return question.mistakes[scores.index(best)] if 2 * best >= len(wrong) and best else None


def call_text(question: Question, case: Case, width: int = 240) -> str:
    """The call as the learner would type it, shortened in the middle of long arguments."""
    if question.program is not None:
        named = dict(zip(question.parameters, case.args, strict=True))
        return question.program.call_text(question.function, named, width)
    pairs = zip(question.parameters, case.args, strict=True)
    room = width // max(1, len(case.args))
    args = ", ".join(f"{name}={short(value, room)}" for name, value in pairs)
    return f"{question.function}({args})"


def short(value: Any, width: int = 120) -> str:
    """``repr`` of plain data, cut to a width."""
    if isinstance(value, list | tuple) and len(value) > width:
        value = value[:width]
    text = repr(value)
    return text if len(text) <= width else text[: width - 2] + " …"
