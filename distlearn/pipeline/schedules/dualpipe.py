"""DualPipe: feed a bidirectional pipeline from both ends, and merge forwards with backwards.

DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, section 3.2.1 and table 2. Every
rank holds two stages, r of the copy that runs down and p-1-r of the copy that runs up, so in the
middle there is always a forward of one and a backward of the other to run as one pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from distlearn.pipeline.action import Action, Pair
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


def order(p: int, m: int) -> Schedule:
    """Eight phases on each rank, mirrored between the two halves of the ranks.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches of both directions together: both even, m >= 2p - 2. (The
        authors ask m >= 2p; the phases are complete from 2p - 2 on.)
    """
    if p % 2 or m % 2 or m < 2 * p - 2:
        raise ValueError(f"dualpipe needs p and m even and m >= 2p - 2; got p={p} m={m}")
    ranks = []
    for r in range(p):
        near, far = (0, 1) if r < p // 2 else (1, 0)  # near: the copy whose start is closer
        stages, starts = (r, p - 1 - r), (0, m // 2)
        position = min(r, p - 1 - r)
        ranks.append(tuple(phases(
            p // 2, position, rounds=m // 2 - p + position + 1,
            stages=(stages[near], stages[far]), starts=(starts[near], starts[far]))))
    down = tuple(range(p))
    return Schedule("dualpipe", p, m, 1, placement=down, ranks=tuple(ranks),
                    copies=(down, down[::-1]), direction=(0,) * (m // 2) + (1,) * (m // 2))


def phases(depth: int, position: int, rounds: int, stages: tuple[int, int],
           starts: tuple[int, int]) -> Iterator[Action]:
    """One rank's order; 0 is the stage whose input is ``position`` hops away, 1 the other one.

    ``depth - 1 - position`` is the distance to the middle (dualpipe) or to the turn (dualpipe_v),
    ``starts`` the first microbatch of either stage.
    """
    counters = {(kind, side): count(starts[side]) for kind in "FB" for side in (0, 1)}
    held: list[Action] = []  # weight gradients put off, first in first out
    outer, inner = depth - 1 - position, position + 1

    def do(kind: str, side: int) -> Action:
        i = next(counters["F" if kind == "F" else "B", side])
        if kind == "I":
            held.append(Action("W", stages[side], i))
        return Action(kind, stages[side], i)

    for _ in range(2 * outer):                               # 1: F0
        yield do("F", 0)
    for _ in range(inner):                                   # 2: F0 F1
        yield do("F", 0)
        yield do("F", 1)
    for _ in range(outer):                                   # 3: I1 W1 F1
        yield do("I", 1)
        yield held.pop(0)
        yield do("F", 1)
    for k in range(rounds):                                  # 4: F0&B1 F1&B0
        if k == 0 and outer == 0:  # next to the turn F0 would wait for B1's rank: not merged
            yield do("F", 0)
            yield do("B", 1)
        else:
            yield Pair(do("F", 0), do("B", 1))
        yield Pair(do("F", 1), do("B", 0))
    for _ in range(outer):                                   # 5: B1 F1&B0
        yield do("B", 1)
        yield Pair(do("F", 1), do("B", 0))
    for k in range(2 * inner):                               # 6: B1 B0, the later half split
        yield do("B" if k < inner else "I", 1 - k % 2)
    for _ in range(outer):                                   # 7: W I0
        yield held.pop(0)
        yield do("I", 0)
    yield from held                                          # 8: W


def bubble_time(p: int, m: int, costs: Costs) -> float:
    """Idle time of the rank that idles most, ``(p/2-1)(F&B + B - 3W)``; F&B: a merged pair's time.

    For F = I = W, and a pair that takes between max(F, B) and F + B; m >= 2p. The outer ranks do
    fewer pairs and more single passes, so they idle less if a pair saves time.
    """
    return (p // 2 - 1) * pair_bubble("dualpipe", costs, m >= 2 * p)


def pair_bubble(name: str, costs: Costs, enough: bool) -> float:
    """``F&B + B - 3W``, where it holds."""
    F, B, I, W = costs.uniform()
    pair = F + B if costs.pair is None else costs.pair
    if not isinstance(pair, float | int) or not (enough and F == I == W and B <= pair <= F + B):
        raise ValueError(f"{name}'s bubble formula needs m >= 2p, F = I = W and a pair between "
                         f"B and F + B; got F={F} I={I} W={W} pair={pair}")
    return pair + B - 3 * W


def peak_activations(p: int, m: int, r: int) -> int:
    """Stage activations kept by rank r, over both its stages: ``p + 1``, for m >= 2p."""
    if m < 2 * p:
        raise ValueError(f"dualpipe's peak formula needs m >= 2p; got p={p} m={m}")
    return p + 1
