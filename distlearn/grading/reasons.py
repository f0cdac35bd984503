"""Why a call gave no value that can be compared: in plain words, with what to try."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from distlearn.grading.calling import PRINTED_KEPT
from distlearn.grading.kernel_trouble import in_words
from distlearn.grading.outcome import Outcome
from distlearn.grading.programs import KernelProgram
from distlearn.grading.question import Question, RankProgram, questions


class Reason(NamedTuple):
    """A short status for the class summary, a sentence, and a hint or ""."""

    status: str
    text: str
    hint: str


def explain(question: Question, outcome: Outcome, defined: Sequence[str], kind: str) -> Reason:
    """The reason for an outcome that is not a value of the right type.

    Parameters
    ----------
    question : Question
    outcome : Outcome
    defined : sequence of str
        Names that the learner's code defines.
    kind : str
        "notebook" or "file": how to call what the learner wrote.
    """
    if outcome.kind == "value":
        return Reason("wrong type", question.answer.misfit(outcome.value), _printed(outcome))
    if outcome.kind in ("stub", "missing", "not_callable", "arguments", "library", "plain_def",
                        "operation"):
        return _about_the_function(question, outcome, defined, kind)
    at = f"{outcome.where}: " if outcome.where else ""
    if outcome.kind == "kernel":
        status, what, advice = in_words(outcome.message)
        shown = f", in `{outcome.code}`" if outcome.code else ""
        return Reason(status, f"{at}{what}{shown}.", advice)
    code = f" in `{outcome.code}`" if outcome.code else ""
    table = {
        "syntax": Reason(
            "syntax error", f"{at}{outcome.message}{code}.",
            "Run this cell in the notebook: Python marks the place."
            if kind == "notebook" else "Run the file with Python: it marks the place."),
        "stuck": Reason("deadlock" if "no rank can" in outcome.message else "ranks out of step",
                        f"{at}{outcome.message}{code}.", _stuck_hint(outcome.message)),
        "exit": Reason(
            "stopped Python", f"{at}{_exit(outcome)}",
            "A function hands back its result with `return`; take out exit() and the like."),
        "input": Reason(
            "asks for input",
            f"{at}it waits for keyboard input{code}, and nobody is there to type.",
            "Take out input(): the question passes the values as arguments."),
        "time": Reason(
            "time limit", f"{at}{'y' if at else 'Y'}our code did not finish: it took longer than "
            f"{outcome.message}{code} and was stopped.",
            "It prints a lot, which takes time as well: take out `print`, or make it rare."
            if len(outcome.printed) >= PRINTED_KEPT
            else "Does every loop end? Does its variable change?"),
        "memory": Reason(
            "memory limit", f"{at}it ran out of memory{code}.", "Does a list grow without end?"),
        "processes": Reason(
            "too many processes",
            f"{at}{'i' if at else 'I'}t starts too many processes or threads{code}.",
            "The question needs none: a plain function that computes and returns is enough."),
        "recursion": Reason(
            "exception", f"{at}it calls itself without end{code}.",
            "A function that calls itself needs a case in which it does not."),
        "interrupted": Reason(
            "interrupted", f"{at}you interrupted it{code}.", "Does every loop end?"),
        "silent": Reason(
            "no result", f"No result came back: {outcome.message}.",
            "The code closed or flooded what the grader listens to."),
    }
    if outcome.kind in table:
        return table[outcome.kind]
    return Reason("exception", f"{at}{outcome.message}{code}.", _exception_hint(outcome.message))


def _about_the_function(question: Question, outcome: Outcome, defined: Sequence[str], kind: str,
                        ) -> Reason:
    name = question.function
    if outcome.kind == "stub":
        return Reason(
            "not written yet", f"`{name}` is not written yet.",
            f"Replace `raise NotImplementedError` in `{question.head}` by your code.")
    if outcome.kind == "missing":
        return Reason(
            "missing", f"{question.id} needs a function `{name}`; {_instead(name, defined, kind)}.",
            f"It begins with `{question.head}:`. Before `check`, run its cell."
            if kind == "notebook" else f"It begins with `{question.head}:`.")
    if outcome.kind == "not_callable":
        return Reason(
            "missing", f"{question.id} needs a function `{name}`; in your {kind} it is a value of "
            f"type {outcome.message}.",
            f"Write `{question.head}:`, and use another name for the value.")
    if outcome.kind == "arguments":
        return Reason(
            "exception", f"`{name}` cannot be called like this: {outcome.message}.",
            f"The question calls `{question.signature}`: give it these parameters.")
    if outcome.kind == "plain_def" and isinstance(question.program, KernelProgram):
        return Reason("exception", f"`{name}` is a plain function. A kernel has `@cuda.jit` on the "
                      "line above its `def`.", "Put `@cuda.jit` above `def`.")
    if outcome.kind == "plain_def":
        return Reason("exception", f"`{name}` is a plain `def`. A rank program may have to wait, "
                      f"so it is written `{question.head}:`.", "Put `async` before `def`.")
    if outcome.kind == "operation" and isinstance(question.program, RankProgram):
        allowed = ", ".join(f"`{x}`" for x in question.program.operations)
        return Reason("operation not allowed", f"`{name}` uses `comm.{outcome.message}`; this "
                      f"question is to be solved with {allowed} only.", "")
    return Reason(
        "library call", f"`{name}` calls distlearn's own `{outcome.message}`.",
        "That is the answer already: write this one yourself, and use the library to compare.")


def _printed(outcome: Outcome) -> str:
    if outcome.value is not None or not outcome.printed.strip():
        return ""
    shown = " ".join(outcome.printed.split())[:60]
    return f"It printed {shown!r}: print only shows a value, `return` hands it back."


def _instead(name: str, defined: Sequence[str], kind: str) -> str:
    answers = {question.function for question in questions()}
    others = [x for x in defined if x not in answers]
    near = get_close_matches(name, others, n=1, cutoff=0.5)
    near = near or [x for x in others if len(x) > 3 and (x in name or name in x)][:1]
    if near:
        return f"your {kind} defines `{near[0]}`"
    if others:
        shown = ", ".join(f"`{x}`" for x in others[:4])
        return f"your {kind} defines {shown}{', …' if len(others) > 4 else ''}"
    return f"your {kind} defines no function for it"


def _exit(outcome: Outcome) -> str:
    if outcome.message.startswith("SIG"):
        return f"the Python process was killed ({outcome.message})."
    return f"it ends the whole Python process ({outcome.message.replace(': ', ' ')})."


def _stuck_hint(message: str) -> str:
    if "without `await`" in message:
        return "Write `await` before the call."
    if "tags" in message:
        return "Leave the tags out, or give a message the same tag at both ends."
    if "until rank" in message and "waits for" not in message and "waits in" not in message:
        return ("A `send` ends when its message is received, and here nobody receives. Start with "
                "`isend`, receive, and await the send after that.")
    if "never comes" in message or "never receives" in message:
        return "Every send needs one receive on the other rank: count them, and look at the ranks."
    if "finished without" in message:
        return "Every rank of the group has to call it, also those that have nothing to give."
    if "same collective" in message:
        return "All ranks of a group call the same operations in the same order."
    return "Who has to go first? Follow one message from rank to rank."


def _exception_hint(message: str) -> str:
    if message.startswith("KernelError: bad_launch"):
        return "Take out `@cuda.jit`: this question asks for a plain function."
    if any(name in message for name in ("'Request'", "'Collective'", "'coroutine'",
                                        "distlearn.comm.operation.")):
        return "Write `await` before an operation of `comm`: without it there is no value yet."
    hints = {
        "ZeroDivisionError": "Which denominator can be 0 for these arguments?",
        "IndexError": "Lists count from 0 and end at len - 1.",
        "NameError": "Is the name spelt right, and defined in this cell or in one above?",
        "UnboundLocalError": "The variable is read before this function gives it a value.",
        "ModuleNotFoundError": "The question needs the standard library, numpy and distlearn only.",
        "KeyError": "The dictionary has no such key: look at the keys it has.",
        "AttributeError": "Look at the type of the value before the point.",
    }
    return hints.get(message.split(":")[0], "")
