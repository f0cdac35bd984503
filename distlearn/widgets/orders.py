"""Schedules as short strings, so that a page carries every order and computes only times.

An order of one rank reads, for 1F1B with p=4, m=8, rank 0: ``F4(BF)4B4``. In words::

    order := item*            item  := action count? | "(" order ")" count
    action := part ("&" part)?          two parts: a merged pair
    part   := KIND chunk? ("." microbatch)?

KIND is a capital letter. The chunk says which of its rank's stages, in ascending order, the action
works on: nothing for the first, ``a`` for the second, ``b`` for the third. The microbatch is the
one after the last of that kind and chunk, from 0 on, unless it is written out. So any schedule can
be written, and the usual ones are short. With several copies of the model a rank's stages are those
of all copies; with slices, slice k of microbatch i counts as microbatch ``i * slices + k``.
``simulate.js`` reads the same strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from distlearn.pipeline import Action, Pair, Schedule, Slice, build
from distlearn.widgets.variants import options_of

_BEYOND = ("this page has the orders of {} for p <= {} and m <= {} only; "
           "in JupyterLab the explorer has any sizes")
_TOKEN = re.compile(r"\(|\)(\d+)|([A-Z])([a-z]?)(?:\.(\d+))?"
                    r"(?:&([A-Z])([a-z]?)(?:\.(\d+))?)?(\d*)")


def encode(schedule: Schedule) -> list[str]:
    """The order of every rank as a string.

    Examples
    --------
    >>> encode(build("1f1b", p=4, m=8))[:2]
    ['F4(BF)4B4', 'F3(BF)5B3']
    """
    stages = stages_of_ranks(schedule.placements, schedule.p)
    if max(map(len, stages)) > 27:
        raise ValueError(f"an order string has names for 27 chunks per rank; got v={schedule.v}")
    return [_encode_rank(actions, stages[rank], schedule.slices)
            for rank, actions in enumerate(schedule.ranks)]


def decode(orders: Sequence[str], *placements: Sequence[int], slices: int = 1
           ) -> list[list[Action]]:
    """The actions of every rank, from what `encode` wrote; one placement per copy of the model.

    Raises
    ------
    ValueError
        Naming the order that cannot be read.
    """
    stages = stages_of_ranks(placements, len(orders))
    return [_decode_rank(order, stages[rank], slices) for rank, order in enumerate(orders)]


def stages_of_ranks(placements: Sequence[Sequence[int]], p: int) -> list[list[int]]:
    """For each rank, the stages it holds in any copy of the model, ascending."""
    return [[stage for stage, homes in enumerate(zip(*placements, strict=True)) if rank in homes]
            for rank in range(p)]


def catalogue(names: Sequence[str], ps: Sequence[int], ms: Sequence[int],
              vs: Mapping[str, Sequence[int]],
              ends: Mapping[str, tuple[int, int]] | None = None) -> dict[str, Any]:
    """Every order of the named schedules over ranges of sizes, each string once.

    Parameters
    ----------
    names : sequence of str
        Schedules, or keys with an option, such as ``dapple policy=B``. Orders with ``mem_limit``
        beyond ``ends`` are left out.
    ps, ms : sequence of int
        Sizes to cover.
    vs : mapping of str to sequence of int
        For each name, the stages per rank to cover.
    ends : mapping of str to (int, int), optional
        For schedules with many or slow orders: the last p and m to cover.

    Returns
    -------
    dict
        ``orders``: name -> v -> p -> m -> indices into ``strings``, one per rank (and one more for
        the copy through which each microbatch goes, where there are copies), or one index into
        ``errors`` if `build` refuses the sizes. ``placements``: name -> v -> p -> ranks;
        ``copies``: name -> v -> p -> ranks of each copy.
    """
    strings: dict[str, int] = {}
    errors: dict[str, int] = {}
    orders: dict[str, Any] = {}
    placements: dict[str, Any] = {}
    copies: dict[str, Any] = {}
    for name in names:
        schedule_name, _, option = name.partition(" ")
        options = options_of(option)
        orders[name], placements[name] = {}, {}
        for v in vs[name]:
            of_v: dict[int, Any] = {}
            orders[name][v] = of_v
            placed = placements[name][v] = {}
            for p in ps:
                of_v[p] = {}
                for m in ms:
                    last_p, last_m = (ends or {}).get(name, (p, m))
                    beyond = p > last_p or m > last_m
                    if beyond and "mem_limit" in options:
                        continue
                    try:
                        if beyond:
                            raise ValueError(_BEYOND.format(name, last_p, last_m))
                        schedule = build(schedule_name, p=p, m=m, v=v, **options)
                    except ValueError as error:
                        of_v[p][m] = errors.setdefault(str(error), len(errors))
                        continue
                    placed[p] = schedule.placement
                    texts = encode(schedule)
                    if schedule.copies:
                        copies.setdefault(name, {}).setdefault(v, {})[p] = schedule.copies
                        texts.append("".join(map(str, schedule.direction)))
                    of_v[p][m] = [strings.setdefault(text, len(strings)) for text in texts]
    return {"strings": list(strings), "errors": list(errors), "orders": orders,
            "placements": placements, "copies": copies}


def _encode_rank(actions: Sequence[Action], stages: Sequence[int], slices: int) -> str:
    following: dict[str, int] = {}
    chunks = {stage: chr(ord("a") + k - 1) if k else "" for k, stage in enumerate(stages)}

    def word(part: Action) -> str:
        text = part[0] + chunks[part[1]]
        i = part[2] * slices + (part.slice or 0) if slices > 1 else part[2]
        expected = following.get(text, 0)
        following[text] = i + 1
        return text if i == expected else f"{text}.{i}"

    return _fold(tuple("&".join(map(word, action.parts)) if len(action.parts) > 1 else word(action)
                       for action in actions))


@lru_cache(8192)  # ranks and sizes have much of their orders in common
def _fold(tokens: tuple[str, ...]) -> str:
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
        inside = tokens[start : start + block]
        if times == 1:
            text += inside[0]
        elif block == 1:
            text += f"{inside[0]}{times}"
        else:
            text += f"({_fold(inside)}){times}"
        start += block * times
    return text


def _repeats(tokens: tuple[str, ...], start: int, size: int) -> int:
    block, count = tokens[start : start + size], 1
    if "." in "".join(block):  # a written-out microbatch comes once
        return 1
    while tokens[start + count * size : start + (count + 1) * size] == block:
        count += 1
    return count


def _decode_rank(order: str, stages: Sequence[int], slices: int) -> list[Action]:
    following: dict[tuple[str, int], int] = {}

    def part(kind: str, chunk: str, microbatch: str | None) -> Action:
        index = ord(chunk) - ord("a") + 1 if chunk else 0
        if index >= len(stages):
            raise ValueError(f"order {order!r} names chunk {index} of {len(stages)}")
        stage = stages[index]
        i = following.get((kind, stage), 0) if microbatch is None else int(microbatch)
        following[kind, stage] = i + 1
        return Action(kind, stage, i) if slices == 1 else Slice(
            kind, stage, i // slices, i % slices)

    blocks: list[list[re.Match[str]]] = [[]]
    position = 0
    while position < len(order):
        match = _TOKEN.match(order, position)
        if match is None or (match[1] and len(blocks) == 1):
            raise ValueError(f"order {order!r} cannot be read at {order[position:]!r}")
        position = match.end()
        if match[2]:
            blocks[-1] += [match] * int(match[8] or 1)
        elif match[1]:
            inside = blocks.pop()
            blocks[-1] += inside * int(match[1])
        else:
            blocks.append([])
    if len(blocks) != 1:
        raise ValueError(f"order {order!r} has an open bracket")
    return [Pair(part(*match.group(2, 3, 4)), part(*match.group(5, 6, 7))) if match[5]
            else part(*match.group(2, 3, 4)) for match in blocks[0]]
