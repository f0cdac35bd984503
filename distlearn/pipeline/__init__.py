"""Pipeline parallelism (note 2): schedules as data, validated and simulated.

``build(name, p, m)`` makes a `Schedule`; `validate` checks it; `simulate` gives its `Timeline`.
"""

from __future__ import annotations

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

__all__ = [
    "KINDS",
    "NAMES",
    "Action",
    "Costs",
    "Event",
    "Pair",
    "Schedule",
    "ScheduleError",
    "Slice",
    "Timeline",
    "bubble_span",
    "bubble_time",
    "build",
    "definition",
    "peak_activations",
    "simulate",
    "validate",
]
