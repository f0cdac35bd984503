"""The peer: how torch.distributed.pipelining makes an order of actions and tries it out.

Its schedules want a process group and modules; the order alone comes from private methods, which
is why everything of torch's inside stands in this file. Written against torch 2.9 to 2.13.
"""

from __future__ import annotations

import importlib.util
from typing import Any


def available() -> bool:
    """Whether torch can be imported, without importing it."""
    return importlib.util.find_spec("torch") is not None


def order(p: int, m: int, v: int) -> Any:
    """The order of interleaved 1F1B on every rank, as torch makes it."""
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

    schedule = object.__new__(ScheduleInterleaved1F1B)  # its constructor wants real stages
    schedule.pp_group_size, schedule._n_microbatches, schedule.n_local_stages = p, m, v
    schedule.number_of_rounds = max(1, m // p)
    schedule.microbatches_per_round = m // schedule.number_of_rounds
    return {rank: schedule._calculate_single_rank_operations(rank) for rank in range(p)}


def simulate(order: Any, stages: int) -> int:
    """Lower the order to computation and communication, run both; the number of steps it takes."""
    from torch.distributed.pipelining.schedules import (
        _add_send_recv,
        _simulate_comms_compute,
    )

    ranks = len(order)
    compute = {rank: [action for action in row if action is not None]
               for rank, row in order.items()}
    lowered = _add_send_recv(compute, lambda stage: stage % ranks, stages)
    done = _simulate_comms_compute(lowered, lambda stage: stage % ranks, stages)
    return max(len(row) for row in done.values())
