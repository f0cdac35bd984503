"""Schedules as short strings, so that a page carries every order and computes only times.

An order of one rank reads, for 1F1B with p=4, m=8, rank 0: ``F4(BF)4B4``. In words::

    order := item*            item  := action count? | "(" order ")" count
    action := KIND chunk? ("." microbatch)?

KIND is a capital letter. The chunk says which of its rank's stages, in ascending order, the action
works on: nothing for the first, ``a`` for the second, ``b`` for the third. The microbatch is the
one after the last of that kind and chunk, from 0 on, unless it is written out. So any schedule can
be written, and the usual ones are short. ``simulate.js`` reads the same strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distlearn.pipeline import Action, Schedule, build

_TOKEN = re.compile(r"\(|\)(\d+)|([A-Z])([a-z]?)(?:\.(\d+)|(\d*))")


def encode(schedule: Schedule) -> list[str]:
    """The order of every rank as a string.

    Examples
    --------
    >>> encode(build("1f1b", p=4, m=8))[:2]
    ['F4(BF)4B4', 'F3(BF)5B3']
    """
    chunk = {stage: chunks.index(stage)
             for chunks in stages_of_ranks(schedule.placement, schedule.p) for stage in chunks}
    if max(chunk.values()) > 26:
        raise ValueError(f"an order string has names for 27 chunks per rank; got v={schedule.v}")
    return [_encode_rank(actions, chunk) for actions in schedule.ranks]


def decode(orders: Sequence[str], placement: Sequence[int]) -> list[list[Action]]:
    """The actions of every rank, from what `encode` wrote.

    Raises
    ------
    ValueError
        Naming the order that cannot be read.
    """
    stages = stages_of_ranks(placement, len(orders))
    return [_decode_rank(order, stages[rank]) for rank, order in enumerate(orders)]


def stages_of_ranks(placement: Sequence[int], p: int) -> list[list[int]]:
    """For each rank, the stages it holds, ascending."""
    return [[stage for stage, home in enumerate(placement) if home == rank] for rank in range(p)]


def catalogue(names: Sequence[str], ps: Sequence[int], ms: Sequence[int],
              vs: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Every order of the named schedules over ranges of sizes, each string once.

    Parameters
    ----------
    names : sequence of str
    ps, ms : sequence of int
        Sizes to cover.
    vs : mapping of str to sequence of int
        For each name, the stages per rank to cover.

    Returns
    -------
    dict
        ``orders``: name -> v -> p -> m -> indices into ``strings``, one per rank, or one index
        into ``errors`` if `build` refuses the sizes. ``placements``: name -> v -> p -> ranks.
    """
    strings: dict[str, int] = {}
    errors: dict[str, int] = {}
    orders: dict[str, Any] = {}
    placements: dict[str, Any] = {}
    for name in names:
        orders[name], placements[name] = {}, {}
        for v in vs[name]:
            of_v: dict[int, Any] = {}
            orders[name][v] = of_v
            placed = placements[name][v] = {}
            for p in ps:
                of_v[p] = {}
                for m in ms:
                    try:
                        schedule = build(name, p=p, m=m, v=v)
                    except ValueError as error:
                        of_v[p][m] = errors.setdefault(str(error), len(errors))
                        continue
                    placed[p] = schedule.placement
                    of_v[p][m] = [strings.setdefault(order, len(strings))
                                  for order in encode(schedule)]
    return {"strings": list(strings), "errors": list(errors), "orders": orders,
            "placements": placements}


def _encode_rank(actions: Sequence[Action], chunk: dict[int, int]) -> str:
    following: dict[tuple[str, int], int] = {}
    tokens = []
    for kind, stage, i in actions:
        token = kind + ("" if chunk[stage] == 0 else chr(ord("a") + chunk[stage] - 1))
        if i != following.get((kind, stage), 0):
            token += f".{i}"
        following[kind, stage] = i + 1
        tokens.append(token)
    return _fold(tokens)


def _fold(tokens: Sequence[str]) -> str:
    """Write repeated blocks once, with a count: at each place the block that saves most."""
    text, start = "", 0
    while start < len(tokens):
        block, times = 1, 1
        for size in range(1, min(64, (len(tokens) - start) // 2) + 1):
            if tokens[start + size] != tokens[start]:
                continue
            count = _repeats(tokens, start, size)
            if count > 1 and size * (count - 1) > block * (times - 1):
                block, times = size, count
        inside = list(tokens[start : start + block])
        if times == 1:
            text += inside[0]
        elif block == 1:
            text += f"{inside[0]}{times}"
        else:
            text += f"({_fold(inside)}){times}"
        start += block * times
    return text


def _repeats(tokens: Sequence[str], start: int, size: int) -> int:
    block, count = tokens[start : start + size], 1
    if any("." in token for token in block):  # a written-out microbatch comes once
        return 1
    while tokens[start + count * size : start + (count + 1) * size] == block:
        count += 1
    return count


def _decode_rank(order: str, stages: Sequence[int]) -> list[Action]:
    following: dict[tuple[str, int], int] = {}
    actions: list[Action] = []

    def run(kind: str, stage: int, microbatch: str | None) -> None:
        i = following.get((kind, stage), 0) if microbatch is None else int(microbatch)
        following[kind, stage] = i + 1
        actions.append(Action(kind, stage, i))

    blocks: list[list[Callable[[], None]]] = [[]]
    position = 0
    while position < len(order):
        match = _TOKEN.match(order, position)
        if match is None or (match[1] and len(blocks) == 1):
            raise ValueError(f"order {order!r} cannot be read at {order[position:]!r}")
        position = match.end()
        if match[2]:
            chunk = ord(match[3]) - ord("a") + 1 if match[3] else 0
            if chunk >= len(stages):
                raise ValueError(f"order {order!r} names chunk {chunk} of {len(stages)}")
            step = _step(run, match[2], stages[chunk], match[4])
            blocks[-1] += [step] * int(match[5] or 1)
        elif match[1]:
            inside = blocks.pop()
            blocks[-1] += inside * int(match[1])
        else:
            blocks.append([])
    if len(blocks) != 1:
        raise ValueError(f"order {order!r} has an open bracket")
    for do in blocks[0]:
        do()
    return actions


def _step(run: Callable[[str, int, str | None], None], kind: str, stage: int,
          microbatch: str | None) -> Callable[[], None]:
    return lambda: run(kind, stage, microbatch)
