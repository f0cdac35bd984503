"""DualPipeV: DualPipe cut in half, so that one copy of the model is enough.

Sea AI Lab's "cut-in-half" of DualPipe, in DeepSeek's repository (README, 2025). Rank r holds stages
r and 2p-1-r of a V: what was the copy running up is the second half of the same pipeline.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe import pair_bubble, phases


def order(p: int, m: int, v: int = 2) -> Schedule:
    """DualPipe's eight phases; rank p-1 is the turn.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; m >= 2p - 1. (The authors ask m >= 2p.)
    v : int
        Stages per rank: 2.
    """
    if v != 2:
        raise ValueError(f"dualpipe_v has two stages per rank, so v must be 2; got v={v}")
    if m < 2 * p - 1:
        raise ValueError(f"dualpipe_v needs m >= 2p - 1 = {2 * p - 1}; got m={m}")
    ranks = tuple(
        tuple(phases(p, r, rounds=m - 2 * p + r + 1, stages=(r, 2 * p - 1 - r), starts=(0, 0)))
        for r in range(p))
    return Schedule("dualpipe_v", p, m, 2, placement=v_shape(p), ranks=ranks)


def v_shape(p: int) -> tuple[int, ...]:
    """Stage -> rank of a V: down the ranks and back up."""
    return (*range(p), *reversed(range(p)))


def bubble_time(p: int, m: int, costs: Costs, v: int = 2) -> float:
    """Idle time of the rank that idles most, ``(p-1)(F&B + B - 3W)``, times of one half stage.

    The paper writes PP/2 - 1 for p - 1: it counts PP = 2p stages. Holds where dualpipe's does.
    """
    return (p - 1) * pair_bubble("dualpipe_v", costs, m >= 2 * p)


def peak_activations(p: int, m: int, r: int, v: int = 2) -> int:
    """Half-stage activations kept by rank r: ``2p + 1``, for m >= 2p."""
    if m < 2 * p:
        raise ValueError(f"dualpipe_v's peak formula needs m >= 2p; got p={p} m={m}")
    return 2 * p + 1
