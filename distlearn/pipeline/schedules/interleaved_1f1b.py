"""Interleaved 1F1B: v thin stages per rank, so that the pipeline fills v times faster.

Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", SC 2021, section 2.2.2. Rank r holds stages r, r+p, r+2p, ...; one filling of the
pipeline now takes p thin stages instead of p thick ones. The price is v times the traffic.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action, Pair
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.validate import ScheduleError, validate


def order(p: int, m: int, v: int, group: int | None = None, overlap: bool = False) -> Schedule:
    """Microbatches advance in groups; a group passes chunk 0, then chunk 1, and so on.

    Rank r warms up with ``2(p-1-r) + (v-1)*group`` forwards: ``(v-1)*group`` until its last chunk
    has input, and twice the distance to the last rank because a forward has to travel there and
    the gradient has to come back, while each of the pairs in between already is one step of both.

    Parameters
    ----------
    p, m, v : int
        Pipeline ranks, microbatches, stages per rank.
    group : int, optional
        Microbatches that take a turn on one chunk. Default p, which needs ``m % p == 0``. With a
        group given, any m is accepted that does not deadlock; Megatron-LM's own rule
        (``p <= group <= m`` and ``m % group`` zero or >= p) is sufficient.
    overlap : bool
        Run each F, B of the middle phase as one merged pair, for the overlap of expert
        parallelism's all-to-all; the warm-up is one forward longer.
    """
    if group is None and m % p:
        fits = [g for g in range(p, m + 1) if _full_groups(p, m, g)]
        hint = f"pass group={fits[0]} to run m={m} in uneven groups" if fits else "choose m >= p"
        raise ValueError(f"interleaved_1f1b needs m % p == 0 when no group is given; "
                         f"got {m} % {p} = {m % p}; {hint}")
    size = p if group is None else group
    if size < 1:
        raise ValueError(f"interleaved_1f1b needs group >= 1; got group={group}")
    turns = walk(m, v, size)
    ranks = []
    for r in range(p):
        forward = [Action("F", chunk * p + r, i) for chunk, i in turns]
        backward = [Action("B", (v - 1 - chunk) * p + r, i) for chunk, i in turns]
        warmup = min(_warmup(p, v, r, size, overlap), m * v)
        actions = forward[:warmup]
        for f, b in zip(forward[warmup:], backward, strict=False):
            actions += (Pair(f, b),) if overlap else (f, b)
        ranks.append((*actions, *backward[m * v - warmup :]))
    placement = tuple(stage % p for stage in range(p * v))
    schedule = Schedule("interleaved_1f1b", p, m, v, placement=placement, ranks=tuple(ranks))
    if not _full_groups(p, m, size):  # outside the sufficient rule: see whether it runs
        try:
            validate(schedule)
        except ScheduleError as error:
            raise ValueError(
                f"interleaved_1f1b needs p <= group <= m and m % group == 0 or >= p, or a group "
                f"that runs nevertheless; p={p} m={m} v={v} group={size} does not: {error}"
            ) from None
    return schedule


def walk(m: int, v: int, group: int) -> list[tuple[int, int]]:
    """(chunk, microbatch) in the order of the forwards: groups take turns on the chunks."""
    return [
        (chunk, i)
        for start in range(0, m, group)
        for chunk in range(v)
        for i in range(start, min(start + group, m))
    ]


def _full_groups(p: int, m: int, group: int) -> bool:
    """Megatron-LM's rule: every group, the last one too, is long enough to fill the pipeline."""
    return group >= p and (m % group == 0 or m % group >= p)


def _warmup(p: int, v: int, r: int, group: int, overlap: bool = False) -> int:
    return 2 * (p - 1 - r) + (v - 1) * group + overlap


def bubble_time(p: int, m: int, v: int, costs: Costs, group: int | None = None,
                overlap: bool = False) -> float:
    """Idle time of a rank, ``(p-1)(F+B)`` with F and B of one thin stage: 1/v of 1F1B's.

    Holds if every group has at least p microbatches, the last one too; with ``overlap`` for pairs
    that take F + B.
    """
    if not _full_groups(p, m, group or p):
        raise ValueError(f"interleaved_1f1b's bubble formula needs groups of at least p={p} "
                         f"microbatches; got m={m} in groups of {group or p}")
    F, B, _, _ = costs.uniform()
    if overlap and costs.pair is not None and costs.pair != F + B:
        raise ValueError(
            f"interleaved_1f1b's bubble formula needs pair = F + B; got pair={costs.pair}")
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, v: int, r: int, group: int | None = None,
                     overlap: bool = False) -> int:
    """Thin-stage activations kept by rank r: its warm-up plus one, ``2(p-1-r) + (v-1)p + 1``.

    At most m*v; one more if overlapped. One is worth 1/v of a rank's layers, so rank 0 holds
    ``(p(v+1) - 1) / v`` whole microbatches: more than 1F1B's p.
    """
    return min(_warmup(p, v, r, group or p, overlap) + 1, m * v)
