"""Call a learner's function once and say, as plain data, what happened.

Used in the notebook (where the learner's code already is) and in the worker process (where all of
it stays). Standard library only.
"""

from __future__ import annotations

import io
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType
from typing import Any

from distlearn.grading.deadline import OutOfTime
from distlearn.grading.plain import encode

Perform = Callable[[Any, list[Any]], Any]
"""Call a function with arguments, in whatever way the question asks for."""


@dataclass(frozen=True)
class Measured:
    """A `Perform` whose value tells what an answer cost: counters, clocks.

    In two steps, so that the measuring can be done where the learner's code has never been.

    Attributes
    ----------
    take : callable
        ``take(function, args)``: what is to be measured, as plain data.
    measure : callable
        ``measure(taken, args)``.
    """

    take: Perform
    measure: Perform

    def __call__(self, function: Any, args: list[Any]) -> Any:
        """Both, here."""
        return self.measure(self.take(function, args), args)


PRINTED_KEPT = 400
_QUESTIONS = "distlearn.grading.sets"
PRINTED_SHOWN = 100_000  # characters; a page with more takes long to draw
MESSAGE_KEPT = 300


class Trouble(Exception):  # noqa: N818
    """What a `Perform` has to say instead of a value.

    Attributes
    ----------
    kind : str
        Of an `Outcome`.
    message : str
    place : str
        ``file:line`` of the learner's code, or "".
    """

    def __init__(self, kind: str, message: str, place: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.place = kind, message, place


class _Tee(io.TextIOBase):
    """Passes on what is printed, up to a length, and keeps its start."""

    def __init__(self, target: Any) -> None:
        self.target, self.kept, self.room = target, "", PRINTED_SHOWN

    def write(self, text: str) -> int:
        if len(self.kept) < PRINTED_KEPT:
            self.kept += text[: PRINTED_KEPT - len(self.kept)]
        if self.room > 0:
            self.room -= len(text)
            more = "\n… more was printed\n" if self.room <= 0 else ""
            self.target.write(text[: PRINTED_SHOWN] + more)
        return len(text)

    def flush(self) -> None:
        self.target.flush()


def call(
    function: Any,
    args: list[Any],
    namespace: dict[str, Any],
    label: Callable[[str], str] = str,
    perform: Perform | None = None,
) -> dict[str, Any]:
    """Call ``function(*args)`` and describe the result; never raises.

    Parameters
    ----------
    function : object
        Whatever the learner's code calls by the question's name.
    args : list
        Plain data. The function may change it: give a fresh copy.
    namespace : dict
        Globals of the learner's code, by which its frames are known.
    label : callable
        Turns a frame's file name into words such as ``code cell 4``.
    perform : callable, optional
        Calls it in another way, as ``perform(function, args)``.

    Returns
    -------
    dict
        Fields of an `Outcome`; ``value`` is coded by `plain.encode`.
    """
    if not callable(function):
        return {"kind": "not_callable", "message": type(function).__name__}
    tee = _Tee(sys.stdout)
    try:
        with redirect_stdout(tee):
            value = function(*args) if perform is None else perform(function, args)
            coded = encode(value)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are answers here
        return {**describe(error, namespace, label), "printed": tee.kept}
    return {"kind": "value", "value": coded, "printed": tee.kept}


def describe(
    error: BaseException, namespace: dict[str, Any], label: Callable[[str], str] = str,
    *, calling: bool = True,
) -> dict[str, Any]:
    """The fields of an `Outcome` for an exception: kind, message, where in the learner's code."""
    if isinstance(error, Trouble):
        file, _, line = error.place.rpartition(":")
        return {"kind": error.kind, "message": error.message[:MESSAGE_KEPT],
                **_place(file, int(line or 0), label)}
    where, code, inside = _last_frame(error.__traceback__, namespace, label)
    kinds: list[tuple[type[BaseException], str]] = [
        (NotImplementedError, "stub"), (SystemExit, "exit"), (EOFError, "input"),
        (MemoryError, "memory"), (RecursionError, "recursion"), (KeyboardInterrupt, "interrupted"),
        (OutOfTime, "time"), (BlockingIOError, "processes"),  # of a fork, with no room for more
    ]
    kind = next((name for cls, name in kinds if isinstance(error, cls)), "raised")
    if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):
        kind = "processes"
    if kind == "raised" and calling and not inside and isinstance(error, TypeError):
        kind = "arguments"
    if isinstance(error, SyntaxError) and not calling:
        kind = "syntax"
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
        text += "".join(f" ({note})" for note in getattr(error, "__notes__", ())
                        if note.startswith("on rank "))
    except BaseException:  # an exception whose __str__ raises
        text = ""
    name = type(error).__name__
    message = f"{name}: {text}" if text else name
    message = message.encode("utf-8", "replace").decode()[:MESSAGE_KEPT]
    return {"kind": kind, "message": message, "where": where, "code": code}


def _place(file: str, line: int, label: Callable[[str], str]) -> dict[str, str]:
    """Where, and the line of code; empty if there is no such line."""
    if not file:
        return {"where": "", "code": ""}
    return {"where": f"{label(file)}, line {line}",
            "code": linecache.getline(file, line).strip()[:120]}


def _last_frame(
    traceback: TracebackType | None, namespace: dict[str, Any], label: Callable[[str], str],
) -> tuple[str, str, bool]:
    """The last frame of the learner's own code: where, the line, and whether there is one."""
    where, code, inside = "", "", False
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals is namespace:
            name = frame.f_code.co_filename
            where = f"{label(name)}, line {traceback.tb_lineno}"
            code = linecache.getline(name, traceback.tb_lineno).strip()[:120]
            inside = True
        traceback = traceback.tb_next
    return where, code, inside


def uses_library(function: Any, names: tuple[str, ...], namespace: dict[str, Any]) -> str | None:
    """The first of distlearn's functions called ``names`` that ``function`` refers to, if any.

    What is written for the questions themselves, to know mistakes by, counts as well. Follows the
    learner's own functions. It is meant for the honest learner who takes the shortcut, not for one
    who hides it.
    """
    seen: set[str] = set()
    todo = [function]
    while todo:
        current = todo.pop()
        code = getattr(current, "__code__", None)
        if not isinstance(current, FunctionType) or not isinstance(code, CodeType):
            continue
        for name in _names(code):
            found = namespace.get(name)
            home = str(getattr(found, "__module__", "") or getattr(found, "__name__", ""))
            if _QUESTIONS in name or (home.startswith(_QUESTIONS) and found is not function):
                return name
            inside = home.startswith("distlearn.")
            if name in names and (inside or found is None):
                return name
            if name not in seen and not inside:
                seen.add(name)
                todo.append(found)
    return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
