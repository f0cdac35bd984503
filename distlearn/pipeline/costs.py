"""What the actions of a schedule cost: seconds per action, seconds per transfer, bytes kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LARGEST = 1e100  # so that no sum of times or bytes can overflow

PerStage = float | Sequence[float]
PerLink = float | Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Costs:
    """Times and sizes of one stage, or of each stage.

    A figure of a stage is one number for all stages or a sequence with one number per stage (p*v
    of them); a figure of a link is one number for all links or a mapping from (from rank, to rank)
    with an entry for every link that is used. Any unit of time will do, if it is the same
    everywhere; seconds are meant. Times are those of one action: of one slice, if sequences are cut
    into slices.

    Attributes
    ----------
    F, B, I, W : float or sequence of float
        Seconds of a forward, a full backward, and its two halves: input gradient and weight
        gradient. What is not given follows from B = I + W: B alone is split evenly (default 2, so
        that I = W = 1), and a half that is missing is the rest of B, or 1.
    R : float or sequence of float, optional
        Seconds of a recomputation. Default: as F.
    pair : float or sequence of float, optional
        Seconds of a merged pair (F&B), by the stage of its forward. Default: the sum of its parts,
        that is, nothing gained.
    comm : float or mapping
        Seconds from the end of an action until its output is there on another rank (latency).
        Neighbouring stages on one rank need no transfer.
    message : float or sequence of float
        Bytes that a stage sends to the next one per forward; its gradient has as many.
    bandwidth : float or mapping
        Bytes per second of a link. One message at a time: the next one waits. Default: unlimited.
    blocking : bool
        Whether a rank is busy while it sends. Default: transfers overlap with computation.
    swap : float or sequence of float
        Seconds to move one activation to the partner rank or to host memory, and as many to bring
        it back. A rank does one such transfer at a time in each direction, beside its computation.
    activation : float or sequence of float
        Size of what a stage keeps of one microbatch from F until B (or I). Bytes, or 1 to count.
    activation_after_I : float or sequence of float, optional
        Size of the part still kept between I and W (the zero-bubble paper's M_W). Default: all.
    checkpoint : float or sequence of float
        Size of what a stage keeps from F until R, if it recomputes: its input.
    weight, gradient : float or sequence of float
        Bytes of a stage's weights (one version) and of the gradients it accumulates.
    optimizer : float
        Seconds that a rank's optimizer step takes.
    slice_scale : sequence of float, optional
        Factor on the times of each slice, if sequences are cut into slices that take unequally
        long. Default: all 1.
    slice_size : sequence of float, optional
        Factor on the sizes of each slice (activation, what is left of it after I, checkpoint,
        message), if slices are of unequal length. Default: all 1.

    Raises
    ------
    ValueError
        For a figure that is negative, above 1e100 or not a number, or sequences of different
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
    comm: PerLink = 0.0
    activation: PerStage = 1.0
    activation_after_I: PerStage = None  # type: ignore[assignment]
    R: PerStage = None  # type: ignore[assignment]
    pair: PerStage | None = None
    message: PerStage = 0.0
    bandwidth: PerLink = math.inf
    blocking: bool = False
    swap: PerStage = 0.0
    checkpoint: PerStage = 0.0
    weight: PerStage = 0.0
    gradient: PerStage = 0.0
    optimizer: float = 0.0
    slice_scale: Sequence[float] | None = None
    slice_size: Sequence[float] | None = None

    def __post_init__(self) -> None:
        given: dict[str, Any] = {name: _read(name, getattr(self, name)) for name in _PER_STAGE}
        given.update({name: _read_links(name, getattr(self, name)) for name in _PER_LINK})
        given["optimizer"] = _read("optimizer", self.optimizer)
        for name in _PER_SLICE:
            given[name] = _read(name, getattr(self, name))
            if isinstance(given[name], float):
                raise ValueError(f"{name} needs one number per slice; got {given[name]!r}")
        if isinstance(given["optimizer"], tuple):
            raise ValueError(f"optimizer must be one number; got {self.optimizer!r}")
        if not isinstance(self.blocking, bool):
            raise ValueError(f"blocking must be True or False; got {self.blocking!r}")
        lengths = {name: len(given[name]) for name in _PER_STAGE if isinstance(given[name], tuple)}
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
        for name, default in (("activation_after_I", "activation"), ("R", "F")):
            if given[name] is None:
                given[name] = given[default]
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

    def per_slice(self, name: str, slices: int) -> list[float]:
        """The factor called ``name`` (slice_scale, slice_size) of each of ``slices`` slices.

        Raises
        ------
        ValueError
            If the costs were given for another number of slices.
        """
        value = getattr(self, name)
        if value is None:
            return [1.0] * slices
        if len(value) != slices:
            raise ValueError(
                f"costs give {name} for {len(value)} slices; the schedule has {slices}")
        return list(value)

    def one_comm(self) -> float:
        """The latency, if it is the same on all links.

        Raises
        ------
        ValueError
            Otherwise.
        """
        if not isinstance(self.comm, float):
            raise ValueError(f"this needs one comm for all links; got comm={self.comm}")
        return self.comm

    def per_link(self, name: str, source: int, target: int) -> float:
        """The figure called ``name`` (comm, bandwidth) of the link between two ranks.

        Raises
        ------
        ValueError
            If the costs were given per link and this one is not among them.
        """
        value = getattr(self, name)
        if not isinstance(value, tuple):
            return float(value)
        for link, number in value:
            if link == (source, target):
                return float(number)
        raise ValueError(f"costs give {name} for the links {[link for link, _ in value]}; the "
                         f"schedule also uses {(source, target)}")

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
        if self.bandwidth != math.inf:
            raise ValueError(f"the formula needs bandwidth=inf; got bandwidth={self.bandwidth}")
        return values[0], values[1], values[2], values[3]


_PER_STAGE = ("F", "B", "I", "W", "R", "pair", "message", "swap", "activation",
              "activation_after_I", "checkpoint", "weight", "gradient")
_PER_LINK = ("comm", "bandwidth")
_PER_SLICE = ("slice_scale", "slice_size")


def _read_links(name: str, value: Any) -> Any:
    """A float, or a tuple of ((source, target), float)."""
    if not isinstance(value, Mapping):
        if isinstance(value, tuple) and value and isinstance(value[0], tuple):
            return value  # read before: dataclasses.replace passes it again
        unlimited = name == "bandwidth" and isinstance(value, float) and value == math.inf
        number = float(value) if unlimited else _read(name, value)
        if isinstance(number, tuple):
            raise ValueError(f"{name} must be one number, or a mapping from (source, target); "
                             f"got {value!r}")
        if name == "bandwidth" and number == 0:
            raise ValueError("bandwidth must be > 0 bytes per second; got bandwidth=0")
        return number
    links = []
    for link, number in value.items():
        if not (isinstance(link, tuple) and len(link) == 2
                and all(isinstance(rank, int) for rank in link)):
            raise ValueError(f"{name} per link needs keys (source, target); got {link!r}")
        if isinstance(number, Mapping | tuple):
            raise ValueError(f"{name} needs one number per link; got {number!r} for {link}")
        links.append((link, _read_links(name, number)))
    return tuple(sorted(links))


def _read(name: str, value: Any) -> Any:
    """A float, a tuple of floats, or None; anything else is refused by name."""
    if value is None and name in ("B", "I", "W", "R", "pair", "activation_after_I",
                                  *_PER_SLICE):
        return None
    if hasattr(value, "tolist"):  # numpy: an array, or one number
        value = value.tolist()
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    items = value if several else [value]
    numbers = []
    for item in items:
        try:
            number = float("nan") if isinstance(item, str | bytes | bool) else float(item)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not 0 <= number <= LARGEST:  # also if it is nan
            raise ValueError(f"costs must be finite numbers >= 0, at most {LARGEST:g}; "
                             f"got {name}={value!r}")
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
