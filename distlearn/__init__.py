"""distlearn: how one training step is spread over thousands of accelerators.

One program, three readings: every schedule, parallel layer and ZeRO stage of this package is
*simulated* (time, bytes, memory), *executed* over virtual ranks, and *executed* on a real engine.
"""

from __future__ import annotations

__version__ = "0.1.0"
