"""What can go wrong between ranks, each with its own name.

Every error of the virtual engine says which rank waits where (file and line) in which operation for
whom. ``DeadlockError`` is the general case, in which no rank can go on; its subclasses name the
usual reasons.
"""

from __future__ import annotations

from typing import NamedTuple


class Waiting(NamedTuple):
    """One rank that waits.

    Attributes
    ----------
    rank : int
        World rank.
    operation : str
        What it asked for, with dtype, shape and parameters.
    peers : tuple of int
        World ranks it waits for.
    location : str
        ``file:line`` of the call in the user's program.
    """

    rank: int
    operation: str
    peers: tuple[int, ...]
    location: str


class CommError(RuntimeError):
    """Base of all errors of this package that concern more than one rank's arguments.

    Attributes
    ----------
    waiting : tuple of Waiting
        Every rank that waited when the error was found; empty where an engine cannot know.
    """

    def __init__(self, message: str, waiting: tuple[Waiting, ...] = ()) -> None:
        super().__init__(message)
        self.waiting = waiting


class DeadlockError(CommError):
    """No rank can go on: each waits for another one."""


class MissingParticipantError(DeadlockError):
    """A collective waits for a rank that has finished without taking part."""


class UnmatchedSendError(DeadlockError):
    """A message was sent that nobody receives."""


class UnmatchedRecvError(DeadlockError):
    """A message is awaited that nobody sends."""


class MismatchError(CommError):
    """The ranks of a group call different collectives, or the same one with different arguments."""


class NotAwaitedError(CommError):
    """A rank called an operation and never awaited it, so it never happened."""


class RankError(CommError):
    """A rank ended before its program did: it was killed, or it called ``sys.exit``.

    Attributes
    ----------
    rank : int or None
        World rank, None where the launcher does not tell.
    exit_code : int or None
        Exit status of the process; negative: the signal that killed it.
    """

    def __init__(self, message: str, rank: int | None = None,
                 exit_code: int | None = None) -> None:
        super().__init__(message)
        self.rank, self.exit_code = rank, exit_code


class TimeLimitError(CommError):
    """The ranks did not finish within the wall-clock limit."""


class EngineError(CommError):
    """An engine cannot be started: what is missing and how to get it."""
