"""Every pipeline schedule, one file each; `build` makes one by name.

A schedule's file holds pure functions: ``order`` (the definition), and, where closed formulas
exist, ``bubble_time`` and ``peak_activations``, which tests compare with the simulation.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import LARGEST, Schedule
from distlearn.pipeline.schedules import (
    amdp,
    bpipe,
    breadth_first,
    chimera,
    dapple,
    dualpipe,
    dualpipe_v,
    gis,
    gis_h,
    gpipe,
    hanayo,
    interleaved_1f1b,
    interleaved_zero_bubble,
    mario,
    one_f_one_b,
    one_f_one_b_v,
    pipedream,
    pipedream_2bw,
    pipemare,
    seq1f1b,
    terapipe,
    v_auto,
    v_half,
    v_min,
    xpipe,
    zb_1p,
    zb_2p,
    zb_auto,
    zb_h1,
    zb_h2,
    zb_v,
)
from distlearn.pipeline.schedules.options import check_options

_MODULES: dict[str, ModuleType] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "dapple": dapple,
    "interleaved_1f1b": interleaved_1f1b,
    "breadth_first": breadth_first,
    "bpipe": bpipe,
    "chimera": chimera,
    "hanayo": hanayo,
    "zb_h1": zb_h1,
    "zb_h2": zb_h2,
    "zb_1p": zb_1p,
    "zb_2p": zb_2p,
    "zb_auto": zb_auto,
    "interleaved_zero_bubble": interleaved_zero_bubble,
    "zb_v": zb_v,
    "v_half": v_half,
    "v_min": v_min,
    "v_auto": v_auto,
    "1f1b_v": one_f_one_b_v,
    "gis": gis,
    "gis_h": gis_h,
    "seq1f1b": seq1f1b,
    "terapipe": terapipe,
    "dualpipe": dualpipe,
    "dualpipe_v": dualpipe_v,
    "mario": mario,
    "pipedream": pipedream,
    "pipedream_2bw": pipedream_2bw,
    "pipemare": pipemare,
    "xpipe": xpipe,
    "amdp": amdp,
}

NAMES: tuple[str, ...] = tuple(_MODULES)


def build(name: str, p: int, m: int, v: int | None = None, **options: Any) -> Schedule:
    """Make a schedule by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    p, m, v : int
        Pipeline ranks, microbatches, virtual stages per rank, each >= 1. Default for v: what the
        schedule is made for, 2 for those placed in a V, else 1.
    **options
        Options of that schedule, for example ``group`` of ``interleaved_1f1b``. All take
        ``costs`` (a `Costs`, or a mapping of its fields); most orders do not depend on it.

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
    with _collector_resting():
        result: Schedule = _call(name, "order", p, m, v, options)
    return result


@contextlib.contextmanager
def _collector_resting() -> Iterator[None]:
    """Without the garbage collector: it would go through the actions made so far, again and again.

    They hold no cycles, so there is nothing for it to find; the cost stays linear in their number.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def bubble_time(name: str, p: int, m: int, v: int | None = None, costs: Costs | None = None,
                **options: Any) -> float:
    """Closed formula of a rank's idle time in seconds (unit: that of ``costs``).

    Of the rank that idles most, within the span that `bubble_span` names.

    Raises
    ------
    ValueError
        As `build`, or where the formula does not hold: stages that differ, transfers that take
        time, or times outside the schedule's own condition; or if the schedule has none.
    """
    costs = costs if costs is not None else Costs()
    result: float = _call(name, "bubble_time", p, m, v, {"costs": costs, **options})
    return result


def bubble_span(name: str) -> str:
    """The `Timeline` attribute within which `bubble_time` counts idle time.

    ``"makespan"``, or ``"longest_span"`` for schedules whose ranks do not wait for each other at
    the end of a step.
    """
    definition(name)
    return getattr(_MODULES[name], "SPAN", "makespan")


def peak_activations(name: str, p: int, m: int, v: int | None = None, *, r: int, **options: Any
                     ) -> int:
    """Closed formula of the most activations that rank r keeps, in (stage, microbatch) pieces.

    Raises
    ------
    ValueError
        As `build`, or if r is not a rank, or where the schedule has no such formula.
    """
    result: int = _call(name, "peak_activations", p, m, v, {"r": r, **options})
    return result


def definition(name: str) -> Callable[..., Schedule]:
    """The function that makes a schedule, to read its source or its docstring."""
    if not isinstance(name, str) or name not in _MODULES:
        near = get_close_matches(str(name), NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"no schedule is called {name!r}; {hint}names are {', '.join(NAMES)}")
    function: Callable[..., Schedule] = _MODULES[name].order
    return function


def _call(name: str, function: str, p: int, m: int, v: int | None, options: dict[str, Any]
          ) -> Any:
    parameters = _parameters(definition(name))
    for key, size in (("p", p), ("m", m), ("v", 1 if v is None else v)):
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ValueError(f"{name} needs {key} to be an integer >= 1; got {key}={size!r}")
    sizes = {"p": int(p), "m": int(m)}
    if "v" in parameters:
        if v is not None:
            sizes["v"] = int(v)
        elif parameters["v"].default is inspect.Parameter.empty:
            sizes["v"] = 1
    elif v not in (None, 1):
        raise ValueError(f"{name} has one stage per rank, so v must be 1; got v={v}")
    called = getattr(_MODULES[name], function, None)
    if called is None:
        raise ValueError(f"{name} has no closed formula for its {function.replace('_', ' ')}; "
                         "simulate it")
    given = check_options(name, options, parameters, _parameters(called))
    counts = sizes | {key: given[key] for key in ("slices", "batches", "waves") if given.get(key)}
    if math.prod(counts.values()) > LARGEST:
        raise ValueError(f"{name} with {', '.join(f'{k}={x}' for k, x in counts.items())} has more "
                         f"than {LARGEST:,} forward passes, too many to list")
    if function == "peak_activations" and not 0 <= given["r"] < sizes["p"]:
        raise ValueError(f"r must be a rank, 0 <= r < p={sizes['p']}; got {given['r']!r}")
    if "costs" not in _parameters(called):
        given.pop("costs", None)
    return called(**sizes, **given)


@cache  # a catalogue of small schedules would read them thousands of times
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters
