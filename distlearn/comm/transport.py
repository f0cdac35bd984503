"""What an engine between processes has to bring: bytes from one process to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from distlearn.comm.call import Call
from distlearn.comm.layout import Array, Layout


class Transport(Protocol):
    """The processes of one run, seen from one of them; ranks are world ranks.

    Messages with the same source, destination and tag arrive in the order in which they were sent.

    Attributes
    ----------
    rank, size : int
    name : str
        Of the engine.
    hosts : sequence of str
        Name of the machine of each rank.
    prefers_native : bool
        Whether ``algorithm="auto"`` means the engine's own collective, where it has one.
    """

    rank: int
    size: int
    name: str
    hosts: Sequence[str]
    prefers_native: bool

    def isend(self, data: Array, dest: int, tag: int) -> Any:
        """Start to send a flat uint8 array, which has to stay as it is until the handle is done."""

    def irecv(self, buffer: Array, source: int, tag: int) -> Any:
        """Start to receive into a flat uint8 array of exactly the size that is sent."""

    def wait(self, handles: Sequence[Any]) -> None:
        """Wait until all are done."""

    def send_array(self, array: Array, dest: int, context: int, tag: int) -> Any:
        """Start to send an array with its shape and dtype."""

    def wait_sent(self, handle: Any) -> None:
        """Wait until an array has left."""

    def receive_array(self, source: int, context: int, tag: int) -> Any:
        """Start to receive an array."""

    def wait_received(self, handle: Any) -> Array:
        """Wait for an array."""

    def native(self, group: tuple[int, ...], call: Call, spread: Layout, data: Array
               ) -> Array | None:
        """Do the engine's own collective: this rank's flat result (a mean: not yet divided).

        None if the engine has none for this call.
        """

    def finish(self) -> None:
        """Wait for what is still being sent."""

    def share(self, value: Any) -> list[Any]:
        """Give every rank the value of every rank (pickled: results of programs, not arrays)."""

    def close(self) -> None:
        """Leave the world."""

    def abort(self, code: int) -> None:
        """End the whole job, or at least this rank, at once."""
