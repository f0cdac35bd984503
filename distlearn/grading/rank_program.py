"""Run a learner's rank program on virtual ranks; say what each rank returned and sent.

Used in the notebook and in the worker process, like `calling`. Every rank gets copies of its own of
all arguments, as if it had memory of its own, and the world's own communicator; what was used of it
is looked up afterwards in the ledgers.

All of it stays in the learner's own process, like any answer; what is wanted does not come here.
"""

from __future__ import annotations

import copy
from collections.abc import Coroutine, Sequence
from typing import Any

import numpy as np

from distlearn.comm.communicator import Communicator
from distlearn.comm.errors import CommError, RankError
from distlearn.comm.operation import Request
from distlearn.comm.virtual import VirtualWorld
from distlearn.grading.calling import Perform, Trouble
from distlearn.grading.rank_trouble import in_words

_MESSAGES = {"send": ("send", "isend"), "recv": ("recv", "irecv")}


class _Watched(VirtualWorld):
    """A virtual world that keeps who has sent to whom."""

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks, (0,) * ranks)
        self.to: list[set[int]] = [set() for _ in range(ranks)]

    def start(self, request: Request) -> None:
        if request.sends:
            self.to[request.comm.home.rank].add(request.comm.group[request.peer])
        super().start(request)


def performer(
    function: str, parameters: Sequence[str], operations: Sequence[str], each: Sequence[str],
    arrays: Sequence[str],
) -> Perform:
    """How to call a rank program: ``perform(function, args)``.

    Parameters
    ----------
    function : str
        Its name, for messages.
    parameters : sequence of str
        Without ``comm``, in the order of the arguments.
    operations, each, arrays
        See `RankProgram`.

    Returns
    -------
    callable
        It returns a dict of plain data, with one item per rank: ``results``; ``sent``, bytes;
        ``to``, the ranks it has sent messages to. And ``groups``: pairs of a group that had
        collectives and the bytes that all its ranks have sent in them. It raises what the program
        raises, or `Trouble`.
    """

    def perform(program: Any, args: list[Any]) -> dict[str, Any]:
        named = dict(zip(parameters, args, strict=True))
        world = _Watched(len(named[each[0]]))

        async def rank_program(comm: Communicator) -> Any:
            mine = [_own(named[name][comm.rank] if name in each else named[name], name in arrays)
                    for name in parameters]
            try:
                coroutine = program(comm, *mine)
                if not isinstance(coroutine, Coroutine):
                    raise Trouble("plain_def", function)
                return await coroutine
            except Exception as error:
                if world.size > 1 and not isinstance(error, Trouble):
                    error.add_note(f"on rank {comm.rank}")
                raise

        try:
            results = world.run(rank_program, ())
        except RankError as error:
            raise error.__cause__ or error.__context__ or error from None  # sys.exit on a rank
        except CommError as error:
            message, place = in_words(error)
            raise Trouble("stuck", message, place) from None
        _check_operations(world, operations)
        return {
            "results": results,
            "sent": [comm.ledger.total().bytes_sent for comm in world.comms],
            "to": [sorted(ranks) for ranks in world.to],
            "groups": _groups(world),
        }

    return perform


def _own(value: Any, array: bool) -> Any:
    return np.array(value, dtype=np.float64) if array else copy.deepcopy(value)


def _check_operations(world: VirtualWorld, operations: Sequence[str]) -> None:
    used = {entry.operation for comm in world.comms for entry in comm.ledger.entries}
    for name in sorted(used):
        if not set(_MESSAGES.get(name, (name,))) & set(operations):
            raise Trouble("operation", name)


def _groups(world: VirtualWorld) -> list[list[Any]]:
    sent: dict[tuple[int, ...], int] = {}
    for comm in world.comms:
        for entry in comm.ledger.entries:
            if entry.operation not in _MESSAGES:
                sent[entry.group] = sent.get(entry.group, 0) + entry.bytes_sent
    return [[list(group), count] for group, count in sorted(sent.items())]
