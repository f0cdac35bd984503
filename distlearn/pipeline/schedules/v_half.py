"""V-Half: half the memory of 1F1B, and half its bubble.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.2
and appendix A. A microbatch runs down the V at half speed and back at full speed.
"""

from __future__ import annotations

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
