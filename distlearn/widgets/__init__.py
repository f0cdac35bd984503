"""Interactive views with two faces: in JupyterLab, and HTML with its own script in the book.

`Face` is what views share that Python computes while a kernel runs; `StaticFace` what those share
that are the same everywhere, each an explorer of one rule of the hardware.
"""

from __future__ import annotations

from distlearn.widgets.bank_conflict_explorer import BankConflictExplorer
from distlearn.widgets.coalescing_explorer import CoalescingExplorer
from distlearn.widgets.collective_stepper import CollectiveStepper
from distlearn.widgets.cube_timeline import CubeTimeline
from distlearn.widgets.face import Face, StaticFace
from distlearn.widgets.occupancy_explorer import OccupancyExplorer
from distlearn.widgets.pipeline_explorer import PipelineExplorer
from distlearn.widgets.roofline_explorer import RooflineExplorer
from distlearn.widgets.thread_index_explorer import ThreadIndexExplorer
from distlearn.widgets.warp_stepper import WarpStepper

__all__ = [
    "BankConflictExplorer",
    "CoalescingExplorer",
    "CollectiveStepper",
    "CubeTimeline",
    "Face",
    "OccupancyExplorer",
    "PipelineExplorer",
    "RooflineExplorer",
    "StaticFace",
    "ThreadIndexExplorer",
    "WarpStepper",
]
