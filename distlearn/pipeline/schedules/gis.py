"""GIS: interleaving with less warm-up, so that memory can be capped and offloaded.

Wan et al., "PipeOffload: Improving Scalability of Pipeline Parallelism with Memory Optimization",
arXiv:2503.01328, section 4 (generalised interleaving). With the backward split, the input gradient
comes back sooner, and rank r needs ``p - r`` forwards less before its first backward than
Megatron-LM's interleaving. Groups smaller than p keep still less, for a longer bubble.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.interleaved_1f1b import walk
from distlearn.pipeline.validate import ScheduleError, validate


def order(p: int, m: int, v: int, group: int | None = None, offload: int = 0) -> Schedule:
    """``group*(v-1) + p-r`` forwards, then I, W, F in turn; a short last group leaves gaps.

    Parameters
    ----------
    p, m, v : int
        Pipeline ranks, microbatches, stages per rank; any m >= 1.
    group : int, optional
        Microbatches that take a turn on one chunk. Default p. From ``ceil(p/2)`` on (the paper's
        range ends at p) every group runs; a smaller one is accepted if it does not deadlock.
    offload : int
        Of how many chunks the activations go to host memory in between, the first ones first
        (theirs live longest): 0 .. v.
    """
    return grouped("gis", p, m, v, p if group is None else group, offload)


def grouped(name: str, p: int, m: int, v: int, group: int, offload: int) -> Schedule:
    """The order for one group size (gis and gis_h)."""
    if group < 1:
        raise ValueError(f"{name} needs group >= 1; got group={group}")
    if not 0 <= offload <= v:
        raise ValueError(f"{name} needs 0 <= offload <= v={v} chunks; got offload={offload}")
    size = min(group, m)  # one group of more microbatches than there are is one of all of them
    turns = walk(-(-m // size) * size, v, size)  # whole groups; what is beyond m is left out
    ranks = tuple(
        tuple(_swapped([a for a in _rank(p, v, r, turns, size * (v - 1) + p - r)
                        if a.microbatch < m], offload * p))
        for r in range(p))
    placement = tuple(stage % p for stage in range(p * v))
    schedule = Schedule(name, p, m, v, placement=placement, ranks=ranks)
    if group < (p + 1) // 2:  # outside the sufficient rule: see whether it runs
        try:
            validate(schedule)
        except ScheduleError as error:
            raise ValueError(
                f"{name} needs group >= ceil(p/2), or a group that runs nevertheless; "
                f"got p={p} m={m} v={v} group={group}, which does not: {error}") from None
    return schedule


def _rank(p: int, v: int, r: int, turns: list[tuple[int, int]], first: int) -> Iterator[Action]:
    forward = [Action("F", chunk * p + r, i) for chunk, i in turns]
    yield from forward[:first]
    for k, (chunk, i) in enumerate(turns):
        yield Action("I", (v - 1 - chunk) * p + r, i)
        yield Action("W", (v - 1 - chunk) * p + r, i)
        yield from forward[first + k : first + k + 1]


def _swapped(row: list[Action], stages: int) -> Iterator[Action]:
    """Offload after F and prefetch one backward ahead, for the stages below ``stages``.

    Not if the forward is not even done by then: what is needed at once stays.
    """
    place = {action: k for k, action in enumerate(row)}
    backwards = [a for a in row if a.kind == "I"]
    prefetch_before: dict[Action, Action] = {}
    for ahead, action in pairwise(backwards):
        _, stage, i = action
        if stage < stages and place[Action("F", stage, i)] < place[ahead]:
            prefetch_before[ahead] = Action("P", stage, i)
    away = {action[1:] for action in prefetch_before.values()}
    for action in row:
        if action in prefetch_before:
            yield prefetch_before[action]
        yield action
        if action.kind == "F" and action[1:] in away:
            yield Action("O", *action[1:])


def bubble_time(p: int, m: int, v: int, costs: Costs, group: int | None = None,
                offload: int = 0) -> float:
    """Idle time of a rank, ``(p-1)(F+I)`` for groups of p or more that divide m; thin-stage times.

    Smaller groups, down to ``ceil(p/2)``, add ``(p-group)(v-1) F``, for F = I = W.
    """
    return grouped_bubble("gis", p, m, v, p if group is None else group, costs)


def grouped_bubble(name: str, p: int, m: int, v: int, group: int, costs: Costs) -> float:
    """The formula for one group size."""
    F, _, I, W = costs.uniform()
    if m % group:
        raise ValueError(f"{name}'s bubble formula needs m % group == 0; got m={m} group={group}")
    if group < p and not (F == I == W and group >= (p + 1) // 2):
        raise ValueError(f"{name}'s bubble formula needs group >= p, or F = I = W and group >= "
                         f"ceil(p/2); got p={p} group={group} F={F} I={I} W={W}")
    return (p - 1) * (F + I) + max(0, p - group) * (v - 1) * F


def peak_activations(p: int, m: int, v: int, r: int, group: int | None = None,
                     offload: int = 0) -> int:
    """Thin-stage activations kept by rank r, ``group (v-1) + p - r``, at most m v.

    For groups that divide m, without offloading.
    """
    return grouped_peak("gis", p, m, v, r, p if group is None else group, offload)


def grouped_peak(name: str, p: int, m: int, v: int, r: int, group: int, offload: int) -> int:
    """The formula for one group size."""
    if offload or m % group:
        raise ValueError(f"{name}'s peak formula needs offload=0 and m % group == 0; "
                         f"got offload={offload} m={m} group={group}")
    return min(group * (v - 1) + p - r, m * v)
