"""Schedules of training runs of thousands of GPUs: make one and simulate it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Result, cpu_seconds, growth_exponent
from distlearn.pipeline import Schedule, build, simulate, validate

TITLE = "Pipeline schedules"
P, M, V = 64, 512, 4
LIMIT_S = 2.0  # generate and simulate, 262,144 actions
LIMIT_EXPONENT = 1.1
GROWTH = ((16, 128), (32, 128), (32, 256), (64, 256), (64, 512))  # p, m
SEARCH_LIMIT_S = 1.0
REORDER_LIMIT_S = 5.0
FLOOR = "bare loop, 3 dict operations an action"
PEER = "torch.distributed.pipelining"


def results() -> Iterator[Result]:
    """Generate, validate and simulate interleaved 1F1B; how the cost grows; a peer beside it."""
    made_s, schedule = cpu_seconds(lambda: build("interleaved_1f1b", P, M, V))
    simulated_s, _ = cpu_seconds(lambda: simulate(schedule))
    actions = sum(map(len, schedule.ranks))
    floor_s, _ = cpu_seconds(lambda: floor(schedule))
    size = f"p={P} m={M} v={V}, {actions:,} actions"
    yield Result(f"generate, {size}", made_s)
    yield Result("simulate", simulated_s, FLOOR, floor_s)
    yield Result("validate", cpu_seconds(lambda: validate(schedule))[0], FLOOR, floor_s)
    yield from _peer(made_s, simulated_s)
    yield Result("search zb_2p, p=16 m=128", cpu_seconds(lambda: build("zb_2p", 16, 128))[0],
                 limit=SEARCH_LIMIT_S)
    yield Result(f"reorder v_min, p={P} m={M}", cpu_seconds(lambda: build("v_min", P, M))[0],
                 limit=REORDER_LIMIT_S, note="sail-sg's own greedy takes 129 s")
    yield from _growth()


def floor(schedule: Schedule) -> float:
    """What Python charges for touching every action: make its two keys, look up, store."""
    ended: dict[tuple[str, int, int], float] = {}
    time = 0.0
    for actions in schedule.ranks:
        for kind, stage, i in actions:
            time = max(ended.get((kind, stage - 1, i), 0.0), ended.get((kind, stage, i), 0.0))
            ended[kind, stage, i] = time + 1.0
    return time


def _growth() -> Iterator[Result]:
    """Slope of log CPU seconds over log actions, p and m growing in turn up to the target's size.

    Sizes take turns, and each keeps its fastest turn: what disturbs the machine for a while then
    does not fall on one size. Nothing of one turn is kept during the next, or the collector would
    go through it again. The bare loop's slope says what caches alone cost.
    """
    ours, bare = [math.inf] * len(GROWTH), [math.inf] * len(GROWTH)
    for _ in range(8):
        for k, (p, m) in enumerate(GROWTH):
            spent, schedule = cpu_seconds(partial(build, "interleaved_1f1b", p, m, V), 1)
            ours[k] = min(ours[k], spent + cpu_seconds(partial(simulate, schedule), 1)[0])
            bare[k] = min(bare[k], cpu_seconds(partial(floor, schedule), 1)[0])
            del schedule
    sizes = [2 * p * m * V for p, m in GROWTH]
    yield Result("growth exponent of generate + simulate", growth_exponent(sizes, ours), FLOOR,
                 growth_exponent(sizes, bare), LIMIT_EXPONENT, "",
                 f"CPU s over actions, {sizes[0]:,} to {sizes[-1]:,}; 1 is linear")


def _peer(made_s: float, simulated_s: float) -> Iterator[Result]:
    from benchmarks import torch_pipelining as peer

    both, both_s = "generate + simulate", made_s + simulated_s
    if not peer.available():
        yield Result(both, both_s, limit=LIMIT_S,
                     note="pip install 'distlearn[torch]' to see a peer beside it")
        return
    order_s, order = cpu_seconds(lambda: peer.order(P, M, V), repeats=1)
    ran_s, _ = cpu_seconds(lambda: peer.simulate(order, P * V), repeats=1)
    yield Result("generate", made_s, PEER, order_s)
    yield Result("simulate", simulated_s, PEER, ran_s,
                 note="torch runs sends and receives as steps too, all steps equally long")
    yield Result(both, both_s, PEER, order_s + ran_s, LIMIT_S)
