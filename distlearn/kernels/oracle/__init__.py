"""The slow executor: one Python generator a thread. It judges the fast one and steps for readers.

``rewrite`` turns a kernel into a generator function in which every access, operation and test
calls the thread; ``thread`` is what it calls; ``block`` runs a block's threads from barrier to
barrier; ``races`` finds conflicting accesses; ``grid`` runs all blocks and picks the first error.
"""

from __future__ import annotations

from distlearn.kernels.oracle.grid import run

__all__ = ["run"]
