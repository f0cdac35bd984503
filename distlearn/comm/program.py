"""What the engines share about programs: starting them, splitting groups, blaming a rank."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from distlearn.comm.call import Call
from distlearn.comm.communicator import Communicator
from distlearn.comm.errors import RankError
from distlearn.comm.numbers import check_count

Program = Callable[..., Coroutine[Any, Any, Any]]


def new_comm(parent: Communicator, calls: Sequence[Call], context: Any) -> Communicator | None:
    """Make the communicator of one rank after a split.

    Parameters
    ----------
    parent : Communicator
    calls : sequence of Call
        The split of each rank of the parent.
    context : Any
        What the engine knows the new group by.
    """
    color = calls[parent.rank].color
    if color is None:
        return None
    members = sorted((call.key or 0, rank) for rank, call in enumerate(calls)
                     if call.color == color)
    ranks = [rank for _, rank in members]
    group = tuple(parent.group[rank] for rank in ranks)
    return Communicator(parent.home, ranks.index(parent.rank), group,
                        tuple(parent.nodes[rank] for rank in ranks), context,
                        suffix=f" in group {group}")


def start(program: Program, comm: Communicator, args: Sequence[Any]) -> Coroutine[Any, Any, Any]:
    """Call the program for one rank.

    Raises
    ------
    TypeError
        If it is no coroutine function.
    """
    coroutine = program(comm, *args)
    if not isinstance(coroutine, Coroutine):
        raise TypeError(f"a rank program must be written as 'async def': {program!r} returned "
                        f"{coroutine!r:.80}")
    return coroutine


def blame(error: BaseException, rank: int, size: int, engine: str) -> BaseException:
    """The error to report for one that came out of a rank's program."""
    if isinstance(error, SystemExit):
        code = error.code
        number = code if isinstance(code, int) else int(code is not None)
        made = RankError(f"rank {rank} of {size} called sys.exit({code!r}) ({engine})",
                         rank, number)
        made.__cause__ = error
        return made
    error.add_note(f"in rank {rank} of {size} ({engine})")
    return error


def foreign(coroutine: Coroutine[Any, Any, Any], awaited: object) -> BaseException:
    """The error for a program that awaits something of another library, raised at its await.

    A program that catches it is told all the same: what it awaited never happened.
    """
    error = TypeError("a rank program can only await the operations of its communicator, "
                      f"not {awaited!r:.80}")
    try:
        coroutine.throw(error)
    except StopIteration:
        return error
    except BaseException as raised:
        return raised
    return error


def close(coroutine: Coroutine[Any, Any, Any]) -> None:
    """End a rank that will not go on; its ``finally`` blocks run, but may not communicate.

    What they raise (RuntimeError if they await) is dropped: the error to report is the one that
    ended the run.
    """
    with suppress(Exception):
        coroutine.close()


def node_numbers(ranks: int, ranks_per_node: int | None) -> tuple[int, ...]:
    """Node of each rank: ``ranks_per_node`` after each other, the last node may hold fewer."""
    if ranks_per_node is None:
        return (0,) * ranks
    check_count("ranks_per_node", ranks_per_node)
    return tuple(rank // ranks_per_node for rank in range(ranks))

