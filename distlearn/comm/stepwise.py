"""Perform one rank's part of a plan between processes: the executor of the real engines.

An engine brings a `Transport`, which moves bytes. Everything else (which chunks travel, how they
are combined, what the ledger counts) is the same as in the virtual world, so the results are the
same bits.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from distlearn.comm.algorithms import NATIVE, plan
from distlearn.comm.call import Call, DisagreementError
from distlearn.comm.communicator import Communicator, axis_back
from distlearn.comm.diagnosis import disagreement, mismatch_text, not_awaited, waits_for_itself
from distlearn.comm.errors import MismatchError, Waiting
from distlearn.comm.layout import Array, layout
from distlearn.comm.moves import Moves, Piece, Span, bind
from distlearn.comm.operation import Collective, Home, Operation, Request, location_text
from distlearn.comm.program import Program, blame, close, foreign, new_comm, start
from distlearn.comm.reductions import REDUCTIONS
from distlearn.comm.transport import Transport
from distlearn.comm.wire import COLLECTIVE, MAX_CONTEXTS, as_bytes, from_slot, to_slot, wire_tag

_SLOT = 512  # bytes of a header; what is longer takes a second round


class ProcessWorld:
    """The world as one rank that is a process of its own sees it.

    Parameters
    ----------
    transport : Transport
    nodes : tuple of int
        Node of each rank.
    """

    blocking = True

    def __init__(self, transport: Transport, nodes: tuple[int, ...]) -> None:
        self.transport = transport
        self.home = Home(transport.rank, self)
        group = tuple(range(transport.size))
        self.comm = Communicator(self.home, transport.rank, group, nodes, 0)
        self._next_context = 1
        # (context, tag) -> what this rank has sent to itself, or awaits from itself
        self._own: dict[tuple[int, int], deque[Request]] = {}

    def run(self, program: Program, args: Sequence[Any]) -> Any:
        """Run the program on this rank; its result, or its error."""
        transport = self.transport
        coroutine = start(program, self.comm, args)
        try:
            foreign_thing = coroutine.send(None)  # all waiting is done inside
        except StopIteration as stop:
            result = stop.value
        except BaseException as error:
            raise self._blame(error)  # noqa: B904 - it has its cause
        else:
            raise self._blame(foreign(coroutine, foreign_thing))
        finally:
            close(coroutine)
        if self.home.called:
            raise not_awaited(transport.rank, tuple(self.home.called))
        transport.finish()
        return result

    def _blame(self, error: BaseException) -> BaseException:
        transport = self.transport
        return blame(error, transport.rank, transport.size, f"{transport.name} engine")

    # -- messages --------------------------------------------------------------------------------

    def start(self, request: Request) -> None:
        """Post a send or a receive."""
        comm, peer = request.comm, request.comm.group[request.peer]
        if peer == self.home.rank:
            self._start_own(request)
        elif request.sends:
            array = request.array
            assert array is not None
            request.engine = self.transport.send_array(array, peer, comm.context, request.tag)
            self.home.ledger.add("send", comm.group, array.nbytes, 0, 1)
        else:
            request.engine = self.transport.receive_array(peer, comm.context, request.tag)

    def _start_own(self, request: Request) -> None:
        """A message from this rank to itself needs no engine."""
        comm = request.comm
        box = self._own.setdefault((comm.context, request.tag), deque())
        if not box or box[0].sends == request.sends:
            box.append(request)
            return
        other = box.popleft()
        send, receive = (request, other) if request.sends else (other, request)
        assert send.array is not None
        receive.value = send.array if send.owned else send.array.copy()
        self.home.ledger.add("send", comm.group, receive.value.nbytes, 0, 1)
        self.home.ledger.add("recv", comm.group, 0, receive.value.nbytes, 0)
        send.done = receive.done = True

    def perform(self, operation: Operation) -> Any:
        """Wait for a message, or do this rank's part of a collective."""
        if isinstance(operation, Collective):
            return self._collective(operation)
        assert isinstance(operation, Request)
        if operation.peers[0] == self.home.rank:
            raise waits_for_itself(operation)
        result = None
        if operation.sends:
            self.transport.wait_sent(operation.engine)
        else:
            result = self.transport.wait_received(operation.engine)
            self.home.ledger.add("recv", operation.comm.group, 0, result.nbytes, 0)
        operation.done = True
        return result

    # -- collectives -----------------------------------------------------------------------------

    def _collective(self, op: Collective) -> Any:
        comm, name = op.comm, op.call.operation
        # all ranks see all calls, so a mismatch has its named error here too
        headers = self._exchange(comm, (tuple(op.call), self._next_context))
        calls = tuple(Call(*fields) for fields, _ in headers)
        if name == "split" and all(call.operation == "split" for call in calls):
            self.home.ledger.add(name, comm.group, 0, 0, 0)
            return self._split(comm, calls, max(context for _, context in headers))
        try:
            spread = layout(calls, comm.nodes)
        except DisagreementError as error:
            why = disagreement(calls, comm.group) or str(error)
            raise self._mismatch(op, calls, why) from None
        native = op.call.algorithm == NATIVE
        work = None
        if native or (self.transport.prefers_native and op.call.algorithm == "auto"):
            work = self.transport.native(comm.group, op.call, spread, op.data)
            if work is None and native:
                raise ValueError(f"the {self.transport.name} engine has no collective of its own "
                                 f"for {op}; choose another algorithm than 'native'")
        if work is not None:
            self.home.ledger.add(name, comm.group, 0, 0, 0, uncounted=1)
        else:
            work = self._steps(comm, spread.moves, op.data, spread.dtype, op.call.reduction)
            self.home.ledger.add(name, comm.group, *spread.traffic[comm.rank])
        return axis_back(spread.finish([work], comm.rank)[0], op.call.axis)

    def _steps(self, comm: Communicator, moves: Moves, data: Array, dtype: np.dtype[Any],
               reduction: str | None = None) -> Array:
        """Do this rank's part of a plan, step by step; its work buffer."""
        ufunc, transport = REDUCTIONS[reduction or "sum"], self.transport
        tag = wire_tag(comm.context, COLLECTIVE)
        buffers = (data, np.empty(moves.lengths[2 * comm.rank + 1], dtype))
        part = _part(moves, comm.rank)
        for span, out_span in part.kept:
            _view(buffers, out_span)[...] = _view(buffers, span)
        with np.errstate(all="ignore"):  # an overflow to inf is a result, as it is on a GPU
            for sends, receives in part.steps:
                handles = []
                arrivals = []
                for source, reduce, length, pieces in receives:
                    direct = not reduce and len(pieces) == 1
                    buffer = _view(buffers, pieces[0].out) if direct else np.empty(length, dtype)
                    handles.append(transport.irecv(as_bytes(buffer), comm.group[source], tag))
                    if not direct:
                        arrivals.append((buffer, source, reduce, pieces))
                for dest, spans in sends:
                    parts = [_view(buffers, span) for span in spans]
                    payload = parts[0] if len(parts) == 1 else np.concatenate([data[:0], *parts])
                    handles.append(transport.isend(as_bytes(payload), comm.group[dest], tag))
                transport.wait(handles)
                for buffer, source, reduce, pieces in arrivals:
                    start = 0
                    for piece in pieces:
                        stop = start + piece.out.stop - piece.out.start
                        payload, out = buffer[start:stop], _view(buffers, piece.out)
                        start = stop
                        if not reduce:
                            out[...] = payload
                        elif source < comm.rank:
                            ufunc(payload, _view(buffers, piece.own), out=out)
                        else:
                            ufunc(_view(buffers, piece.own), payload, out=out)
        return buffers[1]

    def _exchange(self, comm: Communicator, content: Any) -> list[Any]:
        """Give every rank of the group the (small) content of every other; not in the ledger."""
        slot, data = to_slot(content, _SLOT)
        slots = self._gathered(comm, slot, (_SLOT,) * comm.size)
        found = [from_slot(s) for s in slots]
        lengths = tuple(length for length, _ in found)
        if max(lengths) > _SLOT - 4:
            long = self._gathered(comm, np.frombuffer(data, np.uint8), lengths)
            found = [(length, array.tobytes()) for length, array in zip(lengths, long, strict=True)]
        return [pickle.loads(data) for _, data in found]

    def _gathered(self, comm: Communicator, data: Array, sizes: tuple[int, ...]) -> list[Array]:
        made = plan("all_gather", "halving_doubling", comm.size)
        flat = self._steps(comm, bind(made, sizes), data, np.dtype(np.uint8))
        return np.split(flat, np.cumsum(sizes)[:-1])

    def _mismatch(self, op: Collective, calls: Sequence[Call], why: str) -> MismatchError:
        locations = self._exchange(op.comm, location_text(op.location))
        states = tuple(Waiting(rank, str(call), (), location) for rank, call, location
                       in zip(op.comm.group, calls, locations, strict=True))
        return MismatchError(mismatch_text(why, states), states)

    def _split(self, comm: Communicator, calls: Sequence[Call], context: int
               ) -> Communicator | None:
        if context >= MAX_CONTEXTS:
            raise ValueError(f"more than {MAX_CONTEXTS} splits in one run")
        self._next_context = context + 1
        return new_comm(comm, calls, context)


