"""From a plan to array slices: where each chunk lies, on each rank, before and after each step.

A rank has two flat buffers. Its *input* holds the chunks it brings and is never written; its *work*
buffer holds every chunk it receives or ends with. What it ends with and never receives is copied
first; any other chunk is read from the input until it is received for the first time. So nothing is
copied just to get started: a ring all-reduce moves exactly the bytes that the algorithm sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from distlearn.comm.plans import Message, Plan


class Span(NamedTuple):
    """Chunks ``start`` .. ``stop - 1``, by their place in a buffer.

    Buffer 2 r is the input of rank r, buffer 2 r + 1 its work buffer. After `bind`, start and stop
    are elements.
    """

    buffer: int
    start: int
    stop: int


class Piece(NamedTuple):
    """One contiguous part of a message: ``out = payload`` or ``out = own (op) payload``."""

    payload: Span
    own: Span
    out: Span
    hold: bool
    """Whether the payload is overwritten earlier in the same step, so must be saved first."""


class Transfer(NamedTuple):
    """A message, with the places it is read from and written to."""

    source: int
    dest: int
    reduce: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, eq=False)
class Moves:
    """What a plan does to buffers. Spans count chunks as `trace` returns it, elements once bound.

    Attributes
    ----------
    steps : tuple of tuple of Transfer
    kept : tuple of (input span, work span)
        What stays on its rank: copied from input to work before the first step.
    results : tuple of Span
        Where each rank's result lies in its work buffer.
    lengths : tuple of int
        Length of each buffer.
    chunks : tuple of tuple of int
        The chunks in each buffer.
    """

    steps: tuple[tuple[Transfer, ...], ...]
    kept: tuple[tuple[Span, Span], ...]
    results: tuple[Span, ...]
    lengths: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=512)
def trace(plan: Plan) -> Moves:
    """Follow a plan and note in which buffer each chunk lies when it is read.

    Raises
    ------
    ValueError
        If the plan sends a chunk that its source does not have, or lets a message overwrite what
        another message of the same step still has to send.
    """
    received: list[set[int]] = [set() for _ in range(plan.size)]
    for step in plan.steps:
        for message in step:
            received[message.dest].update(message.chunks)
    buffers: list[tuple[int, ...]] = []
    for r in range(plan.size):
        buffers += [plan.initial[r], tuple(sorted(received[r].union(plan.final[r])))]
    place = [{chunk: i for i, chunk in enumerate(chunks)} for chunks in buffers]
    stays = [set(plan.final[r]) - received[r] for r in range(plan.size)]
    in_work = [set(chunks) for chunks in stays]

    def find(rank: int, chunk: int, arrived: set[int]) -> Span:
        buffer = 2 * rank + (chunk in arrived)
        if chunk not in place[buffer]:
            raise ValueError(f"{plan.operation}/{plan.algorithm}: rank {rank} has no chunk {chunk}")
        return Span(buffer, place[buffer][chunk], place[buffer][chunk] + 1)

    steps = []
    for step in plan.steps:
        before = [set(chunks) for chunks in in_work] if len(step) > 1 else in_work
        written: set[tuple[int, int]] = set()
        transfers = []
        for message in step:
            pieces: list[Piece] = []
            for chunk in sorted(message.chunks):
                out = Span(2 * message.dest + 1, i := place[2 * message.dest + 1][chunk], i + 1)
                payload = find(message.source, chunk, before[message.source])
                own = find(message.dest, chunk, in_work[message.dest]) if message.reduce else out
                hold = (payload.buffer, payload.start) in written
                pieces.append(Piece(payload, own, out, hold))
            transfers.append(Transfer(message.source, message.dest, message.reduce,
                                      _merge(pieces)))
            written.update((2 * message.dest + 1, piece.out.start) for piece in pieces)
            in_work[message.dest].update(message.chunks)
        _check_step(plan, step, transfers)
        steps.append(tuple(transfers))
    kept = [_from_input(place, r, sorted(stays[r])) for r in range(plan.size)]
    results = []
    for r in range(plan.size):
        places = [place[2 * r + 1][chunk] for chunk in plan.final[r]]
        results.append(Span(2 * r + 1, min(places, default=0), max(places, default=-1) + 1))
    return Moves(tuple(steps), sum(kept, ()), tuple(results), tuple(map(len, buffers)),
                 tuple(buffers))


def _from_input(place: Sequence[Mapping[int, int]], rank: int, chunks: Sequence[int]
                ) -> tuple[tuple[Span, Span], ...]:
    """Copies of chunks from input to work buffer, neighbours joined."""
    copies: list[tuple[Span, Span]] = []
    for chunk in chunks:
        i, j = place[2 * rank][chunk], place[2 * rank + 1][chunk]
        data, out = Span(2 * rank, i, i + 1), Span(2 * rank + 1, j, j + 1)
        if copies and copies[-1][0].stop == i and copies[-1][1].stop == j:
            (_, start, _), (_, out_start, _) = copies.pop()
            data, out = Span(2 * rank, start, i + 1), Span(2 * rank + 1, out_start, j + 1)
        copies.append((data, out))
    return tuple(copies)


def _merge(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Join neighbouring pieces that lie next to each other everywhere."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last and last.hold == piece.hold and all(
                a.buffer == b.buffer and a.stop == b.start
                for a, b in zip(last[:3], piece[:3], strict=True)):
            payload, own, out = (Span(a.buffer, a.start, b.stop)
                                 for a, b in zip(last[:3], piece[:3], strict=True))
            merged[-1] = Piece(payload, own, out, piece.hold)
        else:
            merged.append(piece)
    return tuple(merged)


def _check_step(plan: Plan, step: tuple[Message, ...], transfers: list[Transfer]) -> None:
    """A stored chunk goes straight into the work buffer, so nobody may still have to send it."""
    read = {(t.source, chunk) for t, m in zip(transfers, step, strict=True) for chunk in m.chunks}
    for message in step:
        for chunk in message.chunks:
            if not message.reduce and (message.dest, chunk) in read:
                raise ValueError(f"{plan.operation}/{plan.algorithm}: rank {message.dest} sends "
                                 f"and overwrites chunk {chunk} in the same step")


@lru_cache(maxsize=32)
def bind(plan: Plan, sizes: tuple[int, ...]) -> Moves:
    """The moves of a plan for chunks of ``sizes[c]`` elements: spans in elements."""
    moves = trace(plan)
    offsets = [
        tuple(accumulate((sizes[chunk] for chunk in chunks), initial=0))
        for chunks in moves.chunks
    ]

    def at(span: Span) -> Span:
        offset = offsets[span.buffer]
        return Span(span.buffer, offset[span.start], offset[span.stop])

    return Moves(
        steps=tuple(
            tuple(
                Transfer(t.source, t.dest, t.reduce,
                         tuple(Piece(at(p.payload), at(p.own), at(p.out), p.hold)
                               for p in t.pieces))
                for t in step)
            for step in moves.steps),
        kept=tuple((at(a), at(b)) for a, b in moves.kept),
        results=tuple(map(at, moves.results)),
        lengths=tuple(offset[-1] for offset in offsets),
        chunks=moves.chunks,
    )


class Traffic(NamedTuple):
    """Elements that one rank sends and receives in a collective, and messages it sends."""

    sent: int
    received: int
    messages: int


def traffic(moves: Moves) -> tuple[Traffic, ...]:
    """Count bound moves, per rank."""
    size = len(moves.results)
    sent, received, messages = [0] * size, [0] * size, [0] * size
    for step in moves.steps:
        for transfer in step:
            n = sum(piece.out.stop - piece.out.start for piece in transfer.pieces)
            sent[transfer.source] += n
            received[transfer.dest] += n
            messages[transfer.source] += 1
    return tuple(map(Traffic, sent, received, messages))
