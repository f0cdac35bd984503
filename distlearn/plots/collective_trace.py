"""What every rank holds after each step of a collective: recorded, and put into words."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from distlearn.comm import ALGORITHMS, Communicator, Message, RecordedStep, Recording, run
from distlearn.hardware import collective_bytes, collective_messages
from distlearn.plots.numbers import number

BUFFER_BYTES = 840
"""Size n of the whole buffer: every number of ranks up to 8 divides it."""
MAX_RANKS = 8
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "scatter",
              "gather")
"""The collectives whose data can be drawn as a row of chunks."""
_ROOTED = ("broadcast", "scatter")

_Program = Callable[[Communicator], Coroutine[Any, Any, Any]]


@dataclass(frozen=True)
class Trace:
    """One collective on virtual ranks, step by step.

    Attributes
    ----------
    operation, algorithm : str
    p : int
        Ranks.
    nodes : tuple of int
        The node of each rank.
    chunks : int
        Chunks that the algorithm cuts the buffer of ``BUFFER_BYTES`` into.
    messages : tuple of tuple of Message
        What travelled in each step.
    nbytes : tuple of tuple of int
        Bytes of each of these messages.
    held : tuple of tuple of tuple of int
        ``held[k][r][c]``: what rank r has in chunk c after k steps, as bits. Bit i is set if the
        contribution of rank i is in it; 0 if the rank has nothing there.
    final : tuple of tuple of int
        Chunks that the result of each rank consists of.
    sent : tuple of int
        Bytes that each rank sent in all, by its ledger.
    formula_bytes, formula_messages : int
        What ``hardware.collective_bytes`` and ``collective_messages`` say for the busiest rank.
    """

    operation: str
    algorithm: str
    p: int
    nodes: tuple[int, ...]
    chunks: int
    messages: tuple[tuple[Message, ...], ...]
    nbytes: tuple[tuple[int, ...], ...]
    held: tuple[tuple[tuple[int, ...], ...], ...]
    final: tuple[tuple[int, ...], ...]
    sent: tuple[int, ...]
    formula_bytes: int
    formula_messages: int

    @property
    def steps(self) -> int:
        """Number of steps; states are numbered 0 (before the first) to ``steps``."""
        return len(self.messages)

    def wanted(self, chunk: int) -> int:
        """The bits of all contributions to a chunk: what a finished one holds."""
        bits = 0
        for rank in self.held[0]:
            bits |= rank[chunk]
        return bits

    def complete(self, step: int) -> list[tuple[int, int]]:
        """The parts of the result that are in place after ``step`` steps: (rank, chunk)."""
        return [(r, c) for r in range(self.p) for c in self.final[r]
                if self.held[step][r][c] == self.wanted(c)]

    def sent_by(self, rank: int, step: int) -> int:
        """Bytes that a rank has sent in the first ``step`` steps."""
        return sum(nbytes
                   for messages, sizes in zip(self.messages[:step], self.nbytes, strict=False)
                   for message, nbytes in zip(messages, sizes, strict=True)
                   if message.source == rank)


@lru_cache(maxsize=512)
def trace(operation: str, algorithm: str, p: int, ranks_per_node: int | None = None) -> Trace:
    """Run a collective on virtual ranks and keep what every rank held after each step.

    Rank r brings bytes of value 2^r, so that a sum names the ranks whose contributions are in it.
    The root, where there is one, is rank 0.

    Parameters
    ----------
    operation : str
        One of ``OPERATIONS``.
    algorithm : str
        One of ``distlearn.comm.ALGORITHMS[operation]``.
    p : int
        Ranks, 2 to ``MAX_RANKS``.
    ranks_per_node : int, optional
        Default: all ranks on one node.

    Raises
    ------
    ValueError
        Naming the argument; or what the algorithm itself refuses.

    Examples
    --------
    >>> ring = trace("all_reduce", "ring", 3)
    >>> ring.held[0][0], ring.held[1][0], ring.held[4][0]
    ((1, 1, 1), (1, 5, 1), (7, 7, 7))
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}; got {operation!r}")
    if algorithm not in ALGORITHMS[operation]:
        raise ValueError(f"algorithm of {operation} must be one of "
                         f"{', '.join(ALGORITHMS[operation])}; got {algorithm!r}")
    if not 2 <= p <= MAX_RANKS:
        raise ValueError(f"p must be from 2 to {MAX_RANKS} ranks; got p={p}")
    recording = Recording()
    ledgers = run(_program(operation, algorithm), p, ranks_per_node=ranks_per_node,
                  recording=recording)
    done = recording.collectives[-1]
    per_node = ranks_per_node or p
    formula = (operation, BUFFER_BYTES, p, algorithm)
    return Trace(
        operation, algorithm, p, tuple(r // per_node for r in range(p)), done.plan.chunks,
        tuple(step.messages for step in done.steps[1:]),
        tuple(step.nbytes for step in done.steps[1:]),
        tuple(_bits(step, done.plan.chunks) for step in done.steps),
        done.plan.final, tuple(ledger.total(operation).bytes_sent for ledger in ledgers),
        collective_bytes(*formula, devices_per_node=ranks_per_node),
        collective_messages(*formula, devices_per_node=ranks_per_node))


def _program(operation: str, algorithm: str) -> _Program:
    async def program(comm: Communicator) -> Any:
        whole = np.full(BUFFER_BYTES, 1 << comm.rank, np.uint8)
        own = whole[: BUFFER_BYTES // comm.size]
        brings = own if operation in ("all_gather", "gather") else whole
        data = None if operation in _ROOTED and comm.rank else brings
        await getattr(comm, operation)(data, algorithm=algorithm)
        return comm.ledger
    return program


def _bits(step: RecordedStep, chunks: int) -> tuple[tuple[int, ...], ...]:
    rows = []
    for held in step.held:
        if any(np.ptp(values) for values in held.values()):
            raise AssertionError("a chunk must hold the same contributions throughout")
        rows.append(tuple(int(held[c][0]) if c in held else 0 for c in range(chunks)))
    return tuple(rows)


def ranks_in(bits: int) -> list[int]:
    """The ranks whose contributions are in a value, ascending.

    Examples
    --------
    >>> ranks_in(0b1011)
    [0, 1, 3]
    """
    return [rank for rank in range(bits.bit_length()) if bits >> rank & 1]


def step_in_words(one: Trace, step: int) -> str:
    """Who sent what to whom in a step, and what became of it.

    Examples
    --------
    >>> step_in_words(trace("all_reduce", "ring", 2), 1)
    'Step 1 of 2: rank 0 sends chunk 1 to rank 1, added there; rank 1 sends chunk 0 to rank 0, \
added there.'
    """
    if step == 0:
        return (f"Start of {one.operation} by {one.algorithm} on {one.p} ranks: "
                "nothing was sent yet.")
    sentences = [
        f"rank {m.source} sends {_chunks(m.chunks)} to rank {m.dest}"
        f"{', added there' if m.reduce else ''}" for m in one.messages[step - 1]]
    return f"Step {step} of {one.steps}: {'; '.join(sentences)}."


def cell_in_words(one: Trace, step: int, rank: int, chunk: int) -> str:
    """What a rank has in a chunk after a number of steps.

    Examples
    --------
    >>> cell_in_words(trace("all_reduce", "ring", 2), 1, 0, 0)
    'chunk 0 on rank 0: from ranks 0, 1, complete'
    """
    bits, here = one.held[step][rank][chunk], f"chunk {chunk} on rank {rank}: "
    if not bits:
        return here + "nothing"
    names = ranks_in(bits)
    whole = (rank, chunk) in one.complete(step)
    return (f"{here}from rank{'s' if len(names) > 1 else ''} {', '.join(map(str, names))}"
            f"{', complete' if whole else ''}")


def describe_collective(one: Trace, step: int) -> str:
    """The picture of a step in words: its text alternative."""
    most = max(one.sent_by(r, step) for r in range(one.p))
    parts = sum(map(len, one.final))
    return (f"{step_in_words(one, step)} The busiest rank has sent {most} bytes, "
            f"{number(most / BUFFER_BYTES)} of the buffer. "
            f"{len(one.complete(step))} of {parts} parts of the result are in place.")


def _chunks(chunks: tuple[int, ...]) -> str:
    """``chunk 3``, ``chunks 0 to 3``, ``chunks 1, 4``."""
    if len(chunks) == 1:
        return f"chunk {chunks[0]}"
    if len(chunks) > 2 and chunks == tuple(range(chunks[0], chunks[-1] + 1)):
        return f"chunks {chunks[0]} to {chunks[-1]}"
    return f"chunks {', '.join(map(str, chunks))}"
