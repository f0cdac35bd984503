"""The slow executor: one Python generator a thread. It judges the fast one and steps for readers.

``rewrite`` turns a kernel into a generator function in which every access, operation and test
calls the thread; ``thread`` is what it calls; ``block`` runs a block's threads from barrier to
barrier; ``races`` finds conflicting accesses; ``grid`` runs all blocks and picks the first error;
``recording`` is the step debugger.
"""

from __future__ import annotations

from distlearn.kernels.oracle.grid import run
from distlearn.kernels.oracle.recording import Recording, Step, Touch, record

__all__ = ["Recording", "Step", "Touch", "record", "run"]
