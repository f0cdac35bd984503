"""The ledger: what a rank sent and received, per operation and group."""

from __future__ import annotations

from dataclasses import dataclass

Group = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """Traffic of one rank in one kind of operation within one group.

    Attributes
    ----------
    operation : str
        ``"all_reduce"``, ``"send"`` (isend too), ``"recv"`` (irecv too), ...; ``"*"`` in a total.
    group : tuple of int
        World ranks of the communicator; empty in a total over several groups.
    calls : int
        Completed calls.
    bytes_sent, bytes_received : int
        Payload bytes that left and reached this rank. A rank's own part, which never leaves it,
        does not count; nor do the short headers of the engines between processes.
    messages : int
        Messages sent.
    uncounted : int
        Calls (included in ``calls``) done by an engine's own collective, ``algorithm="native"``,
        which does not tell how many bytes it sent.
    """

    operation: str
    group: Group
    calls: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    messages: int = 0
    uncounted: int = 0


class Ledger:
    """Counts what one rank sends and receives; shared by all communicators of the rank.

    Examples
    --------
    >>> import numpy as np
    >>> from distlearn.comm import run
    >>> async def program(comm):
    ...     await comm.all_reduce(np.ones(1024, np.float32), algorithm="ring")
    ...     return comm.ledger
    >>> ledger = run(program, ranks=4)[0]
    >>> ledger.total("all_reduce").bytes_sent        # 2 (p - 1) / p of 4096 bytes
    6144
    >>> print(ledger)
    operation     group       calls  bytes sent  bytes received  messages
    all_reduce    0-3             1       6,144           6,144         6
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Group], list[int]] = {}

    def add(self, operation: str, group: Group, sent: int, received: int, messages: int,
            uncounted: int = 0) -> None:
        """Count one completed call (engines do this; bytes)."""
        row = self._rows.get((operation, group))
        if row is None:
            row = self._rows[operation, group] = [0, 0, 0, 0, 0]
        row[0] += 1
        row[1] += sent
        row[2] += received
        row[3] += messages
        row[4] += uncounted

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order in which they were first used."""
        return tuple(Entry(*key, *row) for key, row in self._rows.items())

    def total(self, operation: str | None = None, group: Group | None = None) -> Entry:
        """Sum over the entries of one operation, of one group, or (default) over all."""
        rows = [row for (name, ranks), row in self._rows.items()
                if operation in (None, name) and group in (None, ranks)]
        return Entry(operation or "*", group or (), *map(sum, zip(*rows, strict=True)))

    def __str__(self) -> str:
        lines = ["operation     group       calls  bytes sent  bytes received  messages"]
        for e in self.entries:
            lines.append(f"{e.operation:<14}{_span(e.group):<10}{e.calls:>7,}{e.bytes_sent:>12,}"
                         f"{e.bytes_received:>16,}{e.messages:>10,}")
        return "\n".join(lines)


def _span(group: Group) -> str:
    """``0-3`` for consecutive ranks, else ``0,2,4``."""
    if len(group) > 1 and group == tuple(range(group[0], group[0] + len(group))):
        return f"{group[0]}-{group[-1]}"
    return ",".join(map(str, group))
