"""V-auto: search the V-shaped building blocks for the best one within a memory limit.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.4
and appendix A. Blocks are tried as the paper has them: any first rank, then one offset from rank
to rank, and another one from some rank on.

Bubble: none within the longest rank's span for F = I = W, m >= 2p - 1 and a limit of 2p or more;
otherwise there is no closed formula, but a guarantee: never longer than ZB-V, V-Half and V-Min,
those of them that fit into the limit. Peak: at most the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.dualpipe_v import v_shape
from distlearn.pipeline.schedules.v_blocks import from_block
from distlearn.pipeline.schedules.v_half import order as v_half
from distlearn.pipeline.schedules.v_min import order as v_min
from distlearn.pipeline.schedules.zb_v import order as zb_v
from distlearn.pipeline.simulator import simulate

SPAN = "longest_span"


def order(p: int, m: int, v: int = 2, mem_limit: int | None = None,
          costs: Costs | None = None) -> Schedule:
    """The block whose order has the shortest longest span, of those that fit into memory.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    v : int
        Stages per rank: 2.
    mem_limit : int, optional
        Half-stage activations that a rank may keep, each until its W. At least what the smallest
        block needs. Default 2p, which is 1F1B's memory.
    costs : Costs, optional
        Times of one half stage. Default: F = I = W.

    Notes
    -----
    Cost: some hundred blocks per rank, each an order of its own: seconds at p = 8.
    """
    if v != 2:
        raise ValueError(f"v_auto has two stages per rank, so v must be 2; got v={v}")
    limit = 2 * p if mem_limit is None else mem_limit
    costs = costs if costs is not None else Costs()
    best: tuple[tuple[float, float, int], Schedule] | None = None
    least = 2 * m
    for ranks in _candidates(p, m, limit):
        schedule = Schedule("v_auto", p, m, 2, placement=v_shape(p), ranks=ranks)
        timeline = simulate(schedule, costs)
        peak = max(timeline.peak_activations)
        least = min(least, peak)
        score = timeline.longest_span, timeline.makespan, peak
        if peak <= limit and (best is None or score < best[0]):
            best = score, schedule
    if best is None:
        raise ValueError(f"v_auto needs mem_limit >= {least} half-stage activations for p={p}, "
                         f"m={m}; got mem_limit={limit}")
    return best[1]


def bubble_time(p: int, m: int, costs: Costs, v: int = 2, mem_limit: int | None = None) -> float:
    """Idle time within the longest rank's span: 0, for F = I = W, m >= 2p - 1, a limit >= 2p."""
    F, _, I, W = costs.uniform()
    limit = 2 * p if mem_limit is None else mem_limit
    if not F == I == W or m < 2 * p - 1 or limit < 2 * p:
        raise ValueError("v_auto's bubble formula needs F = I = W, m >= 2p - 1 and mem_limit >= 2p;"
                         f" got F={F} I={I} W={W} p={p} m={m} mem_limit={limit}")
    return 0.0


def _candidates(p: int, m: int, limit: int) -> Iterator[tuple[tuple[Action, ...], ...]]:
    blocks = sorted(_blocks(p), key=_memory)
    smallest = _memory(blocks[0])
    for block in blocks:
        # A block that needs more than the limit may still fit if there are few microbatches.
        if _memory(block) <= max(limit, smallest) or m < p:
            yield from_block([list(row) for row in block], m, limit)
    for by_hand in (zb_v, v_half, v_min):
        yield by_hand(p, m).ranks


def _blocks(p: int) -> set[tuple[tuple[int, ...], ...]]:
    """Every block of the family, as slots of the four passes on each rank."""
    found = set()
    for rest in permutations(range(1, 6), 3):
        for fast in range(1, 6):
            for slow in range(1, fast + 1):
                for bend in range(1, max(p, 2)):
                    block = _block((0, *rest), [fast if r < bend else slow for r in range(p - 1)])
                    if block is not None:
                        found.add(block)
    return found


def _block(first: tuple[int, ...], steps: list[int]) -> tuple[tuple[int, ...], ...] | None:
    """Slots from residues modulo 6; None if two passes of a rank would meet."""
    residues = [first]
    for step in steps:
        residues.append(tuple((x + (step if n in (0, 2) else -1)) % 6
                              for n, x in enumerate(residues[-1])))
    if any(len(set(row)) < 4 for row in residues):
        return None
    slots = [[0] * 4 for _ in residues]
    now = -1
    for n in range(4):
        for r in range(len(slots)) if n in (0, 2) else reversed(range(len(slots))):
            now += 1 + (residues[r][n] - now - 1) % 6  # the next slot with this residue
            slots[r][n] = now
    return tuple(map(tuple, slots))


def _memory(block: tuple[tuple[int, ...], ...]) -> int:
    """Most half-stage activations kept in the stable phase, if W follows I at once."""
    most = 0
    for down, up, back_down, back_up in block:
        spans = ((down, back_up + 1), (up, back_down + 1))
        most = max(most, *(sum((t - a) // 6 - (t - b - 1) // 6 for a, b in spans)
                           for t in range(back_up, back_up + 6)))
    return most
