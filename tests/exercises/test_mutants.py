"""Hidden cases: the reference solutions pass them, every typical wrong answer fails them."""

from __future__ import annotations

import contextlib
import io
import json
import linecache
from dataclasses import replace
from pathlib import Path

import pytest

from distlearn.grading import questions
from distlearn.grading.hidden import load
from distlearn.grading.judge import QuestionResult, judge, wrong_value
from distlearn.grading.notebook import evaluate
from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.programs import CubeProgram, KernelProgram
from distlearn.grading.question import Case, Mistake, Question
from tests.exercises import right_gpu, right_pipeline
from tests.exercises.material import HERE, hidden, mutants
from tests.exercises.right_pipeline import PARTLY

IMPORTS = ("import numpy as np\nfrom distlearn.pipeline import Costs, build, simulate\n"
           "from distlearn.kernels import cuda, float32\n"
           "from distlearn.kernels.ascend import CubeCore\n")
SOLUTIONS = Path(__file__).parents[2] / "solutions"
QUESTIONS = {question.id: question for question in questions()}
HIDDEN = hidden()
MUTANTS = mutants()
RIGHT = right_pipeline.RIGHT | right_gpu.RIGHT


def define(source: str) -> dict[str, object]:
    """Run an answer; its text stays to be read, as a kernel's has to be."""
    linecache.cache["answer.py"] = (len(source), None, source.splitlines(True), "answer.py")
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(source, "answer.py", "exec"), namespace)
    return namespace


def verdict(question: Question, source: str, *, visible: bool = False) -> QuestionResult:
    asked = question if visible else replace(question, cases=tuple(HIDDEN[question.id]))
    with contextlib.redirect_stdout(io.StringIO()):
        return evaluate(asked, define(source))


def first_failure(question: Question, source: str) -> QuestionResult:
    """The verdict on the first hidden case that fails, or on the last: others are not run."""
    namespace = define(source)
    with contextlib.redirect_stdout(io.StringIO()):
        for case in HIDDEN[question.id]:
            result = evaluate(replace(question, cases=(case,)), namespace)
            if not result.ok:
                break
    return result


def solution(question: Question) -> str:
    for path in SOLUTIONS.glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and f"def {question.function}(" in source:
                return f"{IMPORTS}{source}"
    raise AssertionError(f"no solution of {question.id}")


@pytest.mark.parametrize("name", QUESTIONS)
def test_reference_solution_passes_visible_and_hidden_cases(name: str) -> None:
    source = solution(QUESTIONS[name])
    for visible in (True, False):
        result = verdict(QUESTIONS[name], source, visible=visible)
        assert result.ok, result


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, mistake) for name in MUTANTS for mistake in MUTANTS[name]])
def test_hidden_cases_catch(name: str, mistake: str) -> None:
    result = first_failure(QUESTIONS[name], MUTANTS[name][mistake])
    assert not result.ok
    assert result.shown is not None or result.reason
    assert result.hint or result.reason or result.shown.comparable


@pytest.mark.parametrize(("name", "way"), [(name, way) for name in RIGHT for way in RIGHT[name]])
def test_another_right_way_passes(name: str, way: str) -> None:
    for visible in (True, False):
        result = verdict(QUESTIONS[name], RIGHT[name][way], visible=visible)
        assert result.ok, result


@pytest.mark.parametrize(("points", "way"), [(p, w) for p in PARTLY for w in PARTLY[p]])
def test_an_open_question_gives_a_part_of_its_points(points: int, way: str) -> None:
    result = verdict(QUESTIONS["pipeline/design"], PARTLY[points][way])
    assert not result.ok
    assert result.points == points, result


def test_every_question_has_hidden_cases_and_mutants() -> None:
    assert set(HIDDEN) == set(QUESTIONS) == set(MUTANTS)
    for name, question in QUESTIONS.items():
        assert len(HIDDEN[name]) >= 8
        assert len(MUTANTS[name]) >= 10
        new = [case for case in HIDDEN[name] if case.args not in [c.args for c in question.cases]]
        assert len(new) >= 8, "hidden cases must not just repeat the visible ones"


def test_hidden_cases_are_the_same_every_time() -> None:
    assert load(HERE) == HIDDEN


@pytest.mark.parametrize("name", QUESTIONS)
def test_known_mistakes_differ_from_the_truth_somewhere_visible(name: str) -> None:
    question = QUESTIONS[name]
    for mistake in question.mistakes:
        values = []
        for case in question.cases:
            try:
                values.append((wrong_value(question, mistake, case.args), case.wanted))
            except (ArithmeticError, IndexError):
                continue
        assert any(not question.answer.same(got, wanted) for got, wanted in values), mistake.hint


@pytest.mark.parametrize("name", QUESTIONS)
def test_hint_of_a_known_mistake_is_given_for_that_mistake(name: str) -> None:
    """An answer that computes a known wrong formula gets its hint, not that of another one."""
    question = QUESTIONS[name]
    for mistake in question.mistakes:
        result = made_by(mistake, question)
        assert not result.ok
        same = [other.hint for other in question.mistakes
                if all(_alike(_value(question, other, c), _value(question, mistake, c))
                       for c in question.cases)]
        assert result.hint in same, (mistake.hint, result.hint)


def made_by(mistake: Mistake, question: Question) -> QuestionResult:
    """The verdict on who makes this mistake; of a kernel there is only what it writes."""
    if isinstance(question.program, KernelProgram | CubeProgram):
        values = [(case, _value(question, mistake, case)) for case in question.cases]
        known = [(case, value) for case, value in values if value is not None]
        run = Run(tuple(Outcome("value", value=value) for _, value in known))
        return judge(question, [case for case, _ in known], run)
    return evaluate(question, {"__name__": "__main__", question.function: mistake.wrong})


def _alike(one: object, other: object) -> bool:
    return one == other or repr(one) == repr(other)  # nan is not equal to itself


def _value(question: Question, mistake: Mistake, case: Case) -> object:
    try:
        return wrong_value(question, mistake, case.args)
    except (ArithmeticError, IndexError):
        return None
