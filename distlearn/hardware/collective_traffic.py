"""Closed formulas: the messages and bytes that each rank sends in a collective.

To the byte, for parts of unequal size and for any number of ranks. The algorithms are described in
Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Case:
    """A collective, and the rank whose messages are counted.

    Attributes
    ----------
    p, rank, root : int
    n : int
        Bytes in all.
    parts : tuple of int
        Bytes of the part that belongs to each rank.
    chunks : function
        ``chunks(k)``: the bytes of each of k chunks, where the algorithm cuts the data evenly.
    per_node : int
        Ranks of a node.
    """

    p: int
    rank: int
    root: int
    n: int
    parts: tuple[int, ...]
    chunks: Callable[[int], tuple[int, ...]]
    per_node: int

    @property
    def position(self) -> int:
        """Place in the tree, counted from the root."""
        return (self.rank - self.root) % self.p

    @property
    def right(self) -> int:
        """The next rank of the ring."""
        return (self.rank + 1) % self.p


Cost = tuple[int, int]  # messages, bytes


def _plus(*costs: Cost) -> Cost:
    return sum(c[0] for c in costs), sum(c[1] for c in costs)


# -- ring: everything but one part goes to the right --------------------------------------------

def _ring_reduce_scatter(x: Case) -> Cost:
    return x.p - 1, x.n - x.parts[x.rank]


def _ring_all_gather(x: Case) -> Cost:
    return x.p - 1, x.n - x.parts[x.right]


def _ring_all_reduce(x: Case) -> Cost:
    return _plus(_ring_reduce_scatter(x), _ring_all_gather(x))


# -- binomial tree: a position has one child per bit below its lowest set one -------------------

def _subtree(v: int, p: int) -> int:
    """Size of the subtree under position v."""
    return min(v & -v, p - v) if v else p


def _children(v: int, p: int) -> int:
    return (_subtree(v, p) - 1).bit_length()


def _held(x: Case) -> int:
    """Bytes of the parts of a rank's whole subtree."""
    v = x.position
    return sum(x.parts[(u + x.root) % x.p] for u in range(v, v + _subtree(v, x.p)))


def _tree_broadcast(x: Case) -> Cost:
    children = _children(x.position, x.p)
    return children, children * x.n


def _tree_reduce(x: Case) -> Cost:
    return (1, x.n) if x.position else (0, 0)


def _tree_gather(x: Case) -> Cost:
    return (1, _held(x)) if x.position else (0, 0)


def _tree_scatter(x: Case) -> Cost:
    return _children(x.position, x.p), _held(x) - x.parts[x.rank]


# -- halving and doubling: q = 2^k ranks exchange, the p - q others hand theirs over ------------

def _fold(x: Case) -> tuple[int, int, int | None]:
    """k, the extra ranks, and this one's place j among those that exchange (None: it sits out)."""
    k = x.p.bit_length() - 1
    extra = x.p - (1 << k)
    if x.rank >= 2 * extra:
        return k, extra, x.rank - extra
    return k, extra, x.rank // 2 if x.rank % 2 == 0 else None


def _doubled(blocks: Sequence[int], j: int, k: int) -> int:
    """Bytes sent when what one has doubles k times: the aligned runs of 1, 2, 4, ... blocks."""
    ends = (0, *accumulate(blocks))
    starts = ((j >> i << i, 1 << i) for i in range(k))
    return sum(ends[start + length] - ends[start] for start, length in starts)


def _core_blocks(x: Case, extra: int) -> list[int]:
    pairs = [x.parts[2 * j] + x.parts[2 * j + 1] for j in range(extra)]
    return pairs + list(x.parts[2 * extra:])


def _halving_reduce_scatter(x: Case) -> Cost:
    k, extra, j = _fold(x)
    if j is None:
        return 1, x.n
    own = _core_blocks(x, extra)[j]
    back = x.parts[x.rank + 1] if j < extra else 0
    return k + (j < extra), x.n - own + back


def _doubling_all_gather(x: Case) -> Cost:
    k, extra, j = _fold(x)
    if j is None:
        return 1, x.parts[x.rank]
    unfold = x.n - x.parts[x.rank + 1] if j < extra else 0
    return k + (j < extra), _doubled(_core_blocks(x, extra), j, k) + unfold


def _halving_doubling_all_reduce(x: Case) -> Cost:
    k, extra, j = _fold(x)
    if j is None:
        return 1, x.n
    blocks = x.chunks(1 << k)
    unfold = x.n if j < extra else 0
    return 2 * k + (j < extra), x.n - blocks[j] + _doubled(blocks, j, k) + unfold


