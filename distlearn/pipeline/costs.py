"""What the actions of a schedule cost: seconds per action, seconds per transfer, bytes kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PerStage = float | Sequence[float]


@dataclass(frozen=True)
class Costs:
    """Times and activation sizes of one stage, or of each stage.

    Every figure is one number for all stages or a sequence with one number per stage (p*v of
    them). Any unit of time will do, if it is the same everywhere; seconds are meant.

    Attributes
    ----------
    F, B, I, W : float or sequence of float
        Seconds of a forward, a full backward, and its two halves: input gradient and weight
        gradient. What is not given follows from B = I + W: B alone is split evenly (default 2, so
        that I = W = 1), and a half that is missing is the rest of B, or 1.
    comm : float
        Seconds from the end of an action until its output is there on another rank. A rank does
        not wait for what it sends. Neighbouring stages on one rank need no transfer.
    activation : float or sequence of float
        Size of what a stage keeps of one microbatch from F until B (or I). Bytes, or 1 to count.
    activation_after_I : float or sequence of float, optional
        Size of the part still kept between I and W (the zero-bubble paper's M_W). Default: all.

    Raises
    ------
    ValueError
        For a figure that is negative, not finite or not a number, or sequences of different
        lengths.

    Examples
    --------
    >>> Costs(F=1, I=1.5, W=0.5).B
    2.0
    >>> Costs(B=3).I
    1.5
    """

    F: PerStage = 1.0
    B: PerStage = None  # type: ignore[assignment]  # filled in __post_init__, never None after
    I: PerStage = None  # type: ignore[assignment]
    W: PerStage = None  # type: ignore[assignment]
    comm: float = 0.0
    activation: PerStage = 1.0
    activation_after_I: PerStage = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        given: dict[str, Any] = {
            name: _read(name, getattr(self, name))
            for name in ("F", "B", "I", "W", "comm", "activation", "activation_after_I")
        }
        if isinstance(given["comm"], tuple):
            raise ValueError(f"comm must be one number; got {self.comm!r}")
        lengths = {name: len(x) for name, x in given.items() if isinstance(x, tuple)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"per-stage costs must have one length; got {lengths}")
        B, I, W = given["B"], given["I"], given["W"]
        if B is None and I is None and W is None:
            B = 2.0
        if B is None:
            I = 1.0 if I is None else I
            W = 1.0 if W is None else W
            B = _map(lambda i, w: i + w, I, W)
        elif I is None and W is None:
            I = W = _map(lambda b, _: b / 2, B, 0.0)
        elif I is None:
            I = _rest("I", B, "W", W)
        elif W is None:
            W = _rest("W", B, "I", I)
        given.update(B=B, I=I, W=W)
        if given["activation_after_I"] is None:
            given["activation_after_I"] = given["activation"]
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def per_stage(self, name: str, stages: int) -> list[float]:
        """The figure called ``name`` of each of ``stages`` stages.

        Raises
        ------
        ValueError
            If the costs were given for another number of stages.
        """
        value = getattr(self, name)
        if not isinstance(value, tuple):
            return [float(value)] * stages
        if len(value) != stages:
            raise ValueError(
                f"costs give {name} for {len(value)} stages; the schedule has {stages}")
        return list(value)

    def uniform(self) -> tuple[float, float, float, float]:
        """(F, B, I, W) if all stages cost the same and transfers nothing: what formulas assume.

        Raises
        ------
        ValueError
            Otherwise.
        """
        values = []
        for name in "FBIW":
            value = getattr(self, name)
            distinct = set(value) if isinstance(value, tuple) else {value}
            if len(distinct) != 1:
                raise ValueError(f"the formula needs equal stages; got {name}={value}")
            values.append(float(distinct.pop()))
        if self.comm:
            raise ValueError(f"the formula needs comm=0; got comm={self.comm}")
        return values[0], values[1], values[2], values[3]


def _read(name: str, value: Any) -> Any:
    """A float, a tuple of floats, or None; anything else is refused by name."""
    if value is None and name in ("B", "I", "W", "activation_after_I"):
        return None
    items = value if hasattr(value, "__len__") and not isinstance(value, str) else [value]
    numbers = []
    for item in items:
        try:
            number = float("nan") if isinstance(item, str | bool) else float(item)
        except (TypeError, ValueError):
            number = float("nan")
        if not math.isfinite(number) or number < 0:
            raise ValueError(f"costs must be finite numbers >= 0; got {name}={value!r}")
        numbers.append(number)
    if items is value and not numbers:
        raise ValueError(f"per-stage costs need one number per stage; got {name}={value!r}")
    return tuple(numbers) if items is value else numbers[0]


def _map(function: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return function(a, b)
    length = len(a) if isinstance(a, tuple) else len(b)
    left = a if isinstance(a, tuple) else (a,) * length
    right = b if isinstance(b, tuple) else (b,) * length
    return tuple(map(function, left, right))


def _rest(name: str, B: Any, other_name: str, other: Any) -> Any:
    rest = _map(lambda b, x: b - x, B, other)
    if min(rest if isinstance(rest, tuple) else (rest,)) < 0:
        raise ValueError(f"{name} = B - {other_name} must be >= 0; got B={B} {other_name}={other}")
    return rest
