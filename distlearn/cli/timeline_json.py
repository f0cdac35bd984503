"""A simulated timeline as JSON; ``timeline.schema.json`` beside this file is its contract.

The names are those of the Python attributes. What is there now stays: a reader of version 1 can
read every later file that says version 1. Fields may be added.
"""

from __future__ import annotations

import json
from typing import Any

from distlearn.cli.numbers import Formula
from distlearn.pipeline import Timeline

FORMAT, VERSION = "distlearn.timeline", 1


def to_json(timeline: Timeline, formula: Formula, options: dict[str, Any]) -> str:
    """Write a timeline, its numbers and the closed formulas; one event a line.

    Parameters
    ----------
    timeline : Timeline
    formula : Formula
    options : dict
        What `build` was given besides p, m and v.
    """
    schedule, costs = timeline.schedule, timeline.costs
    head = {
        "format": FORMAT,
        "version": VERSION,
        "schedule": {
            "name": schedule.name, "p": schedule.p, "m": schedule.m, "v": schedule.v,
            "options": options, "placement": schedule.placement,
        },
        "costs": {
            name: costs.per_stage(name, schedule.stages) for name in ("F", "B", "I", "W")
        } | {"comm": costs.comm},
        "makespan": timeline.makespan,
        "ideal": timeline.ideal,
        "longest_span": timeline.longest_span,
        "bubble_fraction": timeline.bubble_fraction,
        "bubble_over_ideal": timeline.bubble_over_ideal,
        "span_bubble_fraction": timeline.span_bubble_fraction,
        "span_bubble_over_ideal": timeline.span_bubble_over_ideal,
        "busy": timeline.busy,
        "peak_activations": timeline.peak_activations,
        "formula": {"bubble_time": formula.idle, "peak_activations": formula.peaks,
                    "text": formula.text},
    }
    events = ",\n  ".join(
        json.dumps({"rank": event.rank, "action": str(event.action), "kind": event.action.kind,
                    "stage": event.action.stage, "microbatch": event.action.microbatch,
                    "start": event.start, "end": event.end})
        for event in timeline.events)
    fields = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    return f'{{{fields},\n "events": [\n  {events}\n ]}}\n'
