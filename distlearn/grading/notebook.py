"""`check`: a learner's own look at an answer, where the answer is: in the notebook."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from typing import Any

from distlearn.grading.calling import Perform, call, uses_library
from distlearn.grading.deadline import within
from distlearn.grading.faces import html, text
from distlearn.grading.judge import QuestionResult, judge
from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.plain import decode
from distlearn.grading.question import Question, find

TIME_LIMIT = 10.0


class Checked:
    """What `check` returns: true if every visible case passes. It has already been shown.

    Attributes
    ----------
    result : QuestionResult
    """

    def __init__(self, result: QuestionResult) -> None:
        self.result = result

    def __bool__(self) -> bool:
        return self.result.ok

    def __repr__(self) -> str:
        return f"<{self.result.question.id}: {self.result.status}>"

    def _ipython_display_(self) -> None:
        """Nothing more: `check` has shown the card."""


def check(
    question: str, namespace: dict[str, Any] | None = None, *, time_limit: float = TIME_LIMIT,
) -> Checked:
    """Run the visible cases of a question on your function, and show how it did.

    Call it in the notebook, in a script or at the prompt; it finds your function by its name.

    Parameters
    ----------
    question : str
        Such as ``"pipeline/bubble"``.
    namespace : dict, optional
        Where to look for the function. Default: the caller's global names.
    time_limit : float
        Seconds after which your function is stopped, all cases together.

    Returns
    -------
    Checked
        True if every visible case passes. What the grader calls as well stays hidden.

    Raises
    ------
    ValueError
        If there is no such question, or ``time_limit`` is not above 0.
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit must be > 0 seconds; got {time_limit!r}")
    asked = find(question)
    names = sys._getframe(1).f_globals if namespace is None else namespace
    result = evaluate(asked, names, time_limit)
    _show(result)
    return Checked(result)


def evaluate(
    question: Question, names: dict[str, Any], time_limit: float = TIME_LIMIT,
) -> QuestionResult:
    """The verdict on the function that ``names`` holds, called here, in this process.

    Parameters
    ----------
    question : Question
    names : dict
        The globals of the learner's code, by which its lines are found in a traceback.
    time_limit : float
        Seconds for all cases together; see `deadline.within`.
    """
    defined = [name for name, value in names.items()
               if callable(value) and not name.startswith("_")
               and getattr(value, "__module__", None) == names.get("__name__", "__main__")]
    if question.function not in names:
        return judge(question, question.cases, Run(stopped=Outcome("missing")), defined=defined)
    function = names[question.function]
    shortcut = uses_library(function, question.without, names)
    if shortcut is not None:
        stopped = Outcome("library", message=shortcut)
        return judge(question, question.cases, Run(stopped=stopped), defined=defined)
    perform: Perform = _plainly
    if question.how is not None:
        from distlearn.grading.programs import performer

        perform = performer(question.how)
    end = time.monotonic() + time_limit

    def in_time(function: Any, args: list[Any]) -> Any:
        return within(max(end - time.monotonic(), 0.001), lambda: perform(function, args))

    outcomes: list[Outcome] = []
    for case in question.cases:
        args = list(copy.deepcopy(case.args))
        fields = call(function, args, names, _cell_label(), in_time)
        fields["value"] = decode(fields.get("value"))
        if fields["kind"] == "time":
            fields["message"] = f"{time_limit:g} s"
        outcome = Outcome(**fields)
        if outcome.kind in ("stub", "not_callable", "plain_def", "interrupted", "time"):
            run = Run(tuple(outcomes), outcome, called=bool(outcomes) or outcome.kind == "time")
            return judge(question, question.cases, run, defined=defined)
        outcomes.append(outcome)
    return judge(question, question.cases, Run(tuple(outcomes)), defined=defined)


def _plainly(function: Any, args: list[Any]) -> Any:
    return function(*args)


def _cell_label() -> Callable[[str], str]:
    """How to call a frame's file: ``cell In[5]`` in a notebook, else the file's name."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None

    def label(name: str) -> str:
        if shell is not None:
            try:
                words = shell.compile.format_code_name(name)
            except AttributeError:
                words = None
            if words is not None:
                return f"{words[0].lower()} {words[1]}"
        return name.replace("\\", "/").rsplit("/", 1)[-1]

    return label


def _show(result: QuestionResult) -> None:
    """As a card where there is a notebook, as text anywhere else."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        sys.stdout.write(text(result, graded=False) + "\n")
        return
    from IPython.display import display

    data = {"text/plain": text(result, graded=False)}
    if shell.has_trait("kernel"):
        data["text/html"] = html(result, graded=False)
    display(data, raw=True)  # type: ignore[no-untyped-call]
