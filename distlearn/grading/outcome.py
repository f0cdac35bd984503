"""What became of one call of a learner's function, or of the cells before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = (
    "value",        # it returned: ``value`` is plain data
    "raised",       # it raised an exception
    "stub",         # NotImplementedError: not written yet
    "missing",      # there is no such function
    "not_callable",  # there is such a name, but it is not a function
    "arguments",    # it does not take the arguments the question gives
    "syntax",       # the cell that defines it cannot be read
    "library",      # it calls the library function that the question asks to do without
    "plain_def",    # a rank program that is no `async def`
    "operation",    # a rank program uses an operation that the question does not allow
    "kernel",       # a kernel breaks a rule: the message begins with which
    "stuck",        # ranks wait for each other, or do not ask for the same
    "exit",         # sys.exit(), os._exit(), or killed itself
    "input",        # it asks for keyboard input
    "time",         # it ran longer than the limit
    "memory",       # it needed more memory than the limit
    "processes",  # it started more processes or threads than it may
    "recursion",    # it called itself without end
    "interrupted",  # the learner pressed stop
    "silent",       # the process ended and sent nothing understandable
)


@dataclass(frozen=True)
class Outcome:
    """One of `KINDS`, with what is known about it.

    Attributes
    ----------
    kind : str
    value : plain data
        What was returned, for ``value``.
    message : str
        The exception's type and text, or a detail of the reason.
    where : str
        ``code cell 4, line 2``: the last line of the learner's code that ran, or "".
    code : str
        That line.
    printed : str
        The start of what the call printed.
    """

    kind: str
    value: Any = None
    message: str = ""
    where: str = ""
    code: str = ""
    printed: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"outcome kind must be one of {', '.join(KINDS)}; got {self.kind!r}")


@dataclass(frozen=True)
class Run:
    """All calls of one question: those that came back, and what stopped the rest.

    Attributes
    ----------
    outcomes : tuple of Outcome
        One per call, in order; shorter than the calls if something stopped them.
    stopped : Outcome or None
        What ended the run early. If ``outcomes`` is empty it happened before or in the first call.
    called : bool
        Whether it stopped in a call (and not in the cells before).
    notes : tuple of str
        Remarks for the learner, such as which of two definitions counted.
    """

    outcomes: tuple[Outcome, ...] = ()
    stopped: Outcome | None = None
    called: bool = False
    notes: tuple[str, ...] = ()
