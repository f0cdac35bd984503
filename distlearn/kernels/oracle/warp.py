"""Where the lanes of a warp meet: syncwarp, shuffles, votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distlearn.kernels.errors import KernelError
from distlearn.kernels.oracle.tiles import collective

if TYPE_CHECKING:
    from distlearn.kernels.oracle.block import Block
    from distlearn.kernels.oracle.thread import Meeting


def exchange(block: Block, met: dict[int, Meeting]) -> dict[int, Any]:
    """What each waiting lane gets; the earliest meeting goes on, later ones wait for their own.

    Lanes that a shuffle asks but that do not take part give back the asking lane's own value.
    """
    if not met:
        return {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for lane, meeting in met.items():
        groups.setdefault(meeting.key, []).append(lane)
    answers: dict[int, Any] = {}
    for lanes in groups.values():
        what, arguments = met[lanes[0]].what, {i: met[i].arguments for i in lanes}
        if what == "syncwarp":
            for lane in lanes:
                block.threads[lane].epoch += 1
            answers.update(dict.fromkeys(lanes))
        elif what.startswith("wmma."):
            answers.update(dict.fromkeys(lanes, collective(block, {i: met[i] for i in lanes})))
        elif what.startswith("shfl"):
            answers.update(_shuffle(what, lanes, arguments))
        else:
            answers.update(_vote(what, lanes, arguments))
    return answers


def _shuffle(what: str, lanes: list[int], arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
    answers = {}
    for lane in lanes:
        own, offset = arguments[lane][1], int(arguments[lane][2])
        at = lane % 32
        source = {"shfl_sync": offset % 32, "shfl_up_sync": at - offset,
                  "shfl_down_sync": at + offset, "shfl_xor_sync": at ^ offset}[what]
        asked = lane - at + source
        answers[lane] = arguments[asked][1] if 0 <= source < 32 and asked in arguments else own
    return answers


def _vote(what: str, lanes: list[int], arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
    truths = {lane: bool(arguments[lane][1]) for lane in lanes}
    if what == "ballot_sync":
        result: Any = sum(1 << lane % 32 for lane, truth in truths.items() if truth)
    elif what == "all_sync":
        result = all(truths.values())
    elif what == "any_sync":
        result = any(truths.values())
    else:
        raise KernelError("unsupported", f"cuda.{what} is not modelled")
    return dict.fromkeys(lanes, result)
