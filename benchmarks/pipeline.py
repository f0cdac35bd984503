"""Schedules of training runs of thousands of GPUs: make one and simulate it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Result, cpu_seconds, growth_exponent
from distlearn.pipeline import Schedule, build, simulate, validate

TITLE = "Pipeline schedules"
P, M, V = 64, 512, 4
LIMIT_S = 2.0  # generate and simulate, 262,144 actions
LIMIT_EXPONENT = 1.1
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
    yield _growth()


def floor(schedule: Schedule) -> float:
    """What Python charges for touching every action: make its two keys, look up, store."""
    ended: dict[tuple[str, int, int], float] = {}
    time = 0.0
    for actions in schedule.ranks:
        for kind, stage, i in actions:
            time = max(ended.get((kind, stage - 1, i), 0.0), ended.get((kind, stage, i), 0.0))
            ended[kind, stage, i] = time + 1.0
    return time


def _growth() -> Result:
    """Beyond the floor's growth: caches and the collector make any loop a little dearer."""
    sizes, seconds, floors = [], [], []
    for m in (64, 128, 256, 512):
        made_s, schedule = cpu_seconds(partial(build, "interleaved_1f1b", P, m, V))
        simulated_s, _ = cpu_seconds(partial(simulate, schedule))
        floors.append(cpu_seconds(partial(floor, schedule), repeats=5)[0])
        sizes.append(P * V * m * 2)
        seconds.append(made_s + simulated_s)
    ours, bare = growth_exponent(sizes, seconds), growth_exponent(sizes, floors)
    return Result("growth exponent beyond the floor's", 1 + ours - bare, limit=LIMIT_EXPONENT,
                  unit="", note=f"ours {ours:.2f}, the floor's {bare:.2f}; {sizes[0]:,} to "
                                f"{sizes[-1]:,} actions; 1 is linear")


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
