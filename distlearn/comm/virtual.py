"""The virtual world: all ranks in one process, driven by a deterministic scheduler.

Each rank is a coroutine. It runs until it awaits something that is not there yet; then the next
rank that can go on does. The order depends on nothing but the program, so two runs do exactly the
same, and when no rank can go on, the scheduler knows it at once and who waits for whom.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Coroutine, Sequence
from typing import Any

from distlearn.comm.bulk import perform
from distlearn.comm.call import Call, DisagreementError
from distlearn.comm.communicator import Communicator, axis_back
from distlearn.comm.diagnosis import disagreement, mismatch, never_received, not_awaited, stuck
from distlearn.comm.layout import layout
from distlearn.comm.operation import Collective, Home, Operation, Request, location_text
from distlearn.comm.program import Program, blame, close, foreign, new_comm, start
from distlearn.comm.recording import Recording


class Meeting:
    """Where the ranks of one group meet for their next collective.

    Attributes
    ----------
    arrived : list of (Collective or None)
        What each rank of the group has called.
    missing : int
        How many ranks are not here yet.
    """

    __slots__ = ("arrived", "missing")

    def __init__(self, size: int) -> None:
        self.arrived: list[Collective | None] = [None] * size
        self.missing = size


class VirtualWorld:
    """The scheduler, the mailboxes and the meetings of one run.

    Parameters
    ----------
    ranks : int
    nodes : tuple of int
        Node of each rank.
    recording : Recording, optional
        Keeps the steps of all collectives, to be drawn.
    """

    blocking = False

    def __init__(self, ranks: int, nodes: tuple[int, ...],
                 recording: Recording | None = None) -> None:
        self.size, self.recording = ranks, recording
        self.results: list[Any] = [None] * ranks
        self.waiting: list[Operation | None] = [None] * ranks
        self.finished: set[int] = set()
        self._ready: deque[int] = deque(range(ranks))
        self._answer: list[Any] = [None] * ranks
        # (meeting of the group, source, dest, tag) -> posted sends or receives, never both
        self._mail: dict[tuple[Meeting, int, int, int], deque[Request]] = {}
        meeting, group = Meeting(ranks), tuple(range(ranks))
        self.comms = [Communicator(Home(rank, self), rank, group, nodes, meeting)
                      for rank in range(ranks)]

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """Run the program on all ranks; the results, or the first error."""
        coroutines: list[Coroutine[Any, Any, Any]] = []
        try:
            for comm in self.comms:
                coroutines.append(start(program, comm, args))
            self._drive(coroutines)
        finally:
            for coroutine in coroutines:
                close(coroutine)
        return self.results

    def _drive(self, coroutines: list[Coroutine[Any, Any, Any]]) -> None:
        ready, answer = self._ready, self._answer
        while ready:
            rank = ready.popleft()
            value, answer[rank] = answer[rank], None
            try:
                operation = coroutines[rank].send(value)
            except StopIteration as stop:
                self.results[rank] = stop.value
                self._finish(rank)
                continue
            except BaseException as error:
                raise blame(error, rank, self.size, "virtual engine")  # noqa: B904 - it has its cause
            self.waiting[rank] = operation
            if type(operation) is Collective:
                self._meet(operation)
            elif type(operation) is not Request:
                raise blame(foreign(coroutines[rank], operation), rank, self.size, "virtual engine")
        stuck_ranks = {rank: op for rank, op in enumerate(self.waiting) if op is not None}
        if stuck_ranks:
            raise stuck(stuck_ranks, self.finished)
        lost = [request for box in self._mail.values() for request in box]
        if lost:
            raise never_received(lost)

    def _finish(self, rank: int) -> None:
        self.finished.add(rank)
        if self.comms[rank].home.called:
            raise not_awaited(rank, tuple(self.comms[rank].home.called))

    def _wake(self, rank: int, value: Any) -> None:
        self.waiting[rank] = None
        self._answer[rank] = value
        self._ready.append(rank)

    # -- messages --------------------------------------------------------------------------------

    def start(self, request: Request) -> None:
        """Post a send or a receive, and deliver it if its other half is there."""
        comm = request.comm
        ends = (comm.rank, request.peer) if request.sends else (request.peer, comm.rank)
        key = (comm.context, *ends, request.tag)
        box = self._mail.get(key)
        if not box or box[0].sends == request.sends:
            self._mail.setdefault(key, deque()).append(request)
            return
        other = box.popleft()
        if not box:
            del self._mail[key]
        send, receive = (request, other) if request.sends else (other, request)
        array = send.array
        assert array is not None
        receive.value = array if send.owned else array.copy()
        send.array = None  # delivered: let the memory go
        send.comm.ledger.add("send", send.comm.group, array.nbytes, 0, 1)
        receive.comm.ledger.add("recv", receive.comm.group, 0, array.nbytes, 0)
        request.done = other.done = True
        rank = other.comm.home.rank
        if self.waiting[rank] is other:
            self._wake(rank, other.value)

    def perform(self, operation: Operation) -> Any:
        """Never called: operations are yielded to `run`."""
        raise NotImplementedError

    # -- collectives -----------------------------------------------------------------------------

    def _meet(self, operation: Collective) -> None:
        comm = operation.comm
        meeting: Meeting = comm.context
        meeting.arrived[comm.rank] = operation
        meeting.missing -= 1
        if meeting.missing:
            return
        operations = [op for op in meeting.arrived if op is not None]
        meeting.arrived, meeting.missing = [None] * comm.size, comm.size
        calls = tuple([op.call for op in operations])
        try:
            results = self._perform(calls, operations)
        except DisagreementError as error:
            why = disagreement(calls, comm.group) or str(error)
            raise mismatch(operations, why) from None
        except ValueError as error:  # an argument that only the whole group can judge
            error.add_note(f"in {operation} at {location_text(operation.location)}")
            raise
        for rank, result in zip(comm.group, results, strict=True):
            self._wake(rank, result)

    def _perform(self, calls: tuple[Call, ...], operations: list[Collective]) -> list[Any]:
        comm, name = operations[0].comm, calls[0].operation
        if name == "split" and all(call.operation == "split" for call in calls):
            for op in operations:
                op.comm.ledger.add(name, comm.group, 0, 0, 0)
            sizes = Counter(call.color for call in calls)
            meetings = {color: Meeting(size) for color, size in sizes.items()}
            return [new_comm(op.comm, calls, meetings[op.call.color]) for op in operations]
        plan = layout(calls, comm.nodes)
        watch = None
        if self.recording is not None:
            watch = self.recording.begin(plan, comm.group, operations[0].location)
        results = perform(plan, [op.data for op in operations], calls[0].reduction, watch)
        for op, count in zip(operations, plan.traffic, strict=True):
            op.comm.ledger.add(name, comm.group, *count)
        if calls[0].axis:
            results = [axis_back(result, calls[0].axis) for result in results]
        return results
