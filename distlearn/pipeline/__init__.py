"""Pipeline parallelism (note 2): schedules as data, validated, simulated and executed.

``build(name, p, m)`` makes a `Schedule`; `validate` checks it; `simulate` gives its `Timeline`;
`execute` runs it on a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distlearn.pipeline.action import KINDS, Action, Pair, Slice
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules import (
    NAMES,
    bubble_span,
    bubble_time,
    build,
    definition,
    peak_activations,
)
from distlearn.pipeline.simulator import simulate
from distlearn.pipeline.timeline import Event, Timeline
from distlearn.pipeline.validate import ScheduleError, validate

if TYPE_CHECKING:
    from distlearn.pipeline.runtime import Run, execute, stage_costs

__all__ = [
    "KINDS",
    "NAMES",
    "Action",
    "Costs",
    "Event",
    "Pair",
    "Run",
    "Schedule",
    "ScheduleError",
    "Slice",
    "Timeline",
    "bubble_span",
    "bubble_time",
    "build",
    "definition",
    "execute",
    "peak_activations",
    "simulate",
    "stage_costs",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load the runtime when it is first asked for: it needs numpy, schedules alone do not."""
    if name in ("Run", "execute", "stage_costs"):
        from distlearn.pipeline import runtime

        return getattr(runtime, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
