"""Interactive views with two faces: ipywidgets in JupyterLab, HTML with its own script in the book.

`PipelineExplorer` and `CollectiveStepper` are two of them; `Face` is what they share.
"""

from __future__ import annotations

from distlearn.widgets.collective_stepper import CollectiveStepper
from distlearn.widgets.face import Face
from distlearn.widgets.pipeline_explorer import PipelineExplorer

__all__ = ["CollectiveStepper", "Face", "PipelineExplorer"]
