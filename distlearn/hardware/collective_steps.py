"""The steps of a collective, each with its largest message and whether that crosses nodes.

Parts are taken as equal; the root is rank 0. With `distlearn.hardware.link` this gives the time.
"""

from __future__ import annotations

from collections.abc import Iterable

Step = tuple[float, bool]
"""Bytes of the largest message, and whether a message of the step goes to another node."""


def steps(op: str, algorithm: str, p: int, n: float, k: int) -> list[Step]:
    """The steps of one collective.

    Parameters
    ----------
    op, algorithm : str
        As in `distlearn.hardware.collective_bytes`, the algorithm by name.
    p : int
        Ranks.
    n : float
        Bytes in all (all_to_all: of each rank).
    k : int
        Consecutive ranks that share a node.
    """
    if op == "barrier":
        return [(0.0, p > k)] * (p - 1).bit_length()
    if algorithm == "ring":
        once = [(n / p, p > k)] * (p - 1)
        return {
            "all_reduce": once + once,
            "broadcast": _tree("scatter", p, n, k) + once,
            "reduce": once + _tree("gather", p, n, k),
        }.get(op, once)
    if algorithm == "tree":
        return _tree(op, p, n, k)
    if algorithm == "hierarchical":
        return _hierarchical(op, p, n, k)
    if algorithm in ("halving_doubling", "recursive_doubling"):
        return _exchanges(op, algorithm, p, n, k)
    # direct and pairwise: one part at a time
    return [(n / p, p > k if op == "all_to_all" else i >= k) for i in range(1, p)]


def _far(pairs: Iterable[tuple[int, int]], k: int) -> bool:
    return any(a // k != b // k for a, b in pairs)


def _tree(op: str, p: int, n: float, k: int) -> list[Step]:
    """From the root outwards; the way back has the same steps in the other order."""
    masks = [1 << i for i in reversed(range((p - 1).bit_length()))]
    far = [_far(((v, v + d) for v in range(0, p - d, 2 * d)), k) for d in masks]
    whole = [(n, crosses) for crosses in far]
    parts = [(min(d, p - d) * n / p, crosses) for d, crosses in zip(masks, far, strict=True)]
    return {
        "broadcast": whole, "reduce": whole, "all_reduce": whole + whole,
        "scatter": parts, "gather": parts,
        "all_gather": parts + whole, "reduce_scatter": whole + parts,
    }[op]


def _exchanges(op: str, algorithm: str, p: int, n: float, k: int) -> list[Step]:
    """Partners at distance 1, 2, 4, ...; what folds in before, and goes back after."""
    q = 1 << (p.bit_length() - 1)
    extra = p - q
    core = [*range(0, 2 * extra, 2), *range(2 * extra, p)]
    far = {d: _far(((core[j], core[j ^ d]) for j in range(q)), k)
           for d in (1 << i for i in range(q.bit_length() - 1))}
    fold_far = _far(((i, i + 1) for i in range(0, 2 * extra, 2)), k)

    def fold(size: float) -> list[Step]:
        return [(size, fold_far)] if extra else []

    if algorithm == "recursive_doubling":
        return fold(n) + [(n, crosses) for crosses in far.values()] + fold(n)
    if op == "all_reduce":
        doubling = [(d * n / q, crosses) for d, crosses in far.items()]
        return fold(n) + doubling[::-1] + doubling + fold(n)
    # a rank that stands for a folded one too has two parts
    doubling = [((d + min(d, extra)) * n / p, crosses) for d, crosses in far.items()]
    if op == "all_gather":
        return fold(n / p) + doubling + fold(n - n / p)
    return fold(n) + doubling[::-1] + fold(n / p)


def _hierarchical(op: str, p: int, n: float, k: int) -> list[Step]:
    """Steps within nodes first, then between them."""
    N = -(-p // k)
    if p % k:
        if op != "all_reduce":
            raise ValueError(f"group = {p} ranks do not fill nodes of {k}; only all_reduce is "
                             "hierarchical on unequal nodes")
        inside = [(n, False)] * (k - 1).bit_length()
        return inside + [(n / N, True)] * (2 * (N - 1)) + inside
    inside, across = [(n / k, False)] * (k - 1), [(n / p, True)] * (N - 1)
    return {
        "all_reduce": inside + across + across + inside,
        "reduce_scatter": inside + across,
        "all_gather": across + inside,
    }[op]
