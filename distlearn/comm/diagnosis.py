"""Why can no rank go on? From who waits for whom to a named error with files and lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from distlearn.comm.call import Call, DisagreementError, check_agreement
from distlearn.comm.errors import (
    CommError,
    DeadlockError,
    MismatchError,
    MissingParticipantError,
    NotAwaitedError,
    UnmatchedRecvError,
    UnmatchedSendError,
    Waiting,
)
from distlearn.comm.operation import Collective, Operation, Request, location_text

_SHOWN = 16  # ranks listed in a message; all are in its ``waiting``


def stuck(waiting: Mapping[int, Operation], finished: Collection[int]) -> CommError:
    """The error for a world in which no rank can go on.

    Parameters
    ----------
    waiting : mapping
        World rank -> what it waits in.
    finished : collection of int
        World ranks whose program has ended.
    """
    states = tuple(_state(rank, waiting) for rank in sorted(waiting))
    for arrived in _meetings(waiting):
        if why := disagreement([op.call for op in arrived],
                               [op.comm.home.rank for op in arrived]):
            return mismatch(arrived, why, states)
    for rank, op in sorted(waiting.items()):
        gone = [peer for peer in op.peers if peer in finished]
        if not gone:
            continue
        if isinstance(op, Request):
            kind = UnmatchedSendError if op.sends else UnmatchedRecvError
            want = "never receives it" if op.sends else "never sends it"
            return kind(f"rank {rank} waits in {op} at {location_text(op.location)}, but rank "
                        f"{gone[0]} has finished and {want}" + _others(states, rank), states)
        return MissingParticipantError(
            f"{op} waits for {_ranks(gone)}, which {_has(gone)} finished without calling it"
            + _list(states), states)
    circle = _circle(waiting)
    hint = ""
    if all(isinstance(op, Request) and op.sends for op in map(waiting.__getitem__, circle)):
        hint = ("\nA send waits until its message is received. Let some ranks receive first, or "
                "start the sends with isend and await them after the receives.")
    elif any(isinstance(op, Request) for op in map(waiting.__getitem__, circle)):
        hint = _tag_hint(waiting, circle)
    chain = " waits for ".join(f"rank {rank}" for rank in (*circle, circle[0]))
    return DeadlockError(f"deadlock: {chain}" + _list(states) + hint, states)


def disagreement(calls: Sequence[Call], ranks: Sequence[int]) -> str | None:
    """What the calls of these world ranks differ in, None if they fit together."""
    try:
        check_agreement(calls, ranks)
    except DisagreementError as error:
        return str(error)
    return None


def mismatch(operations: Sequence[Collective], why: str,
             states: tuple[Waiting, ...] | None = None) -> MismatchError:
    """The error for ranks of a group whose collectives do not fit together."""
    if states is None:
        states = tuple(Waiting(op.comm.home.rank, str(op), op.peers, location_text(op.location))
                       for op in operations)
    return MismatchError(mismatch_text(why, states), states)


def mismatch_text(why: str, states: Sequence[Waiting]) -> str:
    """The message of a `MismatchError`."""
    return f"the ranks do not call the same collective: {why}" + _list(states)


def never_received(lost: Sequence[Request]) -> CommError:
    """The error for messages that are still under way when all ranks have finished."""
    states = tuple(Waiting(r.comm.home.rank, str(r), r.peers, location_text(r.location))
                   for r in lost)
    first, state = lost[0], states[0]
    kind = UnmatchedSendError if first.sends else UnmatchedRecvError
    what = "received" if first.sends else "sent"
    message = (f"all ranks have finished, but rank {state.rank}'s {state.operation} at "
               f"{state.location} was never {what} by rank {state.peers[0]}")
    if len(lost) > 1:
        message += f"; {len(lost) - 1} more such messages"
    return kind(message, states)


def waits_for_itself(request: Request) -> DeadlockError:
    """The error for a rank that awaits a message of its own whose other half it has not posted."""
    rank = request.comm.home.rank
    state = Waiting(rank, str(request), (rank,), location_text(request.location))
    return DeadlockError(f"deadlock: rank {rank} waits for itself" + _list([state]), (state,))


def not_awaited(rank: int, called: Sequence[Operation]) -> NotAwaitedError:
    """The error for a rank that finished with operations it called but never awaited."""
    op = called[0]
    return NotAwaitedError(
        f"rank {rank} called {op} at {location_text(op.location)} and never awaited it, so it "
        "did not happen: write 'await' before the call",
        tuple(Waiting(rank, str(op), op.peers, location_text(op.location)) for op in called))


def _state(rank: int, waiting: Mapping[int, Operation]) -> Waiting:
    op = waiting[rank]
    peers = op.peers
    if isinstance(op, Collective):  # those of the group that are in it already are not missed
        peers = tuple(peer for peer in peers if not _is_in(waiting.get(peer), op))
    return Waiting(rank, str(op), peers, location_text(op.location))


def _is_in(other: Operation | None, op: Collective) -> bool:
    return isinstance(other, Collective) and other.comm.context is op.comm.context


def _meetings(waiting: Mapping[int, Operation]) -> list[list[Collective]]:
    """The collectives that have begun, each as the list of those that have come."""
    groups: dict[int, list[Collective]] = {}
    for _, op in sorted(waiting.items()):
        if isinstance(op, Collective):
            groups.setdefault(id(op.comm.context), []).append(op)
    return list(groups.values())


def _circle(waiting: Mapping[int, Operation]) -> list[int]:
    """Ranks of which each waits for the next, the last for the first."""
    rank, path = min(waiting), list[int]()
    while rank not in path:
        path.append(rank)
        rank = _state(rank, waiting).peers[0]
    return path[path.index(rank):]


def _tag_hint(waiting: Mapping[int, Operation], circle: Sequence[int]) -> str:
    for rank in circle:
        a = waiting[rank]
        b = waiting.get(a.peers[0])
        if (isinstance(a, Request) and isinstance(b, Request) and a.sends != b.sends
                and b.peers[0] == rank and a.tag != b.tag):
            return f"\nThe two ends of that message have different tags: {a.tag} and {b.tag}."
    return ""


def _list(states: Sequence[Waiting]) -> str:
    lines = [f"\n  rank {s.rank} waits in {s.operation} at {s.location}"
             + (f" for {_ranks(s.peers)}" if s.peers else "") for s in states[:_SHOWN]]
    if len(states) > _SHOWN:
        lines.append(f"\n  ... and {len(states) - _SHOWN} more ranks")
    return "".join(lines)


def _others(states: Sequence[Waiting], rank: int) -> str:
    others = [state for state in states if state.rank != rank]
    return "\nThe others:" + _list(others) if others else ""


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _has(ranks: Sequence[int]) -> str:
    return "has" if len(ranks) == 1 else "have"
