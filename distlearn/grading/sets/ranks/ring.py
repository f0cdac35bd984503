"""Ring all-reduce out of single messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from distlearn.comm import Communicator
from distlearn.grading.question import Case, Mistake, Question, RankProgram
from distlearn.grading.ranks_answer import OnRanks
from distlearn.grading.sets.ranks.everywhere import everywhere

Array = np.ndarray[Any, Any]


async def _pass_on(comm: Communicator, array: Array) -> Array:
    """Send to the right, receive from the left."""
    if comm.size == 1:
        return array
    sent = comm.isend(array, (comm.rank + 1) % comm.size)
    received: Array = await comm.recv((comm.rank - 1) % comm.size)
    await sent
    return received


async def _ring(comm: Communicator, x: Array, first: int = -1, second: int = 0,
                steps: int = -1, again: int = -1, adds: bool = False) -> Array:
    """The ring, with the chunk that a rank begins each phase with, and the number of steps."""
    p, r = comm.size, comm.rank
    chunks = np.array_split(x.copy(), p)
    for k in range(p + steps):
        out = (r + first - k) % p
        chunks[(out - 1) % p] = chunks[(out - 1) % p] + await _pass_on(comm, chunks[out])
    for k in range(p + again):
        out = (r + second - k) % p
        received = await _pass_on(comm, chunks[out])
        chunks[(out - 1) % p] = chunks[(out - 1) % p] + received if adds else received
    return np.concatenate(chunks)


async def _whole_array(comm: Communicator, x: Array) -> Array:
    total, moving = x.copy(), x
    for _ in range(comm.size - 1):
        moving = await _pass_on(comm, moving)
        total = total + moving
    return total


async def _star(comm: Communicator, x: Array) -> Array:
    if comm.rank:
        await comm.send(x, 0)
        back: Array = await comm.recv(0)
        return back
    total = x.copy()
    for rank in range(1, comm.size):
        total = total + await comm.recv(rank)
    for rank in range(1, comm.size):
        await comm.send(total, rank)
    return total


async def _mean(comm: Communicator, x: Array) -> Array:
    return await _ring(comm, x) / comm.size


async def _only_first_phase(comm: Communicator, x: Array) -> Array:
    return await _ring(comm, x, again=-comm.size)


async def _adds_twice(comm: Communicator, x: Array) -> Array:
    return await _ring(comm, x, adds=True)


async def _one_step_too_many(comm: Communicator, x: Array) -> Array:
    return await _ring(comm, x, steps=0)


async def _wrong_start(comm: Communicator, x: Array) -> Array:
    return await _ring(comm, x, second=-1)


async def _own(comm: Communicator, x: Array) -> Array:
    return x


RING = Question(
    id="ranks/ring",
    title="Ring all-reduce",
    function="ring_all_reduce",
    parameters=("x",),
    answer=OnRanks(),
    points=6,
    cases=(
        Case(([[1.0, 2.0], [3.0, 4.0]],),
             everywhere(2, [4.0, 6.0], total=32, most=16, to=[[1], [0]])),
        Case(([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0],
               [0.0, 0.0, 0.0, 4.0]],),
             everywhere(4, [1.0, 2.0, 3.0, 4.0], total=192, most=48, to=[[1], [2], [3], [0]])),
        Case(([[1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 30.0, 40.0, 50.0],
               [100.0, 200.0, 300.0, 400.0, 500.0]],),
             everywhere(3, [111.0, 222.0, 333.0, 444.0, 555.0], total=160, most=64,
                        to=[[1], [2], [0]])),
        Case(([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],),
             everywhere(3, [9.0, 12.0], total=64, most=32, to=[[1], [2], [0]])),
        Case(([[7.0, 8.0]],), everywhere(1, [7.0, 8.0], total=0, most=0, to=[[]])),
    ),
    mistakes=(
        Mistake(_own, "This is the rank's own array: nothing has been added."),
        Mistake(_whole_array,
                "The whole array goes round: each rank sends it p - 1 times. Cut it into p chunks, "
                "and let each chunk go round once to be summed and once to be handed out."),
        Mistake(_star,
                "Rank 0 sends p - 1 whole arrays while the others wait: in a ring all ranks send "
                "at once, to the right, and equally much."),
        Mistake(_only_first_phase,
                "Only one chunk of each rank is complete: the second phase, in which complete "
                "chunks go round, is missing."),
        Mistake(_adds_twice,
                "In the second phase chunks are complete: put the received one in the place of "
                "your own, do not add it."),
        Mistake(_one_step_too_many,
                "One step too many in the first phase: after p - 1 steps a chunk has been on all "
                "p ranks."),
        Mistake(_wrong_start,
                "The second phase begins with the wrong chunk: which one is complete on rank r "
                "after the first?"),
        Mistake(_mean, "This is the mean; the sum is asked for."),
    ),
    program=RankProgram(("send", "recv", "isend", "irecv"), each=("x",), arrays=("x",)),
)
