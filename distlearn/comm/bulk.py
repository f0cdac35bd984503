"""Perform a plan for all ranks at once: the virtual world's executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from distlearn.comm.layout import Array, Layout
from distlearn.comm.moves import Moves, Span
from distlearn.comm.reductions import REDUCTIONS

_COPY = -1
_Work = tuple[int, int, int]


class _Script(NamedTuple):
    """The moves of a collective as array operations over numbered views.

    Attributes
    ----------
    views : tuple of (buffer, slice or None)
        Every part of a buffer that is read or written, once (None: all of it), and one for each
        saved payload.
    steps : tuple of (saves, work)
        ``saves``: (saved view, view), payloads that are written to in their step before they are
        read. ``work``: (out, left, right), ``out = left (op) right``, or a copy. The first step
        copies what stays on its rank.
    """

    views: tuple[tuple[int, slice | None], ...]
    steps: tuple[tuple[tuple[tuple[int, int], ...], tuple[_Work, ...]], ...]


@lru_cache(maxsize=32)
def _script(moves: Moves) -> _Script:
    numbers: dict[Span, int] = {}

    def view(span: Span) -> int:
        return numbers.setdefault(span, len(numbers))

    kept = tuple((view(out), view(data), _COPY) for data, out in moves.kept
                 if out.start < out.stop)
    steps: list[tuple[tuple[tuple[int, int], ...], tuple[_Work, ...]]] = [((), kept)]
    for step in moves.steps:
        saves: list[tuple[int, int]] = []
        work: list[_Work] = []
        formed: dict[tuple[Span, Span], int] = {}
        for transfer in step:
            for piece in transfer.pieces:
                if piece.out.start == piece.out.stop:
                    continue
                out = view(piece.out)
                lower_first = transfer.source < transfer.dest
                pair = (piece.payload, piece.own) if lower_first else (piece.own, piece.payload)
                if transfer.reduce and formed.setdefault(pair, out) != out:
                    # both ends of an exchange form the same sum: once is enough
                    work.append((out, formed[pair], _COPY))
                    continue
                payload = view(piece.payload)
                if piece.hold:
                    saved = view(Span(-1 - len(saves), 0, 0))
                    saves.append((saved, payload))
                    payload = saved
                if not transfer.reduce:
                    work.append((out, payload, _COPY))
                elif lower_first:
                    work.append((out, payload, view(piece.own)))
                else:
                    work.append((out, view(piece.own), payload))
        steps.append((tuple(saves), tuple(work)))
    views = tuple((b, None if start == 0 and stop == moves.lengths[b] else slice(start, stop))
                  for b, start, stop in numbers)
    return _Script(views, tuple(steps))


def perform(layout: Layout, inputs: Sequence[Array], reduction: str | None,
            watch: Callable[[int, list[Array]], None] | None = None) -> list[Any]:
    """Perform a collective step by step and return the result of each rank.

    Parameters
    ----------
    layout : Layout
    inputs : sequence of flat arrays
        One per rank; not modified.
    reduction : str or None
    watch : callable, optional
        Called as ``watch(k, buffers)`` before the first step (k = 0) and after each step; buffer
        2 r is the input of rank r, buffer 2 r + 1 its work buffer.

    Notes
    -----
    Cost: one array operation per message. The bytes that the algorithm sends, and those of a result
    that never travelled, are copied or combined once.
    """
    ufunc = REDUCTIONS[reduction or "sum"]
    buffers: list[Array] = []
    for data, length in zip(inputs, layout.moves.lengths[1::2], strict=True):
        buffers += (data, np.empty(length, layout.dtype))
    script = _script(layout.moves)
    # the place of a saved payload (b < 0) is filled when it is saved
    views = [buffers[b] if part is None else buffers[b][part] for b, part in script.views]
    with np.errstate(all="ignore"):  # an overflow to inf is a result, as it is on a GPU
        for number, (saves, work) in enumerate(script.steps):
            for saved, source in saves:
                views[saved] = views[source].copy()
            for out, left, right in work:
                if right == _COPY:
                    views[out][...] = views[left]
                else:
                    ufunc(views[left], views[right], out=views[out])
            if watch is not None:
                watch(number, buffers)
        return layout.finish(buffers[1::2])