def _recursive_doubling(x: Case) -> Cost:
    k, extra, j = _fold(x)
    sends = 1 if j is None else k + (j < extra)
    return sends, sends * x.n


# -- hierarchical: N nodes of k ranks -----------------------------------------------------------

def _hierarchical_all_reduce(x: Case) -> Cost:
    k, N = x.per_node, -(-x.p // x.per_node)
    node, l = divmod(x.rank, k)
    if x.p % k:
        return _by_leaders(x, min(k, x.p - node * k), N)
    chunks = x.chunks(x.p)
    part = [sum(chunks[i * N:(i + 1) * N]) for i in range(k)]
    inside = (x.n - part[l]) + (x.n - part[(l + 1) % k])
    across = 2 * part[l] - chunks[l * N + node] - chunks[l * N + (node + 1) % N]
    return 2 * (k - 1) + 2 * (N - 1), inside + across


def _by_leaders(x: Case, size: int, N: int) -> Cost:
    """Unequal nodes: a tree in the node, a ring among the first ranks of the nodes."""
    node, l = divmod(x.rank, x.per_node)
    children = _children(l, size)
    inside = (children + (l > 0), (children + (l > 0)) * x.n)
    chunks = x.chunks(N)
    across = (2 * (N - 1), 2 * x.n - chunks[node] - chunks[(node + 1) % N])
    return _plus(inside, across) if l == 0 else inside


def _hierarchical_reduce_scatter(x: Case) -> Cost:
    k, N = _even_nodes(x)
    return k - 1 + N - 1, x.n - x.parts[x.rank]


def _hierarchical_all_gather(x: Case) -> Cost:
    k, N = _even_nodes(x)
    node, l = divmod(x.rank, k)
    part = [sum(x.parts[i::k]) for i in range(k)]
    return k - 1 + N - 1, (part[l] - x.parts[(node + 1) % N * k + l]) + (x.n - part[(l + 1) % k])


def _even_nodes(x: Case) -> tuple[int, int]:
    if x.p % x.per_node:
        raise ValueError(f"group = {x.p} ranks do not fill nodes of {x.per_node}; only all_reduce "
                         "is hierarchical on unequal nodes")
    return x.per_node, x.p // x.per_node


# -- the rest -----------------------------------------------------------------------------------

def _direct_gather(x: Case) -> Cost:
    return (1, x.parts[x.rank]) if x.position else (0, 0)


def _direct_scatter(x: Case) -> Cost:
    return (0, 0) if x.position else (x.p - 1, x.n - x.parts[x.rank])


def _pairwise(x: Case) -> Cost:
    return x.p - 1, x.n - x.parts[x.rank]


def _dissemination(x: Case) -> Cost:
    return (x.p - 1).bit_length(), 0


# all_gather and reduce_scatter along a tree are pairs of trees with root 0
TRAFFIC: dict[str, dict[str, Callable[[Case], Cost]]] = {
    "all_reduce": {
        "ring": _ring_all_reduce,
        "recursive_doubling": _recursive_doubling,
        "halving_doubling": _halving_doubling_all_reduce,
        "tree": lambda x: _plus(_tree_reduce(x), _tree_broadcast(x)),
        "hierarchical": _hierarchical_all_reduce,
    },
    "reduce_scatter": {
        "ring": _ring_reduce_scatter,
        "halving_doubling": _halving_reduce_scatter,
        "tree": lambda x: _plus(_tree_reduce(x), _tree_scatter(x)),
        "hierarchical": _hierarchical_reduce_scatter,
    },
    "all_gather": {
        "ring": _ring_all_gather,
        "halving_doubling": _doubling_all_gather,
        "tree": lambda x: _plus(_tree_gather(x), _tree_broadcast(x)),
        "hierarchical": _hierarchical_all_gather,
    },
    "broadcast": {
        "tree": _tree_broadcast,
        "ring": lambda x: _plus(_tree_scatter(x), _ring_all_gather(x)),
    },
    "reduce": {
        "tree": _tree_reduce,
        "ring": lambda x: _plus(_ring_reduce_scatter(x), _tree_gather(x)),
    },
    "gather": {"tree": _tree_gather, "direct": _direct_gather},
    "scatter": {"tree": _tree_scatter, "direct": _direct_scatter},
    "all_to_all": {"pairwise": _pairwise},
    "barrier": {"dissemination": _dissemination},
}
"""Operation -> algorithm -> messages and bytes that one rank sends."""
