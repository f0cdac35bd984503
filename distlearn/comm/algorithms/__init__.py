"""The textbook algorithms of each collective, and the rule that chooses one.

An algorithm is a pure function that makes steps. To add one: write it in a file of its own, enter
it in ``_MAKERS``, and the tests check that every contribution arrives exactly once; then give
`distlearn.hardware.collectives` its formula, and the tests compare the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from distlearn.comm.algorithms import direct, halving_doubling, hierarchical, ring, tree
from distlearn.comm.plans import Chunks, Plan, Steps

SMALL_BYTES = 32_768
"""Up to here ``algorithm="auto"`` prefers few messages to few bytes."""

NATIVE = "native"
"""The engine's own collective (MPI's or torch's); in the virtual world the same as "auto"."""

# maker(p, ranks rotated so that the root is first, nodes) -> (chunks, steps)
_Maker = Callable[[int, list[int], hierarchical.Nodes], tuple[int, Steps]]


def _each(order: list[int]) -> list[Chunks]:
    """One chunk a rank, chunk r for rank r, in the given order of ranks."""
    return [(r,) for r in order]


def _whole(order: list[int]) -> Chunks:
    return tuple(range(len(order)))


_MAKERS: dict[str, dict[str, _Maker]] = {
    "all_reduce": {
        "ring": lambda p, order, nodes: (p, ring.all_reduce(order, _each(order))),
        "recursive_doubling": lambda p, order, nodes: (
            1, halving_doubling.recursive_doubling_all_reduce(order, (0,))),
        "halving_doubling": lambda p, order, nodes: (
            q := halving_doubling.largest_power_of_two(p),
            halving_doubling.all_reduce(order, [(c,) for c in range(q)])),
        "tree": lambda p, order, nodes: (1, tree.all_reduce(order, (0,))),
        "hierarchical": lambda p, order, nodes: (
            hierarchical.all_reduce_chunks(nodes), hierarchical.all_reduce(nodes)),
    },
    "reduce_scatter": {
        "ring": lambda p, order, nodes: (p, ring.reduce_scatter(order, _each(order))),
        "halving_doubling": lambda p, order, nodes: (
            p, halving_doubling.reduce_scatter(order, _each(order))),
        "tree": lambda p, order, nodes: (
            p, tree.reduce(order, _whole(order)) + tree.scatter(order, _each(order))),
        "hierarchical": lambda p, order, nodes: (
            p, hierarchical.reduce_scatter(nodes, _each(order))),
    },
    "all_gather": {
        "ring": lambda p, order, nodes: (p, ring.all_gather(order, _each(order))),
        "halving_doubling": lambda p, order, nodes: (
            p, halving_doubling.all_gather(order, _each(order))),
        "tree": lambda p, order, nodes: (
            p, tree.gather(order, _each(order)) + tree.broadcast(order, _whole(order))),
        "hierarchical": lambda p, order, nodes: (p, hierarchical.all_gather(nodes, _each(order))),
    },
    "broadcast": {
        "tree": lambda p, order, nodes: (1, tree.broadcast(order, (0,))),
        # scatter, then all-gather: 2 (p - 1) / p of the data per rank instead of log2 p times
        # (van de Geijn, in Thakur, Rabenseifner and Gropp 2005, section 4.2)
        "ring": lambda p, order, nodes: (
            p, tree.scatter(order, _each(order)) + ring.all_gather(order, _each(order))),
    },
    "reduce": {
        "tree": lambda p, order, nodes: (1, tree.reduce(order, (0,))),
        "ring": lambda p, order, nodes: (
            p, ring.reduce_scatter(order, _each(order)) + tree.gather(order, _each(order))),
    },
    "gather": {
        "tree": lambda p, order, nodes: (p, tree.gather(order, _each(order))),
        "direct": lambda p, order, nodes: (p, direct.gather(order, _each(order))),
    },
    "scatter": {
        "tree": lambda p, order, nodes: (p, tree.scatter(order, _each(order))),
        "direct": lambda p, order, nodes: (p, direct.scatter(order, _each(order))),
    },
    "all_to_all": {"pairwise": lambda p, order, nodes: (p * p, direct.all_to_all(p))},
    "barrier": {"dissemination": lambda p, order, nodes: (0, direct.barrier(p))},
}

