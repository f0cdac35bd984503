"""V-Half: half the memory of 1F1B, and half its bubble.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.2
and appendix A. A microbatch runs down the V at half speed and back at full speed.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe_v import v_shape
from distlearn.pipeline.schedules.v_blocks import from_block


def order(p: int, m: int, v: int = 2) -> Schedule:
    """Repeat the block 2r, 3p-2-r, 3p-1+2r, 6p-2-r every 6 slots; squeeze, reorder, fill in W.

    If p is even, passes of different microbatches would meet: the backward starts 3 slots later.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    v : int
        Stages per rank: 2.
    """
    if v != 2:
        raise ValueError(f"v_half has two stages per rank, so v must be 2; got v={v}")
    pause = 3 if p % 2 == 0 else 0
    block = [[2 * r, 3 * p - 2 - r, 3 * p - 1 + pause + 2 * r, 6 * p - 2 + pause - r]
             for r in range(p)]
    return Schedule("v_half", p, m, 2, placement=v_shape(p), ranks=from_block(block, m))


def bubble_time(p: int, m: int, costs: Costs, v: int = 2) -> float:
    """Idle time of a rank, ``(3p-7) F`` for even p, ``(3p-4) F`` for odd p.

    For F = I = W of a half stage, and m > p + 1 and p >= 3. Read off the orders, not in the paper.
    """
    F, _, I, W = costs.uniform()
    if not F == I == W or not m > p + 1 >= 4:
        raise ValueError("v_half's bubble formula needs F = I = W and m > p + 1 and p >= 3; got "
                         f"F={F} I={I} W={W} p={p} m={m}")
    return (3 * p - (7 if p % 2 == 0 else 4)) * F


def peak_activations(p: int, m: int, r: int, v: int = 2) -> int:
    """Half-stage activations kept by rank r: ``2 floor(p/2) + 2``; 1F1B keeps 2p.

    For m > p.
    """
    if m <= p:
        raise ValueError(f"v_half's peak formula needs m > p; got p={p} m={m}")
    return 2 * (p // 2) + 2
