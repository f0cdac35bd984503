"""Compare what came back with what is wanted, and say it in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.question import Case, Mistake, Question
from distlearn.grading.reasons import explain

FULL, WRONG = "full points", "wrong"


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


@dataclass(frozen=True)
class QuestionResult:
    """The verdict on one question.

    Attributes
    ----------
    question : Question
    points : int
        All of the question's points or 0.
    status : str
        "full points", "wrong", "not written yet", "missing", "syntax error", "exception",
        "time limit", ...: what a class summary counts.
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
    results += [CaseResult(call_text(question, case), None, wanted=case.wanted)
                for case in cases[len(results) :]]
    before: Outcome | None = None
    if run.outcomes and run.outcomes[0].kind in ("stub", "not_callable"):
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
    first = failing[0]
    wrong = [k for k in failing if results[k].comparable]
    if wrong and not results[first].trouble:
        mistake = _best_mistake(question, [(cases[k], results[k].got) for k in wrong])
        if mistake is not None:
            first = next(k for k in wrong if _explains(mistake, question, cases[k], results[k].got))
            hint = mistake.hint
        else:
            hint = question.answer.hint(results[first].got, results[first].wanted)
        return QuestionResult(question, 0, WRONG, results, results[first], hint=hint,
                              notes=run.notes)
    why = explain(question, outcomes[first], defined, kind)
    return QuestionResult(question, 0, why.status, results, results[first], why.text, why.hint,
                          run.notes)


def _case(question: Question, case: Case, outcome: Outcome) -> CaseResult:
    text = call_text(question, case)
    if outcome.kind != "value":
        return CaseResult(text, False, None, case.wanted, trouble=outcome.kind)
    misfit = question.answer.misfit(outcome.value)
    if misfit:
        return CaseResult(text, False, outcome.value, case.wanted, trouble=misfit)
    ok = question.answer.same(outcome.value, case.wanted)
    return CaseResult(text, ok, outcome.value, case.wanted, comparable=True)


def _explains(mistake: Mistake, question: Question, case: Case, got: Any) -> bool:
    try:
        value = mistake.wrong(*case.args)
        return not question.answer.misfit(value) and question.answer.same(got, value)
    except (ArithmeticError, ValueError, IndexError):  # the wrong formula has no value here
        return False


def _best_mistake(question: Question, wrong: Sequence[tuple[Case, Any]]) -> Mistake | None:
    """The known mistake that explains most of the wrong values, and at least half."""
    scores = [sum(_explains(mistake, question, case, got) for case, got in wrong)
              for mistake in question.mistakes]
    best = max(scores, default=0)
    return question.mistakes[scores.index(best)] if 2 * best >= len(wrong) and best else None


def call_text(question: Question, case: Case, width: int = 240) -> str:
    """The call as the learner would type it, shortened in the middle of long arguments."""
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
