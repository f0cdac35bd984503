"""Where the lanes of a warp meet: syncwarp, shuffles, votes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from distlearn.kernels.names import MEETINGS, not_a_member
from distlearn.kernels.oracle.tiles import collective

if TYPE_CHECKING:
    from distlearn.kernels.oracle.block import Block
    from distlearn.kernels.oracle.thread import Meeting


def exchange(block: Block, met: dict[int, Meeting]) -> dict[int, Any]:
    """What lanes of one warp get that wait at one place.

    Lanes that a shuffle asks but that do not take part give back the asking lane's own value.
    """
    lanes, what = list(met), next(iter(met.values())).what
    arguments = {lane: meeting.arguments for lane, meeting in met.items()}
    if what in MEETINGS and any(arguments.values()):
        for lane, (members, *_) in arguments.items():
            if not int(members) >> lane % 32 & 1:
                error = not_a_member(what, int(members), lane % 32, met[lane].line)
                error.thread = lane
                raise error
    if what == "syncwarp":
        block.syncwarps += 1
        for lane in lanes:
            block.threads[lane].joined.append(block.syncwarps)
        return dict.fromkeys(lanes)
    if what.startswith("wmma."):
        return dict.fromkeys(lanes, collective(block, met))
    if what.startswith("match"):
        return _match(what, lanes, arguments)
    return (_shuffle if what.startswith("shfl") else _vote)(what, lanes, arguments)


def _shuffle(what: str, lanes: list[int], arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
    answers = {}
    for lane in lanes:
        own, offset = arguments[lane][1], int(arguments[lane][2]) % 32
        at = lane % 32
        source = {"shfl_sync": offset, "shfl_up_sync": at - offset,
                  "shfl_down_sync": at + offset, "shfl_xor_sync": at ^ offset}[what]
        asked = lane - at + source
        answers[lane] = arguments[asked][1] if 0 <= source < 32 and asked in arguments else own
    return answers


def _vote(what: str, lanes: list[int], arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
    truths = {lane: what == "activemask" or bool(arguments[lane][1]) for lane in lanes}
    if what in ("ballot_sync", "activemask"):
        result: Any = _mask(lane for lane, truth in truths.items() if truth)
        result = result if what == "activemask" else signed(result)
    elif what == "all_sync":
        result = all(truths.values())
    elif what == "any_sync":
        result = any(truths.values())
    else:  # eq_sync
        result = len(set(truths.values())) == 1
    return dict.fromkeys(lanes, result)


def _match(what: str, lanes: list[int], arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
    """The lanes with the same value, or all lanes if they all have it."""
    masks = {lane: signed(_mask(other for other in lanes
                                if arguments[other][1] == arguments[lane][1])) for lane in lanes}
    if what == "match_any_sync":
        return masks
    alike = masks[lanes[0]] == signed(_mask(lanes))
    return {lane: (masks[lane] if alike else 0, alike) for lane in lanes}


def _mask(lanes: Iterable[int]) -> int:
    return sum(1 << lane % 32 for lane in lanes)


def signed(mask: int) -> int:
    """A mask of lanes as numba's int32 has it: lane 31 is the sign."""
    return mask - (1 << 32) if mask >> 31 else mask
