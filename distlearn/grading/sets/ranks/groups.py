"""All-reduce on two levels: within nodes, and between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from distlearn.comm import Communicator
from distlearn.grading.question import Case, Mistake, Question, RankProgram
from distlearn.grading.ranks_answer import OnRanks
from distlearn.grading.sets.ranks.everywhere import everywhere

Array = np.ndarray[Any, Any]


async def _two_levels(comm: Communicator, x: Array, inside: int, across: int) -> Array:
    """With the colors that this rank gives for its two groups."""
    near = await comm.split(inside)
    far = await comm.split(across)
    part = await far.all_reduce(await near.reduce_scatter(x))
    full: Array = await near.all_gather(part)
    return full


async def _swapped(comm: Communicator, x: Array, per_node: int) -> Array:
    return await _two_levels(comm, x, comm.rank % per_node, comm.rank // per_node)


async def _nodes_dealt_out(comm: Communicator, x: Array, per_node: int) -> Array:
    nodes = comm.size // per_node
    return await _two_levels(comm, x, comm.rank % nodes, comm.rank // nodes)


async def _node_only(comm: Communicator, x: Array, per_node: int) -> Array:
    near = await comm.split(comm.rank // per_node)
    full: Array = await near.all_reduce(x)
    return full


async def _across_only(comm: Communicator, x: Array, per_node: int) -> Array:
    far = await comm.split(comm.rank % per_node)
    full: Array = await far.all_reduce(x)
    return full


async def _flat(comm: Communicator, x: Array, per_node: int) -> Array:
    full: Array = await comm.all_reduce(x)
    return full


async def _whole_between_nodes(comm: Communicator, x: Array, per_node: int) -> Array:
    near = await comm.split(comm.rank // per_node)
    far = await comm.split(comm.rank % per_node)
    full: Array = await far.all_reduce(await near.all_reduce(x))
    return full


async def _part(comm: Communicator, x: Array, per_node: int) -> Array:
    near = await comm.split(comm.rank // per_node)
    far = await comm.split(comm.rank % per_node)
    part: Array = await far.all_reduce(await near.reduce_scatter(x))
    return part


async def _everything_twice(comm: Communicator, x: Array, per_node: int) -> Array:
    near = await comm.split(comm.rank // per_node)
    full: Array = await comm.all_reduce(await near.all_reduce(x))
    return full


GROUPS = Question(
    id="ranks/groups",
    title="All-reduce on two levels",
    function="two_level_all_reduce",
    parameters=("x", "per_node"),
    answer=OnRanks(),
    points=5,
    cases=(
        Case(([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], 2),
             everywhere(4, [16.0, 20.0], between=[2, 32])),
        Case(([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0],
               [1000.0, 2000.0, 3000.0]], 2),
             everywhere(4, [1111.0, 2222.0, 3333.0], between=[2, 48])),
        Case(([[1.0, 2.0], [3.0, 4.0]], 2), everywhere(2, [4.0, 6.0], between=[2, 0])),
        Case(([[1.0, 2.0], [3.0, 4.0]], 1), everywhere(2, [4.0, 6.0], between=[1, 32])),
        Case(([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0],
               [2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0],
               [4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]], 4),
             everywhere(8, [20.0, 20.0, 20.0, 20.0], between=[4, 64])),
    ),
    mistakes=(
        Mistake(_swapped,
                "The two groups are swapped: ranks of one node have the same rank // per_node, and "
                "only a part of x has to leave the node."),
        Mistake(_nodes_dealt_out,
                "Nodes are filled one after the other: ranks 0 .. per_node - 1 share the first."),
        Mistake(_node_only, "This is the sum of one node: the sums have to cross nodes as well."),
        Mistake(_across_only,
                "This is the sum over one rank of each node: the others of the node are missing."),
        Mistake(_flat, "One all_reduce over all ranks sends whole arrays across nodes: first sum "
                       "within the node, and let each rank take only its part across."),
        Mistake(_whole_between_nodes,
                "The result is right, but each rank of a node takes the whole sum across. With "
                "reduce_scatter in the node, each takes only its part."),
        Mistake(_part, "This is one part of the sum: all_gather the parts within the node."),
        Mistake(_everything_twice,
                "This counts each array per_node times: after the sum in the node, sum over one "
                "rank of each node, not over all ranks."),
    ),
    program=RankProgram(("split", "reduce_scatter", "all_reduce", "all_gather"), each=("x",),
                        arrays=("x",)),
)
