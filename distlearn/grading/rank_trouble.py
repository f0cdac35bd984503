"""What went wrong between the ranks of a learner's program, in one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping

from distlearn.comm.errors import (
    CommError,
    DeadlockError,
    MissingParticipantError,
    NotAwaitedError,
    UnmatchedRecvError,
    UnmatchedSendError,
    Waiting,
)

_SHOWN = 3  # ranks of a circle that are named


def in_words(error: CommError) -> tuple[str, str]:
    """A sentence, and ``file:line`` of the learner's code where it shows, or "".

    Parameters
    ----------
    error : CommError
        As the virtual engine raises it.
    """
    waiting = {one.rank: one for one in error.waiting}
    if not waiting:
        return str(error).partition("\n")[0], ""
    first = error.waiting[0]
    if isinstance(error, NotAwaitedError):
        return (f"rank {first.rank} calls `{_name(first)}` without `await`, so it does not happen",
                first.location)
    if isinstance(error, UnmatchedRecvError | UnmatchedSendError):
        lost = next((one for one in error.waiting if not set(one.peers) & set(waiting)
                     and not _collective(one)), first)
        return _unmatched(lost), lost.location
    if isinstance(error, DeadlockError) and not isinstance(error, MissingParticipantError):
        return _circle(waiting, str(error)), first.location
    return str(error).partition("\n")[0], first.location


def _unmatched(one: Waiting) -> str:
    peer = one.peers[0]
    if _name(one) == "send":
        return f"rank {one.rank} sends a message to rank {peer} that rank {peer} never receives"
    return f"rank {one.rank} waits for a message from rank {peer} that never comes"


def _circle(waiting: Mapping[int, Waiting], message: str) -> str:
    """Who waits for whom, once round; and the tags, if they are why."""
    rank, path = min(waiting), list[int]()
    while rank not in path and rank in waiting and waiting[rank].peers:
        path.append(rank)
        rank = waiting[rank].peers[0]
    circle = path[path.index(rank) :] if rank in path else path
    parts = [_waits(waiting[rank]) for rank in circle[:_SHOWN]]
    more = ", and so on round" if len(circle) > _SHOWN else ""
    last = message.rpartition("\n")[2]
    tags = f". {last.rstrip('.')}" if "tags" in last else ""
    return f"no rank can go on: {', '.join(parts)}{more}{tags}"


def _waits(one: Waiting) -> str:
    peer = one.peers[0]
    if _name(one) == "send":
        return f"rank {one.rank} waits until rank {peer} receives its message"
    if _name(one) == "recv":
        return f"rank {one.rank} waits for a message from rank {peer}"
    return f"rank {one.rank} waits in `{_name(one)}` for rank {peer}"


def _name(one: Waiting) -> str:
    return one.operation.partition("(")[0]


def _collective(one: Waiting) -> bool:
    return _name(one) not in ("send", "recv")
