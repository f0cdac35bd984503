"""Measure CPU seconds, and say how they compare with a reference."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """One thing measured.

    Attributes
    ----------
    name : str
        What was measured.
    value : float
        CPU seconds, or what ``unit`` says.
    reference : str
        The peer or floor that it is compared with, measured in the same run; "" if none.
    reference_value : float or None
        In the same unit.
    limit : float or None
        The most that ``value`` may be, by the target that the project has set itself.
    unit : str
    note : str
    """

    name: str
    value: float
    reference: str = ""
    reference_value: float | None = None
    limit: float | None = None
    unit: str = "CPU s"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """``value / reference_value``: below 1 is faster than the reference."""
        return None if not self.reference_value else self.value / self.reference_value

    @property
    def ok(self) -> bool:
        """Whether the target is met; True without one."""
        return self.limit is None or self.value <= self.limit


def cpu_seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least CPU seconds of a few calls, and what the last one returned.

    The least, because everything that disturbs a measurement adds to it. What earlier calls left
    behind is collected before each one; the collector runs during the call as it does in use.
    """
    best, result = math.inf, None
    for _ in range(repeats):
        result = None
        gc.collect()
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def growth_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The k of ``seconds ~ size**k``: slope of the least-squares line through the logarithms.

    Examples
    --------
    >>> round(growth_exponent([1, 2, 4], [3.0, 6.0, 12.0]), 6)
    1.0
    """
    xs, ys = [math.log(x) for x in sizes], [math.log(y) for y in seconds]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return (sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
            / sum((x - mean_x) ** 2 for x in xs))