ALGORITHMS: dict[str, tuple[str, ...]] = {name: tuple(made) for name, made in _MAKERS.items()}
"""Operation -> the algorithms it can be done with."""


def choose(operation: str, nbytes: int) -> str:
    """The algorithm that ``"auto"`` stands for.

    Up to 32 KiB the one with the fewest steps, above it the one with the fewest bytes. The rule
    depends on nothing else, so the same program sums in the same order on every engine.

    Parameters
    ----------
    operation : str
    nbytes : int
        Bytes of the whole buffer: all_reduce and reduce_scatter, the input; all_gather, the output.
    """
    small = nbytes <= SMALL_BYTES
    if operation == "all_reduce":
        return "recursive_doubling" if small else "ring"
    if operation in ("reduce_scatter", "all_gather"):
        return "halving_doubling" if small else "ring"
    return ALGORITHMS[operation][0]


@lru_cache(maxsize=512)
def plan(operation: str, algorithm: str, size: int, root: int = 0,
         nodes: tuple[int, ...] | None = None) -> Plan:
    """Make the steps of a collective.

    Parameters
    ----------
    operation : str
        A key of ``ALGORITHMS``.
    algorithm : str
        One of ``ALGORITHMS[operation]``.
    size : int
        Ranks of the group, at least 1.
    root : int
        For the operations that have one.
    nodes : tuple of int, optional
        ``nodes[r]`` is the node that rank r lives on, for ``"hierarchical"``. Default: one node.

    Raises
    ------
    ValueError
        Naming the argument that is not understood.

    Notes
    -----
    Cost: linear in the number of messages. Plans are kept, so asking again is free.

    Examples
    --------
    >>> print(plan("broadcast", "tree", size=5, root=1))
    broadcast, tree, 5 ranks, 1 chunks
    step 1: 1 -0-> 0
    step 2: 1 -0-> 3
    step 3: 1 -0-> 2   3 -0-> 4
    """
    if operation not in _MAKERS:
        raise ValueError(f"operation {operation!r} is not one of {', '.join(_MAKERS)}")
    if algorithm not in _MAKERS[operation]:
        raise ValueError(f"algorithm {algorithm!r} is not one of those of {operation}: "
                         f"auto, {', '.join(_MAKERS[operation])}")
    if size < 1 or not 0 <= root < size:
        raise ValueError(f"size = {size} must be at least 1 and 0 <= root = {root} < size")
    of_node: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes or (0,) * size):
        of_node.setdefault(node, []).append(rank)
    order = [(root + i) % size for i in range(size)]
    chunks, steps = _MAKERS[operation][algorithm](size, order, list(of_node.values()))
    initial, final = _ends(operation, size, root, tuple(range(chunks)))
    return Plan(operation, algorithm, size, chunks, steps, initial, final)


def _ends(operation: str, p: int, root: int, everything: Chunks
          ) -> tuple[tuple[Chunks, ...], tuple[Chunks, ...]]:
    """Which chunks each rank brings, and which its result consists of."""
    all_ranks = (everything,) * p
    at_root = tuple(everything if r == root else () for r in range(p))
    own = tuple((r,) for r in range(p))
    rows = tuple(tuple(range(r * p, (r + 1) * p)) for r in range(p))
    columns = tuple(tuple(range(r, p * p, p)) for r in range(p))
    return {
        "all_reduce": (all_ranks, all_ranks),
        "reduce_scatter": (all_ranks, own),
        "all_gather": (own, all_ranks),
        "broadcast": (at_root, all_ranks),
        "reduce": (all_ranks, at_root),
        "gather": (own, at_root),
        "scatter": (at_root, own),
        "all_to_all": (rows, columns),
        "barrier": (((),) * p, ((),) * p),
    }[operation]