class _Part(NamedTuple):
    """One rank's part of a plan.

    Attributes
    ----------
    steps : tuple of (sends, receives)
        ``sends``: (dest, spans); ``receives``: (source, reduce, elements, pieces). Only steps in
        which the rank does something.
    kept : tuple of (input span, work span)
    """

    steps: tuple[tuple[tuple[tuple[int, tuple[Span, ...]], ...],
                       tuple[tuple[int, bool, int, tuple[Piece, ...]], ...]], ...]
    kept: tuple[tuple[Span, Span], ...]


@lru_cache(maxsize=64)
def _part(moves: Moves, rank: int) -> _Part:
    steps = []
    for step in moves.steps:
        sends = tuple((t.dest, tuple(piece.payload for piece in t.pieces))
                      for t in step if t.source == rank)
        receives = tuple((t.source, t.reduce, sum(p.out.stop - p.out.start for p in t.pieces),
                          t.pieces) for t in step if t.dest == rank)
        if sends or receives:
            steps.append((sends, receives))
    kept = tuple((data, out) for data, out in moves.kept if data.buffer == 2 * rank)
    return _Part(tuple(steps), kept)


def _view(buffers: tuple[Array, Array], span: Span) -> Array:
    """A part of this rank's input (even buffer) or work buffer (odd)."""
    return buffers[span.buffer % 2][span.start:span.stop]
