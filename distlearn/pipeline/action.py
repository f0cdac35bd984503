"""One step of a pipeline schedule: what is done, for which stage, for which microbatch."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

KINDS = {
    "F": "forward",
    "B": "full backward (input and weight gradient)",
    "I": "input-gradient half of the backward",
    "W": "weight-gradient half of the backward",
    "R": "recomputation of what the forward did not keep",
    "E": "evict: send an activation to the partner rank",
    "L": "load it back from the partner rank",
    "O": "offload: send an activation to host memory",
    "P": "prefetch it back from host memory",
}

TRANSFERS = frozenset("ELOP")  # move an activation while the rank computes something else

_PATTERN = re.compile(r"([A-Z])(\d+)\.(\d+)(?:\.(\d+))?")


class _Plain(NamedTuple):
    kind: str
    stage: int
    microbatch: int


class Action(_Plain):
    """One step of one rank, written ``kind stage.microbatch``, for example ``F3.5``.

    It is a tuple ``(kind, stage, microbatch)``, and equal to it. Two kinds of action hold more: a
    `Slice` (``F3.5.1``, slice 1 of the sequences of microbatch 5) and a `Pair` (``F3.5&B0.1``, two
    actions run as one, overlapped).

    Attributes
    ----------
    kind : str
        One of ``KINDS``: ``F`` forward, ``B`` full backward, ``I`` input gradient, ``W`` weight
        gradient (B = I + W), ``R`` recompute, ``E``/``L`` evict to and load from the partner
        rank, ``O``/``P`` offload to and prefetch from host memory; ``F&B`` for a pair.
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
    >>> Action.parse("F3.5&B0.1").parts
    (Action(kind='F', stage=3, microbatch=5), Action(kind='B', stage=0, microbatch=1))
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.kind}{self.stage}.{self.microbatch}"

    @property
    def slice(self) -> int | None:
        """Which slice of the sequence; None if sequences are whole."""
        return None

    @property
    def parts(self) -> tuple[Action, ...]:
        """The actions that this one consists of: itself, or the two of a pair."""
        return (self,)

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read an action back from its text.

        Raises
        ------
        ValueError
            If ``text`` is not ``kind stage.microbatch``, with a slice or as a pair, or the kind is
            not one of ``KINDS``.
        """
        if isinstance(text, str) and "&" in text:
            first, _, second = text.partition("&")
            return Pair(Action.parse(first), Action.parse(second))
        match = _PATTERN.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match[1] not in KINDS:
            raise ValueError(
                f"action {text!r} is not of the form kind + stage.microbatch, such as F3.5, "
                f"F3.5.1 (a slice) or F3.5&B0.1 (a pair); kinds are {', '.join(KINDS)}"
            )
        if match[4] is not None:
            return Slice(match[1], int(match[2]), int(match[3]), int(match[4]))
        return Action(match[1], int(match[2]), int(match[3]))


class Slice(Action):
    """An action on one slice of a microbatch's sequences, written ``F3.5.1``.

    A tuple of four: ``(kind, stage, microbatch, slice)``.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        @property
        def slice(self) -> int:
            """Which slice of the sequence, 0-based."""
    else:
        slice = property(itemgetter(3), doc="Which slice of the sequence, 0-based.")

    def __new__(cls, kind: str, stage: int, microbatch: int, slice: int) -> Slice:  # noqa: A002
        """Make one from its parts."""
        return tuple.__new__(cls, (kind, stage, microbatch, slice))

    def __getnewargs__(self) -> tuple[str, int, int, int]:
        return self.kind, self.stage, self.microbatch, self.slice

    def __str__(self) -> str:
        return f"{self.kind}{self.stage}.{self.microbatch}.{self.slice}"

    def __repr__(self) -> str:
        return f"Slice({self.kind!r}, {self.stage}, {self.microbatch}, {self.slice})"


class Pair(Action):
    """Two actions that run as one, overlapped: written ``F3.5&B0.1``.

    ``stage`` and ``microbatch`` are those of the first. A tuple of five:
    ``(kind, stage, microbatch, first, second)``.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        @property
        def parts(self) -> tuple[Action, ...]:
            """The two actions."""
    else:
        parts = property(itemgetter(slice(3, 5)), doc="The two actions.")

    def __new__(cls, first: Action, second: Action) -> Pair:
        """Make one from its two actions."""
        return tuple.__new__(
            cls, (f"{first.kind}&{second.kind}", first.stage, first.microbatch, first, second))

    def __getnewargs__(self) -> tuple[Action, Action]:
        return self.parts[0], self.parts[1]

    def __str__(self) -> str:
        return "&".join(map(str, self.parts))

    def __repr__(self) -> str:
        return f"Pair({self.parts[0]!r}, {self.parts[1]!r})"


