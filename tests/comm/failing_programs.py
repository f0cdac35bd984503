"""Programs in which something goes wrong, for ranks that are processes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np

from distlearn.comm import Communicator


class OwnError(Exception):
    """An exception of the test's own."""


async def one_raises(comm: Communicator) -> None:
    if comm.rank == 2:
        raise OwnError("mine")
    await comm.barrier()


async def one_is_killed(comm: Communicator) -> None:
    await comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    await comm.barrier()


async def one_exits(comm: Communicator) -> None:
    if comm.rank == 1:
        sys.exit(3)
    await comm.recv(1)


async def shapes_differ(comm: Communicator) -> None:
    half = await comm.split(comm.rank // 2)
    assert half is not None
    await half.all_reduce(np.zeros(2 + (comm.rank == 3)))
    await comm.barrier()


async def waits_forever(comm: Communicator) -> None:
    await comm.recv((comm.rank + 1) % comm.size)


async def result_stays(comm: Communicator) -> Any:
    return lambda: comm.rank


async def waits_for_itself(comm: Communicator) -> None:
    await comm.recv(comm.rank)
