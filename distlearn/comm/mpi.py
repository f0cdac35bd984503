"""The MPI engine: mpi4py moves the bytes; buffers, never pickles.

Open MPI, MPICH and Intel MPI all serve. Where ranks outnumber free cores, a waiting rank that spins
burns the time slice of the rank it waits for, so this engine polls for a while and then sleeps
between polls: at once if it knows that there are more ranks than cores.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distlearn.comm.call import Call
from distlearn.comm.errors import EngineError
from distlearn.comm.layout import Array, Layout
from distlearn.comm.wire import DATA, ENVELOPE, ENVELOPE_BYTES, as_bytes, pack, unpack, wire_tag
from distlearn.extras import install_command

_POLLS = 3, 500  # before a waiting rank sleeps: more ranks than cores, a core for each rank
_NAP_S = 20e-6
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_REDUCIBLE = "?bBhHiIlLqQfdgFDG"  # dtype characters that MPI can compute with


def launched() -> bool:
    """Whether this process was started by mpiexec or srun, as one rank of several."""
    return any(name in os.environ for name in _LAUNCHED)


class Incoming:
    """A receive that has begun: first the envelope, then the data it announces."""

    __slots__ = ("array", "envelope", "handle", "key", "opened")

    def __init__(self, key: tuple[int, int, int], envelope: Array, handle: Any) -> None:
        self.key, self.envelope, self.handle = key, envelope, handle
        self.array: Array | None = None
        self.opened = False


class MpiTransport:
    """Bytes through ``MPI.COMM_WORLD``.

    Parameters
    ----------
    expected : int, optional
        Number of ranks that were started.

    Raises
    ------
    EngineError
        If mpi4py or an MPI library is missing, or each process finds itself alone because mpiexec
        belongs to another MPI than mpi4py uses.
    """

    name = "mpi"
    prefers_native = False

    def __init__(self, expected: int | None = None) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise EngineError(f"the mpi engine needs mpi4py and an MPI library ({error}): "
                              f"{install_command('mpi')}") from error
        self._mpi, self._world = MPI, MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._world.rank, self._world.size
        if expected not in (None, self.size):
            raise EngineError(
                f"{expected} ranks were started but MPI sees {self.size}: mpiexec belongs to "
                f"another MPI than mpi4py's, {MPI.Get_library_version().splitlines()[0]}")
        self.hosts: Sequence[str] = self._world.allgather(MPI.Get_processor_name())
        crowded = self.hosts.count(self.hosts[self.rank]) > (os.cpu_count() or 1)
        self._polls = _POLLS[0] if crowded else _POLLS[1]
        self._incoming: dict[tuple[int, int, int], deque[Incoming]] = {}
        self._outgoing: deque[tuple[list[Any], Array]] = deque()
        self._groups: dict[tuple[int, ...], Any] = {tuple(range(self.size)): self._world}

    def abort(self, code: int) -> None:
        """End all ranks at once."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(code)

    # -- bytes -----------------------------------------------------------------------------------

    def isend(self, data: Array, dest: int, tag: int) -> Any:
        """Start to send bytes."""
        return self._world.Isend([data, self._mpi.BYTE], dest, tag)

    def irecv(self, buffer: Array, source: int, tag: int) -> Any:
        """Start to receive bytes."""
        return self._world.Irecv([buffer, self._mpi.BYTE], source, tag)

    def wait(self, handles: Sequence[Any]) -> None:
        """Wait for all, meanwhile opening envelopes that arrive."""
        requests = list(handles)
        self._until(lambda: self._mpi.Request.Testall(requests))

    def _until(self, done: Callable[[], bool]) -> None:
        polls = 0
        while not done():
            if self._incoming:
                self._progress()
            polls += 1
            if polls > self._polls:
                time.sleep(_NAP_S)

    # -- arrays ----------------------------------------------------------------------------------

    def send_array(self, array: Array, dest: int, context: int, tag: int) -> Any:
        """Start to send an array: its envelope and, if it is large, its data."""
        envelope, data = pack(array)
        handles = [self.isend(envelope, dest, wire_tag(context, ENVELOPE, tag))]
        if data is not None:
            handles.append(self.isend(data, dest, wire_tag(context, DATA, tag)))
        while self._outgoing and self._mpi.Request.Testall(self._outgoing[0][0]):
            self._outgoing.popleft()
        self._outgoing.append((handles, envelope))  # keeps the buffers alive
        return handles

    def wait_sent(self, handle: Any) -> None:
        """Wait until an array has left."""
        self.wait(handle)

    def receive_array(self, source: int, context: int, tag: int) -> Incoming:
        """Start to receive an array."""
        envelope = np.empty(ENVELOPE_BYTES, np.uint8)
        handle = self.irecv(envelope, source, wire_tag(context, ENVELOPE, tag))
        incoming = Incoming((source, context, tag), envelope, handle)
        self._incoming.setdefault(incoming.key, deque()).append(incoming)
        return incoming

    def _progress(self) -> None:
        """Open the envelopes that have come, oldest first, and post the receives of their data.

        A sender of a large array waits for that, even while this rank waits for something else.
        """
        for key, queue in list(self._incoming.items()):
            while queue and queue[0].handle.Test():
                incoming = queue.popleft()
                incoming.array, more = unpack(incoming.envelope)
                source, context, tag = key
                incoming.handle = (self.irecv(as_bytes(incoming.array), source,
                                              wire_tag(context, DATA, tag)) if more else None)
                incoming.opened = True
            if not queue:
                del self._incoming[key]

    def wait_received(self, handle: Incoming) -> Array:
        """Wait for an array."""
        self._progress()
        self._until(lambda: handle.opened)
        if handle.handle is not None:
            self.wait([handle.handle])
        assert handle.array is not None
        return handle.array

    def finish(self) -> None:
        """Wait for what is still being sent."""
        self.wait([request for handles, _ in self._outgoing for request in handles])
        self._outgoing.clear()

    def share(self, value: Any) -> list[Any]:
        """Give every rank the value of every rank (pickled: results of programs, not arrays)."""
        return self._world.allgather(value)

    def close(self) -> None:
        """Give MPI back what was taken."""
        for comm in self._groups.values():
            comm.Free()

    # -- MPI's own collectives -------------------------------------------------------------------

    def native(self, group: tuple[int, ...], call: Call, spread: Layout, data: Array
               ) -> Array | None:
        """MPI's collective; reductions only of the dtypes that MPI can compute with."""
        comm = self._groups.get(group)
        if comm is None:
            ranks = self._world.group.Incl(group)
            comm = self._groups[group] = self._world.Create_group(ranks, tag=wire_tag(0, 3))
        name, MPI = call.operation, self._mpi
        if name == "barrier":
            self._wait_native(comm.Ibarrier())
            return np.empty(0, np.uint8)
        if call.reduction is not None:
            if spread.dtype.char not in _REDUCIBLE or not spread.dtype.isnative:
                return None
            op = {"sum": MPI.SUM, "mean": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN,
                  "prod": MPI.PROD}[call.reduction]
            if spread.dtype == bool and call.reduction in ("max", "min"):
                op = MPI.LOR if call.reduction == "max" else MPI.LAND
            return self._native_reduction(comm, name, call, spread, data, op)
        itemsize, sizes = spread.dtype.itemsize, np.array(spread.sizes, int)
        nbytes, raw = sizes * itemsize, as_bytes(data)
        byte = MPI.BYTE
        if name == "broadcast":
            out = (data.copy() if comm.rank == call.root
                   else np.empty(sizes.sum(), spread.dtype))
            self._wait_native(comm.Ibcast([as_bytes(out), byte], call.root or 0))
            return out
        if name == "all_gather":
            out = np.empty(sizes.sum(), spread.dtype)
            self._wait_native(comm.Iallgatherv([raw, byte], [as_bytes(out), nbytes, None, byte]))
            return out
        if name == "all_to_all":
            table = nbytes.reshape(comm.size, comm.size)
            sent, received = table[comm.rank], table[:, comm.rank]
            out = np.empty(received.sum() // max(itemsize, 1), spread.dtype)
            self._wait_native(comm.Ialltoallv([raw, sent, None, byte],
                                              [as_bytes(out), received, None, byte]))
            return out
        return None

    def _native_reduction(self, comm: Any, name: str, call: Call, spread: Layout, data: Array,
                          op: Any) -> Array | None:
        if name == "all_reduce":
            out = np.empty(data.size, spread.dtype)
            self._wait_native(comm.Iallreduce(data, out, op))
            return out
        if name == "reduce":
            out = np.empty(data.size if comm.rank == call.root else 0, spread.dtype)
            self._wait_native(comm.Ireduce(data, out if comm.rank == call.root else None, op,
                                           call.root))
            return out
        if name == "reduce_scatter":
            out = np.empty(spread.sizes[comm.rank], spread.dtype)
            self._wait_native(comm.Ireduce_scatter(data, out, list(spread.sizes), op))
            return out
        return None

    def _wait_native(self, request: Any) -> None:
        self.wait([request])

