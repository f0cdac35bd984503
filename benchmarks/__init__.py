"""Speed, as ratios against a peer or a floor measured in the same run. ``python -m benchmarks``.

One file a topic. A topic is a module with ``TITLE`` and ``results()``, a generator that yields a
`Result` for each thing measured; ``benchmarks.TOPICS`` names the modules. All times are CPU
seconds of this process, because wall time depends on what else the machine does.
"""

from __future__ import annotations

TOPICS = ("pipeline", "nn", "comm", "kernels")
