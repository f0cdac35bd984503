"""Figures: one function a picture, the same for book, notebook, command line and feedback."""

from __future__ import annotations

from distlearn.plots.collective_cost import collective_cost, crossovers
from distlearn.plots.collective_svg import collective_story, collective_svg
from distlearn.plots.collective_trace import Trace, describe_collective, trace
from distlearn.plots.comparison import bubble, memory
from distlearn.plots.difference import difference_svg
from distlearn.plots.ladder import ladder, ladder_text
from distlearn.plots.palette import KIND_NAMES, PALETTE
from distlearn.plots.roofline import roofline, roofline_text
from distlearn.plots.table import table
from distlearn.plots.timeline import timeline
from distlearn.plots.timeline_parts import describe
from distlearn.plots.timeline_svg import timeline_svg

__all__ = [
    "KIND_NAMES",
    "PALETTE",
    "Trace",
    "bubble",
    "collective_cost",
    "collective_story",
    "collective_svg",
    "crossovers",
    "describe",
    "describe_collective",
    "difference_svg",
    "ladder",
    "ladder_text",
    "memory",
    "roofline",
    "roofline_text",
    "table",
    "timeline",
    "timeline_svg",
    "trace",
]
