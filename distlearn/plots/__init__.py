"""Figures: one function a picture, the same for book, notebook, command line and feedback."""

from __future__ import annotations

from distlearn.plots.ai_core import ai_core, ai_core_text
from distlearn.plots.collective_cost import collective_cost, crossovers
from distlearn.plots.collective_svg import collective_story, collective_svg
from distlearn.plots.collective_trace import Trace, describe_collective, trace
from distlearn.plots.comparison import bubble, memory
from distlearn.plots.difference import difference_svg
from distlearn.plots.ladder import ladder, ladder_text
from distlearn.plots.memory_levels import memory_levels, memory_levels_text
from distlearn.plots.multiprocessor import multiprocessor, multiprocessor_text
from distlearn.plots.node_links import node_links, node_links_text
from distlearn.plots.palette import KIND_NAMES, PALETTE
from distlearn.plots.pipes import pipes, pipes_text
from distlearn.plots.roofline import roofline, roofline_text
from distlearn.plots.table import table
from distlearn.plots.thread_grid import thread_grid, thread_grid_text
from distlearn.plots.timeline import timeline
from distlearn.plots.timeline_parts import describe
from distlearn.plots.timeline_svg import timeline_svg

__all__ = [
    "KIND_NAMES",
    "PALETTE",
    "Trace",
    "ai_core",
    "ai_core_text",
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
    "memory_levels",
    "memory_levels_text",
    "multiprocessor",
    "multiprocessor_text",
    "node_links",
    "node_links_text",
    "pipes",
    "pipes_text",
    "roofline",
    "roofline_text",
    "table",
    "thread_grid",
    "thread_grid_text",
    "timeline",
    "timeline_svg",
    "trace",
]
