"""Keep what every step of every collective did, so that a chapter can draw it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distlearn.comm.layout import Array, Layout
from distlearn.comm.moves import Moves
from distlearn.comm.operation import Location, location_text
from distlearn.comm.plans import Plan, Step


@dataclass(frozen=True)
class RecordedStep:
    """The world after one step.

    Attributes
    ----------
    messages : tuple of Message
        What travelled; empty in the first entry, which shows the start.
    nbytes : tuple of int
        Payload bytes of each message.
    held : tuple of dict
        ``held[r][c]`` is rank r's value of chunk c, where it has one.
    """

    messages: Step
    nbytes: tuple[int, ...]
    held: tuple[dict[int, Array], ...] = field(repr=False)


@dataclass(frozen=True)
class RecordedCollective:
    """One collective: its plan, its group (world ranks), the line of the call, its steps."""

    plan: Plan
    group: tuple[int, ...]
    location: str
    steps: list[RecordedStep] = field(default_factory=list)


class Recording:
    """Pass one to ``run(..., recording=...)`` (virtual engine) and look at it afterwards.

    Attributes
    ----------
    collectives : list of RecordedCollective
        In the order in which they were performed; splits are not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from distlearn.comm import Recording, run
    >>> async def program(comm):
    ...     await comm.all_reduce(np.array([1, 2]) + comm.rank, algorithm="ring")
    >>> recording = Recording()
    >>> _ = run(program, ranks=2, recording=recording)
    >>> for step in recording.collectives[0].steps:
    ...     print([{c: x.tolist() for c, x in held.items()} for held in step.held], step.messages)
    [{0: [1], 1: [2]}, {0: [2], 1: [3]}] ()
    [{0: [3], 1: [2]}, {0: [2], 1: [5]}] (Message(source=0, dest=1, chunks=(1,), reduce=True), \
Message(source=1, dest=0, chunks=(0,), reduce=True))
    [{0: [3], 1: [5]}, {0: [3], 1: [5]}] (Message(source=0, dest=1, chunks=(0,), reduce=False), \
Message(source=1, dest=0, chunks=(1,), reduce=False))
    """

    def __init__(self) -> None:
        self.collectives: list[RecordedCollective] = []

    def begin(self, layout: Layout, group: tuple[int, ...], location: Location
              ) -> Callable[[int, list[Array]], None]:
        """Start the record of one collective; the result is called after each step."""
        plan, moves = layout.plan, layout.moves
        record = RecordedCollective(plan, group, location_text(location))
        self.collectives.append(record)
        arrived: list[set[int]] = [set() for _ in group]

        def watch(number: int, buffers: list[Any]) -> None:
            messages = plan.steps[number - 1] if number else ()
            for message in messages:
                arrived[message.dest].update(message.chunks)
            itemsize = layout.dtype.itemsize
            nbytes = tuple(sum(layout.sizes[c] for c in m.chunks) * itemsize for m in messages)
            held = tuple(_held(layout, moves, buffers, rank, arrived[rank])
                         for rank in range(plan.size))
            record.steps.append(RecordedStep(messages, nbytes, held))

        return watch


def _held(layout: Layout, moves: Moves, buffers: list[Array], rank: int,
          arrived: set[int]) -> dict[int, Array]:
    """Copies of the chunks a rank has: from its work buffer once received, else from its input."""
    held = {}
    for which in (0, 1):
        start = 0
        for chunk in moves.chunks[2 * rank + which]:
            stop = start + layout.sizes[chunk]
            if (chunk in arrived) == bool(which):
                held[chunk] = buffers[2 * rank + which][start:stop].copy()
            start = stop
    return dict(sorted(held.items()))
