"""Every pipeline schedule, one file each; `build` makes one by name.

A schedule's file holds three pure functions: ``order`` (the definition), ``bubble_time`` and
``peak_activations`` (its closed formulas, which tests compare with the simulation).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules import gpipe, interleaved_1f1b, one_f_one_b, pipedream, zb_h1

_MODULES: dict[str, ModuleType] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved_1f1b": interleaved_1f1b,
    "zb_h1": zb_h1,
    "pipedream": pipedream,
}

NAMES: tuple[str, ...] = tuple(_MODULES)


def build(name: str, p: int, m: int, v: int = 1, **options: Any) -> Schedule:
    """Make a schedule by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    p, m, v : int
        Pipeline ranks, microbatches, virtual stages per rank, each >= 1.
    **options
        Options of that schedule, for example ``group`` of ``interleaved_1f1b``.

    Raises
    ------
    ValueError
        Unknown name, a size that is not a positive integer, an option the schedule does not
        have, or the rule of the schedule that the sizes break.

    Examples
    --------
    >>> [str(action) for action in build("1f1b", p=2, m=2).ranks[0]]
    ['F0.0', 'F0.1', 'B0.0', 'B0.1']
    """
    result: Schedule = _call(name, "order", p, m, v, options)
    return result


def bubble_time(name: str, p: int, m: int, v: int = 1, costs: Costs | None = None,
                **options: Any) -> float:
    """Closed formula of a rank's idle time in seconds (unit: that of ``costs``).

    Raises
    ------
    ValueError
        As `build`, or where the formula does not hold: stages that differ, transfers that take
        time, or times outside the schedule's own condition.
    """
    costs = costs if costs is not None else Costs()
    result: float = _call(name, "bubble_time", p, m, v, {"costs": costs, **options})
    return result


def peak_activations(name: str, p: int, m: int, v: int = 1, *, r: int, **options: Any) -> int:
    """Closed formula of the most activations that rank r keeps, in (stage, microbatch) pieces.

    Raises
    ------
    ValueError
        As `build`, or if r is not a rank.
    """
    if not isinstance(r, int) or not 0 <= r < p:
        raise ValueError(f"r must be a rank, 0 <= r < p={p}; got {r!r}")
    result: int = _call(name, "peak_activations", p, m, v, {"r": r, **options})
    return result


def definition(name: str) -> Callable[..., Schedule]:
    """The function that makes a schedule, to read its source or its docstring."""
    if name not in _MODULES:
        near = get_close_matches(str(name), NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"no schedule is called {name!r}; {hint}names are {', '.join(NAMES)}")
    function: Callable[..., Schedule] = _MODULES[name].order
    return function


def _call(name: str, function: str, p: int, m: int, v: int, options: dict[str, Any]) -> Any:
    parameters = inspect.signature(definition(name)).parameters
    for key, size in (("p", p), ("m", m), ("v", v)):
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ValueError(f"{name} needs {key} to be an integer >= 1; got {key}={size!r}")
    sizes = {"p": int(p), "m": int(m)}
    if "v" in parameters:
        sizes["v"] = int(v)
    elif v != 1:
        raise ValueError(f"{name} has one stage per rank, so v must be 1; got v={v}")
    known = set(parameters) - set(sizes) | {"costs", "r"}
    for key in options:
        if key not in known:
            has = ", ".join(sorted(set(parameters) - set(sizes))) or "none"
            raise ValueError(f"{name} has no option {key!r}; its options: {has}")
    return getattr(_MODULES[name], function)(**sizes, **options)
