"""Hierarchical: fast links within a node first, slow links between nodes with less data.

With k ranks on each of N nodes, a reduce-scatter inside the nodes leaves 1/k of the data to each
rank, which then crosses nodes along k parallel "rails", rank l of each node with rank l of the
others (the two-level scheme of NCCL and of Jia et al. 2018, "Highly scalable deep learning training
system with mixed-precision", section 3.3). Nodes of unequal size use one leader per node instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from distlearn.comm.algorithms import ring, tree
from distlearn.comm.plans import Chunks, Steps, beside, union

Nodes = Sequence[Sequence[int]]


def even(nodes: Nodes) -> bool:
    """Whether all nodes hold the same number of ranks."""
    return len({len(node) for node in nodes}) == 1


def all_reduce_chunks(nodes: Nodes) -> int:
    """Chunks that `all_reduce` cuts the data into: one per rank, or one per leader."""
    return sum(map(len, nodes)) if even(nodes) else len(nodes)


def all_reduce(nodes: Nodes) -> Steps:
    """Reduce-scatter in the node, ring all-reduce along each rail, all-gather in the node."""
    N = len(nodes)
    if not even(nodes):
        everything = tuple(range(N))
        return (
            beside(*(tree.reduce(node, everything) for node in nodes))
            + ring.all_reduce([node[0] for node in nodes], [(c,) for c in range(N)])
            + beside(*(tree.broadcast(node, everything) for node in nodes))
        )
    k = len(nodes[0])
    parts = [tuple(range(l * N, (l + 1) * N)) for l in range(k)]
    return (
        beside(*(ring.reduce_scatter(node, parts) for node in nodes))
        + beside(*(ring.all_reduce([node[l] for node in nodes], [(c,) for c in parts[l]])
                   for l in range(k)))
        + beside(*(ring.all_gather(node, parts) for node in nodes))
    )


def reduce_scatter(nodes: Nodes, blocks: Sequence[Chunks]) -> Steps:
    """In the node, each rank takes the blocks of its rail; then along the rails.

    ``blocks[r]`` ends at rank r.
    """
    rails = _rails(nodes)
    parts = [union([blocks[r] for r in rail]) for rail in rails]
    return (
        beside(*(ring.reduce_scatter(node, parts) for node in nodes))
        + beside(*(ring.reduce_scatter(rail, [blocks[r] for r in rail]) for rail in rails))
    )


def all_gather(nodes: Nodes, blocks: Sequence[Chunks]) -> Steps:
    """Along the rails first, then in the node: the reduce-scatter backwards."""
    rails = _rails(nodes)
    parts = [union([blocks[r] for r in rail]) for rail in rails]
    return (
        beside(*(ring.all_gather(rail, [blocks[r] for r in rail]) for rail in rails))
        + beside(*(ring.all_gather(node, parts) for node in nodes))
    )


def _rails(nodes: Nodes) -> list[tuple[int, ...]]:
    if not even(nodes):
        raise ValueError(
            "algorithm 'hierarchical' needs the same number of ranks on every node here, got "
            f"nodes of {', '.join(str(len(node)) for node in nodes)} ranks; all_reduce takes "
            "unequal nodes, or choose 'ring'"
        )
    return list(zip(*nodes, strict=True))
