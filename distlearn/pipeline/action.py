"""One step of a pipeline schedule: what is done, for which stage, for which microbatch."""

from __future__ import annotations

import re
from typing import NamedTuple

KINDS = {
    "F": "forward",
    "B": "full backward (input and weight gradient)",
    "I": "input-gradient half of the backward",
    "W": "weight-gradient half of the backward",
}

_PATTERN = re.compile(r"([A-Z])(\d+)\.(\d+)")


class Action(NamedTuple):
    """One step of one rank, written ``kind stage.microbatch``, for example ``F3.5``.

    Attributes
    ----------
    kind : str
        ``F`` forward, ``B`` full backward, ``I`` input gradient, ``W`` weight gradient (B = I + W).
    stage : int
        Global stage index, 0-based: 0 .. p*v - 1 over the whole pipeline.
    microbatch : int
        Microbatch index, 0-based.

    Examples
    --------
    >>> str(Action("F", 3, 5))
    'F3.5'
    >>> Action.parse("W0.11")
    Action(kind='W', stage=0, microbatch=11)
    """

    kind: str
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.kind}{self.stage}.{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read an action back from its text.

        Raises
        ------
        ValueError
            If ``text`` is not ``kind stage.microbatch``, or the kind is not one of ``KINDS``.
        """
        match = _PATTERN.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match[1] not in KINDS:
            raise ValueError(
                f"action {text!r} is not of the form kind + stage.microbatch, such as F3.5; "
                f"kinds are {', '.join(KINDS)}"
            )
        return cls(match[1], int(match[2]), int(match[3]))
