"""Chimera: pipelines in opposite directions fill each other's bubbles.

Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional
Pipelines", SC 2021, sections 3.1 (two pipelines), 3.5 (more microbatches: concatenation, forward
doubling, backward halving) and 3.6 (more than two pipelines). Every rank holds one stage of each
pipeline, each with its own copy of the weights; the copies' gradients are summed at the end.
"""

from __future__ import annotations

from distlearn.pipeline.action import Action, Slice
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule

Slot = tuple[int, Action]


def order(p: int, m: int, directions: int = 2, method: str = "direct") -> Schedule:
    """Place every action on a grid of slots where no two ever meet; read the grid by rank.

    In a unit of p microbatches, p/directions per pipe, the j-th of a pipe is forward on stage s in
    slot s + 2j, and backward in slot 2p-1-s + 2j. Pipes of opposite direction use slots of opposite
    parity on a rank. Units follow each other 2p slots apart.

    Parameters
    ----------
    p, m : int
        Pipeline ranks (even) and microbatches (even).
    directions : int
        Pipes, half of them in each direction: an even divisor of p. (Half of it has to divide p;
        with very few microbatches that is enough.)
    method : {"direct", "forward_doubling", "backward_halving"}
        ``direct``: slots for F and B alike. ``forward_doubling``: a forward slot holds two
        microbatches, a backward slot one, which fits B = 2F; units of 2p microbatches 3p slots
        apart, m even. ``backward_halving``: the same with the two halves of one microbatch, as
        slices (of the batch, not of the sequence). Both for two directions.
    """
    _check(p, m, directions, method)
    doubled = method != "direct"
    per_pipe = p // directions * (2 if method == "forward_doubling" else 1)
    copies = _copies(p, directions)
    grid: list[list[Slot]] = [[] for _ in range(p)]
    direction: list[int] = []
    for unit in range(-(-m // (per_pipe * directions))):
        start = unit * (3 if doubled else 2) * p
        counts = _fill(m - len(direction), per_pipe, directions)
        for pipe, n in enumerate(counts):
            first = len(direction)
            direction += [pipe] * n
            for j in range(n):
                for slot, action in _microbatch(p, first, j, method):
                    grid[copies[pipe][action.stage]].append((start + slot, action))
    if directions > 2 and any(len({slot for slot, _ in row}) < len(row) for row in grid):
        raise ValueError("chimera needs p divisible by the number of directions, or so few "
                         f"microbatches that no two pipes meet; got p={p} m={m} "
                         f"directions={directions}")
    ranks = tuple(tuple(a for _, a in sorted(row, key=lambda x: x[0])) for row in grid)
    return Schedule("chimera", p, m, 1, placement=copies[0], ranks=ranks, copies=copies,
                    direction=tuple(direction), slices=2 if method == "backward_halving" else 1)


def _check(p: int, m: int, directions: int, method: str) -> None:
    if method not in ("direct", "forward_doubling", "backward_halving"):
        raise ValueError("chimera needs method 'direct', 'forward_doubling' or "
                         f"'backward_halving'; got method={method!r}")
    if p % 2 or m % 2:
        raise ValueError(f"chimera needs p and m even; got p={p} m={m}")
    if directions < 2 or directions % 2 or directions > p or p % (directions // 2):
        raise ValueError("chimera needs an even number of directions whose half divides p; "
                         f"got p={p} directions={directions}")
    if method != "direct" and directions != 2:
        raise ValueError(f"chimera's {method} needs two directions; got directions={directions}")


def _copies(p: int, directions: int) -> tuple[tuple[int, ...], ...]:
    """Stage -> rank of each pipe: those that run down, evenly shifted, then their mirrors."""
    half = directions // 2
    down = [tuple((s + k * p // half) % p for s in range(p)) for k in range(half)]
    return (*down, *(tuple(p - 1 - r for r in pipe) for pipe in down))


def _fill(left: int, per_pipe: int, directions: int) -> list[int]:
    """How many of the microbatches left each pipe takes: pairs of opposite pipes in turn."""
    counts = [0] * directions
    for k in range(directions):
        pipe = k // 2 + (k % 2) * (directions // 2)
        counts[pipe] = min(per_pipe, left)
        left -= counts[pipe]
    return counts


def _microbatch(p: int, first: int, j: int, method: str) -> list[Slot]:
    """The slots of the j-th microbatch of a pipe in its unit."""
    slots: list[Slot] = []
    for s in range(p):
        back = 2 * p - 1 - s
        if method == "direct":
            slots += [(s + 2 * j, Action("F", s, first + j)),
                      (back + 2 * j, Action("B", s, first + j))]
        elif method == "forward_doubling":
            slots += [(s + 2 * (j // 2), Action("F", s, first + j)),
                      (back + 2 * j, Action("B", s, first + j))]
        else:
            slots += [(s + 2 * j, Slice("F", s, first + j, 0)),
                      (s + 2 * j, Slice("F", s, first + j, 1)),
                      (back + 4 * j, Slice("B", s, first + j, 1)),
                      (back + 4 * j + 2, Slice("B", s, first + j, 0))]
    return slots


def bubble_time(p: int, m: int, costs: Costs, directions: int = 2, method: str = "direct"
                ) -> float:
    """Idle time of a rank, ``(2p/directions - 2) (B + (m/p - 1)(B - F))``.

    For p dividing m, and B >= F. With F = B that is the paper's D - 2 slots, or D/2 - 2 for four
    directions. With B = 2F every further unit adds to it; doubling forwards or halving backwards
    makes it ``(p/2 - 1)(F + B)``, once, for full units and B = 2F.
    """
    _check(p, m, directions, method)
    F, B, _, _ = costs.uniform()
    full = p * (2 if method == "forward_doubling" else 1)
    if m % full or p % directions:
        raise ValueError(f"chimera's bubble formula needs m % {full} == 0 and p % directions == 0; "
                         f"got p={p} m={m} directions={directions}")
    if method == "direct":
        if B < F:
            raise ValueError(f"chimera's bubble formula needs B >= F; got F={F} B={B}")
        return (2 * p // directions - 2) * (B + (m // p - 1) * (B - F))
    if B != 2 * F:
        raise ValueError(f"chimera's {method} formula needs B = 2F; got F={F} B={B}")
    return (p // 2 - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, directions: int = 2, method: str = "direct") -> int:
    """Stage activations kept by rank r, ``p - q/2 + 1 + min(r % q, q-1 - r % q)``.

    Here q = 2p/directions. With two directions from p/2 + 1 on the outer ranks to p in the middle.
    Doubling and halving (in half microbatches) add p. For full units, p dividing m (2p for
    doubling).
    """
    _check(p, m, directions, method)
    full = p * (2 if method == "forward_doubling" else 1)
    if m % full or p % directions:
        raise ValueError(f"chimera's peak formula needs m % {full} == 0 and p % directions == 0; "
                         f"got p={p} m={m} directions={directions}")
    q = 2 * p // directions
    doubled = 0 if method == "direct" else p
    return p - q // 2 + 1 + min(r % q, q - 1 - r % q) + doubled
