"""Pipelines executed: any schedule on a real model, over virtual ranks, MPI or torch.

`execute` runs a schedule; `stage_costs` gives `simulate` the real bytes of the model's stages, so
that what is simulated and what is measured can be compared.
"""

from __future__ import annotations

from distlearn.pipeline.runtime.executor import execute
from distlearn.pipeline.runtime.run import Run
from distlearn.pipeline.runtime.sizes import stage_costs

__all__ = ["Run", "execute", "stage_costs"]
