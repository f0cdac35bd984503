"""Learning-rate schedules: pure functions of the step.

`warmup_cosine` is the one large models are trained with; the others are DeepSpeed's, whose records
the tests compare with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def warmup_cosine(peak: float, warmup: int, decay_steps: int, floor: float = 0.0) -> Schedule:
    """Rise to ``peak`` in ``warmup`` steps, then fall to ``floor`` along half a cosine.

    Step s, from 0, is given peak · (s + 1) / warmup while s < warmup.

    Examples
    --------
    >>> rate = warmup_cosine(peak=1.0, warmup=2, decay_steps=4)
    >>> [round(rate(step), 3) for step in range(7)]
    [0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    _require_steps(warmup=warmup, decay_steps=decay_steps)

    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        done = min(1.0, (step - warmup + 1) / decay_steps)
        return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * done))

    return rate


def warmup(peak: float, steps: int, start: float = 0.0, shape: str = "log") -> Schedule:
    """DeepSpeed's WarmupLR: from ``start`` to ``peak``, then constant.

    Parameters
    ----------
    peak, start : float
    steps : int
        At least 2 are used, so that the logarithm has a base.
    shape : str
        ``log``: share log(s + 1) / log(steps); ``linear``: s / steps.
    """
    share = _warmup_share(steps, shape)
    return lambda step: start + (peak - start) * share(step)


def warmup_decay(
    peak: float, steps: int, total: int, start: float = 0.0, shape: str = "log"
) -> Schedule:
    """DeepSpeed's WarmupDecayLR: warm up, then fall to ``start`` in a line until ``total``."""
    share, steps = _warmup_share(steps, shape), max(2, steps)

    def rate(step: int) -> float:
        if step < steps:
            return start + (peak - start) * share(step)
        left = max(0.0, (total - step) / max(1.0, total - steps))
        return start + (peak - start) * left

    return rate


def warmup_cosine_ratio(
    base: float,
    steps: int,
    total: int,
    start_ratio: float = 0.0,
    floor_ratio: float = 1e-4,
    shape: str = "log",
) -> Schedule:
    """DeepSpeed's WarmupCosineLR: ratios of ``base``, warm up, then half a cosine to the floor."""
    share, steps = _warmup_share(steps, shape), max(2, steps)

    def rate(step: int) -> float:
        if step < steps:
            return base * (start_ratio + (1 - start_ratio) * share(step))
        done = (step - steps + 1) / max(1, total - steps)
        if done >= 1:
            return base * floor_ratio
        wave = (1 + math.cos(math.pi * done)) / 2
        return base * max(0.0, floor_ratio + (1 - floor_ratio) * wave)

    return rate


def one_cycle(
    low: float,
    high: float,
    rise: int,
    fall: int | None = None,
    decay_steps: int = 0,
    decay_rate: float = 0.0,
) -> Schedule:
    """DeepSpeed's OneCycle: low to high in ``rise`` steps, back in ``fall``, then hyperbolic decay.

    After the cycle the rate is low / (1 + decay_rate · steps since / decay_steps), or low if
    ``decay_steps`` is 0.
    """
    down = rise if fall is None else fall
    _require_steps(rise=rise, fall=down)
    total = rise + down

    def rate(step: int) -> float:
        place = step + 1
        if place <= total:
            height = place / rise if place <= rise else (total - place) / down
            return low + (high - low) * height
        periods = (place - total) / decay_steps if decay_steps else 0.0
        return low / (1 + decay_rate * periods)

    return rate


def _warmup_share(steps: int, shape: str) -> Callable[[int], float]:
    if shape not in ("log", "linear"):
        raise ValueError(f"shape must be log or linear; got {shape!r}")
    steps = max(2, steps)

    def share(step: int) -> float:
        if step >= steps:
            return 1.0
        return math.log(step + 1) / math.log(steps) if shape == "log" else step / steps

    return share


def _require_steps(**steps: int) -> None:
    for name, value in steps.items():
        if value < 1:
            raise ValueError(f"{name} must be a whole number >= 1; got {value}")
