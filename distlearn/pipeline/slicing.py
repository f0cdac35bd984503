"""How to cut a sequence into slices of unequal length but similar time.

A token attends to all tokens before it, so in a causal model later slices of equal length take
longer. Li et al., "TeraPipe", ICML 2021, section 3.3, and Sun et al., "Seq1F1B", section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SliceTime = Callable[[int, int], float]
"""``time(length, before)``: seconds of a slice of ``length`` tokens after ``before`` others."""


def best_slices(time: SliceTime, length: int, p: int, *, m: int = 1, step: int = 1
                ) -> tuple[int, ...]:
    """Slice lengths with the shortest pipeline: least ``m * sum(t) + (p-1) * max(t)``.

    TeraPipe's dynamic programme: for each possible longest time, the least sum of slices that stay
    within it.

    Parameters
    ----------
    time : callable
        ``time(length, before)`` in seconds, of one stage.
    length : int
        Tokens of a sequence.
    p, m : int
        Pipeline ranks; sequences that follow each other (TeraPipe's formula is for one).
    step : int
        Lengths are multiples of this, which has to divide ``length``.

    Notes
    -----
    Cost: (length/step)^4 at worst; longest times are tried in order until none can be better.

    Examples
    --------
    >>> best_slices(lambda length, before: 40 + length * (4 + before + length / 2), 12, p=4)
    (6, 3, 3)
    >>> best_slices(lambda length, before: 20 + length, 12, p=2)
    (12,)
    """
    n = _grid(length, step)
    for name, value in (("p", p), ("m", m)):
        if value < 1:
            raise ValueError(f"best_slices needs {name} >= 1; got {name}={value}")
    t = _times(time, n, step)
    best = math.inf
    lengths: tuple[int, ...] = (length,)
    for longest in sorted({t[a][b] for b in range(1, n + 1) for a in range(b)}):
        if (p - 1) * longest >= best:
            break
        least = [0.0] + [math.inf] * n
        start = [0] * (n + 1)
        for b in range(1, n + 1):
            for a in range(b):
                if t[a][b] <= longest and least[a] + t[a][b] < least[b]:
                    least[b], start[b] = least[a] + t[a][b], a
        total = m * least[n] + (p - 1) * longest
        if total < best:
            best, lengths = total, _walk_back(start, n, step)
    return lengths


def balanced_slices(time: SliceTime, length: int, slices: int, *, step: int = 1
                    ) -> tuple[int, ...]:
    """A given number of slices, the longest time as short as possible.

    Raises
    ------
    ValueError
        If there are more slices than steps, or the step does not divide the length.

    Examples
    --------
    >>> balanced_slices(lambda length, before: length * (1 + before + length / 2), 16, 4)
    (7, 4, 3, 2)
    """
    n = _grid(length, step)
    if not 1 <= slices <= n:
        raise ValueError(f"balanced_slices needs 1 <= slices <= length / step = {n}; got {slices}")
    t = _times(time, n, step)
    longest = [0.0] + [math.inf] * n
    starts: list[list[int]] = []
    for _ in range(slices):
        previous, longest, start = longest, [math.inf] * (n + 1), [0] * (n + 1)
        for b in range(1, n + 1):
            for a in range(b):
                value = max(previous[a], t[a][b])
                if value < longest[b]:
                    longest[b], start[b] = value, a
        starts.append(start)
    lengths, end = [], n
    for start in reversed(starts):
        lengths.append((end - start[end]) * step)
        end = start[end]
    return tuple(reversed(lengths))


def _grid(length: int, step: int) -> int:
    if step < 1 or length < 1 or length % step:
        raise ValueError(f"slices need length >= 1 and a step that divides it; got length={length} "
                         f"step={step}")
    return length // step


def _times(time: SliceTime, n: int, step: int) -> list[list[float]]:
    rows = [[time((b - a) * step, a * step) if a < b else 0.0 for b in range(n + 1)]
            for a in range(n)]
    for a, row in enumerate(rows):
        for b, seconds in enumerate(row):
            if not 0 <= seconds < math.inf:
                raise ValueError(f"time({(b - a) * step}, {a * step}) must be a finite number of "
                                 f"seconds >= 0; got {seconds}")
    return rows


def _walk_back(start: list[int], n: int, step: int) -> tuple[int, ...]:
    lengths = []
    while n:
        lengths.append((n - start[n]) * step)
        n = start[n]
    return tuple(reversed(lengths))
