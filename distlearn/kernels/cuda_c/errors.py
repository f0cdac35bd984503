"""What can be wrong with a C source, and with a host program that runs."""

from __future__ import annotations

from typing import NoReturn


class SourceError(SyntaxError):
    """CUDA C that is malformed, or outside the subset that is understood here.

    Attributes
    ----------
    filename : str
    lineno : int
        Line of the C source, from 1.
    reason : str
    """

    def __init__(self, reason: str, filename: str, line: int, text: str | None = None) -> None:
        super().__init__(f"{filename}:{line}: {reason}", (filename, line, None, text))
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.filename}:{self.lineno}: {self.reason}"


class HostError(RuntimeError):
    """A host program that does what C forbids, or what is not modelled.

    Attributes
    ----------
    filename : str
    line : int
    reason : str
    """

    def __init__(self, reason: str, filename: str, line: int) -> None:
        super().__init__(f"{filename}:{line}: {reason}")
        self.filename, self.line, self.reason = filename, line, reason


def refuse(reason: str, coord: object, filename: str = "") -> NoReturn:
    """Raise `SourceError` for a syntax node's place (anything with ``file`` and ``line``)."""
    raise SourceError(reason, str(getattr(coord, "file", None) or filename),
                      int(getattr(coord, "line", 0)))
