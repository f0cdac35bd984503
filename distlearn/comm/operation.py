"""What a rank awaits: a collective, or a `Request` for one message.

Awaited, an operation gives itself to the scheduler of the virtual world, which goes on with another
rank and later sends back the result; on a real engine it is simply performed. It knows the line it
was called on, so that an error can say where a rank waits.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from distlearn.comm.call import Call, array_text
from distlearn.comm.ledger import Ledger

if TYPE_CHECKING:
    from distlearn.comm.communicator import Communicator
    from distlearn.comm.layout import Array

Location = tuple[CodeType, int]
"""A place in a program: code object and instruction. The line is looked up only when asked for."""


def caller(depth: int) -> Location:
    """Where the frame ``depth`` levels above the function that asks is now."""
    frame = sys._getframe(depth + 1)
    return frame.f_code, frame.f_lasti


def location_text(location: Location) -> str:
    """``file:line``, the file relative to the working directory where it lies below it."""
    code, instruction = location
    line = next((line for start, stop, line in code.co_lines() if start <= instruction < stop),
                code.co_firstlineno)
    path = Path(code.co_filename)
    with suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return f"{path}:{line}"


class World(Protocol):
    """What a communicator needs of an engine.

    Attributes
    ----------
    blocking : bool
        Whether `perform` waits right here, in a process of the rank's own; else the operation is
        yielded to a scheduler.
    """

    blocking: bool

    def start(self, request: Request) -> None:
        """Post a send or a receive; do not wait."""

    def perform(self, operation: Operation) -> Any:
        """Do an operation and wait for its result; only if ``blocking``."""


class Home:
    """What all communicators of one rank share.

    Attributes
    ----------
    rank : int
        World rank.
    world : World
    ledger : Ledger
    called : dict
        Operations that were called and not awaited yet, in order.
    """

    __slots__ = ("called", "ledger", "rank", "world")

    def __init__(self, rank: int, world: World) -> None:
        self.rank, self.world, self.ledger = rank, world, Ledger()
        self.called: dict[Operation, None] = {}


class Operation:
    """A call that has to be awaited: ``result = await operation``."""

    __slots__ = ("awaited", "comm", "done", "location", "value")

    def __init__(self, comm: Communicator, location: Location) -> None:
        self.comm, self.location = comm, location
        self.done = self.awaited = False
        self.value: Any = None
        comm.home.called[self] = None

    def __await__(self) -> Generator[Operation, Any, Any]:
        if self.awaited:
            raise RuntimeError(f"{self} at {location_text(self.location)} was already awaited")
        self.awaited = True
        self.comm.home.called.pop(self, None)
        if not self.done:
            world = self.comm.home.world
            self.value = world.perform(self) if world.blocking else (yield self)
        return self.value

    @property
    def peers(self) -> tuple[int, ...]:
        """World ranks this operation needs."""
        raise NotImplementedError


class Collective(Operation):
    """One rank's part in a collective.

    Attributes
    ----------
    call : Call
    data : flat, contiguous array
        What the rank brings. Never written to.
    """

    __slots__ = ("call", "data")

    def __init__(self, comm: Communicator, location: Location, call: Call, data: Array) -> None:
        self.comm, self.location, self.call, self.data = comm, location, call, data
        self.done = self.awaited = False
        self.value = None
        comm.home.called[self] = None

    def __str__(self) -> str:
        return str(self.call) + self.comm.suffix

    @property
    def peers(self) -> tuple[int, ...]:
        """All other ranks of the group."""
        return tuple(rank for rank in self.comm.group if rank != self.comm.home.rank)


class Request(Operation):
    """One message on its way: what isend and irecv return.

    ``await request`` (or ``await request.wait()``) waits until the message is delivered, and gives
    the array for a receive, None for a send.

    Attributes
    ----------
    sends : bool
        True for a send, False for a receive.
    peer : int
        The other rank, within the group.
    tag : int
    array : numpy.ndarray or None
        What is sent, contiguous; None for a receive, and once it is delivered.
    dtype, shape
        Of what is sent.
    owned : bool
        Whether ``array`` is a copy of ours (isend), or still the sender's own (send).
    started : bool
        Whether it was posted; a plain send or recv is posted when it is awaited.
    engine : Any
        The engine's own state.
    """

    __slots__ = ("array", "dtype", "engine", "owned", "peer", "sends", "shape", "started", "tag")

    def __init__(self, comm: Communicator, location: Location, *, sends: bool, peer: int, tag: int,
                 array: Array | None, owned: bool) -> None:
        super().__init__(comm, location)
        self.sends, self.peer, self.tag = sends, peer, tag
        self.array, self.owned = array, owned
        self.dtype = None if array is None else array.dtype
        self.shape = () if array is None else array.shape
        self.started = False
        self.engine: Any = None

    def start(self) -> Request:
        """Post the message without waiting for it."""
        self.started = True
        self.comm.home.called.pop(self, None)
        self.comm.home.world.start(self)
        return self

    def __await__(self) -> Generator[Operation, Any, Any]:
        if not self.started:
            self.start()
        return super().__await__()

    async def wait(self) -> Any:
        """Wait for the message; the same as awaiting the request itself."""
        return await self

    def __str__(self) -> str:
        what = (f"{array_text(self.dtype, self.shape)}, dest={self.peer}" if self.sends
                else f"source={self.peer}")
        return f"{'send' if self.sends else 'recv'}({what}, tag={self.tag}){self.comm.suffix}"

    @property
    def peers(self) -> tuple[int, ...]:
        """The other rank."""
        return (self.comm.group[self.peer],)
