"""How long a launch takes on a device, from its counters: no constant belongs to one kernel.

`Work` is what an average block does, `predict` what an SM and the device memory make of it.
"""

from __future__ import annotations

from distlearn.kernels.timing.predict import Prediction, predict
from distlearn.kernels.timing.resources import Resources, resources
from distlearn.kernels.timing.work import Work, work

__all__ = ["Prediction", "Resources", "Work", "predict", "resources", "work"]
