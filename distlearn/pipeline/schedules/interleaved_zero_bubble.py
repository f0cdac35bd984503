"""Interleaved zero bubble: ZB-H1's split backward on interleaved thin stages.

The combination of Megatron-LM's interleaving (Narayanan et al., SC 2021, section 2.2.2) with the
zero-bubble paper's H1 (Qi et al., ICLR 2024, section 2.2), as in PyTorch's pipeline schedules. The
bubble is ZB-H1's of a stage v times thinner.
"""

from __future__ import annotations

from collections.abc import Iterator

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.interleaved_1f1b import walk
from distlearn.pipeline.validate import ScheduleError, validate


def order(p: int, m: int, v: int, group: int | None = None) -> Schedule:
    """Rank r warms up with ``(v-1)*group + p-1-r`` forwards, then F, I, and the W of r I's ago.

    Parameters
    ----------
    p, m, v : int
        Pipeline ranks, microbatches, stages per rank.
    group : int, optional
        Microbatches that take a turn on one chunk. Default: m divided into ``max(1, m // p)``
        equal groups, which m has to allow. With a group given, any m that does not deadlock.
    """
    size = _group(p, m, group)
    turns = walk(m, v, size)
    ranks = tuple(tuple(_rank(p, v, r, turns, (v - 1) * size + p - 1 - r)) for r in range(p))
    placement = tuple(stage % p for stage in range(p * v))
    schedule = Schedule("interleaved_zero_bubble", p, m, v, placement=placement, ranks=ranks)
    if m % size or size < p:  # uneven or short groups: see whether it runs
        try:
            validate(schedule)
        except ScheduleError as error:
            raise ValueError(f"interleaved_zero_bubble needs a group that runs; p={p} m={m} v={v} "
                             f"group={size} does not: {error}") from None
    return schedule


def _group(p: int, m: int, group: int | None) -> int:
    rounds = max(1, m // p)
    if group is None and m % rounds:
        raise ValueError(f"interleaved_zero_bubble needs m % max(1, m // p) == 0 when no group is "
                         f"given; got {m} % {rounds} = {m % rounds}; pass group={p} or larger")
    if group is not None and group < 1:
        raise ValueError(f"interleaved_zero_bubble needs group >= 1; got group={group}")
    return m // rounds if group is None else group


def _rank(p: int, v: int, r: int, turns: list[tuple[int, int]], warmup: int) -> Iterator[Action]:
    forward = [Action("F", chunk * p + r, i) for chunk, i in turns]
    yield from forward[:warmup]
    for k, (chunk, i) in enumerate(turns):
        if warmup + k < len(turns):
            yield forward[warmup + k]
        yield Action("I", (v - 1 - chunk) * p + r, i)
        if k >= r:
            yield _weight(p, v, r, turns[k - r])
    for turn in turns[max(len(turns) - r, 0):]:
        yield _weight(p, v, r, turn)


def _weight(p: int, v: int, r: int, turn: tuple[int, int]) -> Action:
    return Action("W", (v - 1 - turn[0]) * p + r, turn[1])


def bubble_time(p: int, m: int, v: int, costs: Costs, group: int | None = None) -> float:
    """Idle time of a rank, ``(p-1)(F+I-W)`` with the times of one thin stage.

    Holds for groups of at least p that divide m, and W no longer than F and I.
    """
    size = _group(p, m, group)
    F, _, I, W = costs.uniform()
    if W > min(F, I):
        raise ValueError("interleaved_zero_bubble's bubble formula needs W <= F and W <= I; "
                         f"got F={F} I={I} W={W}")
    if size < p or m % size:
        raise ValueError("interleaved_zero_bubble's bubble formula needs groups of at least "
                         f"p={p} that divide m; got m={m} in groups of {size}")
    return (p - 1) * (F + I - W)


def peak_activations(p: int, m: int, v: int, r: int, group: int | None = None) -> int:
    """Thin-stage activations kept by rank r, each until its W: ``min((v-1) group + p, m v)``."""
    return min((v - 1) * _group(p, m, group) + p, m * v)
