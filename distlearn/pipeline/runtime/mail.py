"""What a rank sends and receives while it runs a schedule."""

from __future__ import annotations

from distlearn.comm import Communicator, Request
from distlearn.nn import Array
from distlearn.pipeline.runtime.batch import Key

KINDS = ("output", "gradient", "evicted", "returned")
_TAGS = 32_000  # communicators promise 32767; those above are left for sums
_SUM = 32_001


class Mail:
    """Messages by what they are. Sends never wait, so only a missing message can stop a rank.

    Attributes
    ----------
    sent : dict
        Bytes of the schedule's own messages, by receiving rank.
    summed : int
        Bytes sent to add up gradients of shared weights.
    """

    def __init__(self, comm: Communicator, m: int, slices: int) -> None:
        self._comm, self._m, self._slices = comm, m, slices
        self._open: list[Request] = []
        self.sent: dict[int, int] = {}
        self.summed = 0

    def send(self, what: str, key: Key, array: Array, rank: int) -> None:
        """Start to send what belongs to a (stage, microbatch[, slice])."""
        self._open.append(self._comm.isend(array, rank, self._tag(what, key)))
        self.sent[rank] = self.sent.get(rank, 0) + array.nbytes

    async def receive(self, what: str, key: Key, rank: int) -> Array:
        """Wait for it on the other side."""
        return _own(await self._comm.recv(rank, self._tag(what, key)))

    def ask(self, what: str, key: Key, rank: int) -> Request:
        """Start to receive; to be awaited later."""
        return self._comm.irecv(rank, self._tag(what, key))

    def send_sum(self, array: Array, rank: int) -> None:
        """Start to send a gradient to be added up, or the sum."""
        self._open.append(self._comm.isend(array, rank, _SUM))
        self.summed += array.nbytes

    async def receive_sum(self, rank: int) -> Array:
        """Wait for one; they come in the order in which all ranks add up."""
        return _own(await self._comm.recv(rank, _SUM))

    async def close(self) -> None:
        """Wait until everything has left."""
        for request in self._open:
            await request

    def _tag(self, what: str, key: Key) -> int:
        """Ranks may use messages in another order than they come, so each has a tag of its own.

        Tags repeat after thousands of messages; of two with the same tag the older comes first.
        """
        stage, i, part = (*key, 0)[:3]
        unit = (stage * self._m + i) * self._slices + part
        return (unit * len(KINDS) + KINDS.index(what)) % _TAGS


def _own(array: Array) -> Array:
    """An array that is not a view of an engine's buffer, which would count, and stay, whole."""
    return array if array.base is None else array.copy()
