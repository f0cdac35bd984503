"""Ranks and collectives: one program on virtual ranks, on MPI processes, on torch.distributed.

A rank program is a coroutine, ``async def program(comm, ...)``: every place where a rank may wait
is an ``await``. `run` drives it on an engine. A collective is performed as its textbook algorithm,
step by step, by the same plan on every engine, and where two partial results meet, that of the
lower rank is the left operand. So an algorithm gives the same bits on all ranks, in every run and
on every engine. It sums in this order (x0, x1, ... are the ranks' arrays, p their number):

``ring``
    Chunk c: x(c+1) + x(c+2) + ... + x(c), around the ring. all_reduce and reduce cut the flat array
    into p chunks as ``numpy.array_split`` does; in reduce_scatter chunk c is the part of rank c. So
    on arrays with one axis all three give the same bits.
``recursive_doubling``, ``tree``
    (x0 + x1) + (x2 + x3) + ...: pairs, then pairs of pairs. The same bits where p is a power of
    two; the tree starts from the root of a reduce.
``halving_doubling``
    Distant ranks first: (x0 + x(q/2)) + ..., q the largest power of two up to p, after the ranks
    that fold in. all_reduce and reduce_scatter give the same bits.
``hierarchical``
    Ring order within each node, then ring order of the nodes.

Between algorithms results are equal bit for bit where sums are exact (integers, max, min), else to
rounding. ``"native"``, MPI's or torch's own collective, promises no order.
"""

from __future__ import annotations

from distlearn.comm.algorithms import ALGORITHMS, plan
from distlearn.comm.communicator import Communicator
from distlearn.comm.errors import (
    CommError,
    DeadlockError,
    EngineError,
    MismatchError,
    MissingParticipantError,
    NotAwaitedError,
    RankError,
    TimeLimitError,
    UnmatchedRecvError,
    UnmatchedSendError,
    Waiting,
)
from distlearn.comm.launch import mpirun
from distlearn.comm.ledger import Entry, Ledger
from distlearn.comm.operation import Request
from distlearn.comm.plans import Message, Plan
from distlearn.comm.recording import RecordedCollective, RecordedStep, Recording
from distlearn.comm.runner import ENGINES, run

__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "CommError",
    "Communicator",
    "DeadlockError",
    "EngineError",
    "Entry",
    "Ledger",
    "Message",
    "MismatchError",
    "MissingParticipantError",
    "NotAwaitedError",
    "Plan",
    "RankError",
    "RecordedCollective",
    "RecordedStep",
    "Recording",
    "Request",
    "TimeLimitError",
    "UnmatchedRecvError",
    "UnmatchedSendError",
    "Waiting",
    "mpirun",
    "plan",
    "run",
]
