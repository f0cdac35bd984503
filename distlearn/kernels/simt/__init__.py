"""The fast executor: all threads of many blocks at once, as numpy arrays that broadcast.

``space`` has the axes, symbolic integers and masks; ``numbers`` computes with them; ``access``
loads, stores and counts; ``races`` checks barrier intervals; ``compiling`` turns a kernel's syntax
tree into closures, which ``frozen`` keeps from launch to launch; ``loops`` runs all iterations of a
loop at once if they do not depend on each other; ``machine`` runs a launch, some 65,000 threads at
a time.
"""

from __future__ import annotations

from distlearn.kernels.simt.machine import run

__all__ = ["run"]
