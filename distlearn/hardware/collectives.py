"""What a collective costs: bytes, messages and seconds in the α-β model.

The algorithms and the byte counts are those of `distlearn.comm`: its ledger counts what these
formulas say, to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from distlearn.hardware.cluster import Cluster
from distlearn.hardware.collective_mesh import MESH_OPS, mesh_steps
from distlearn.hardware.collective_steps import steps
from distlearn.hardware.collective_traffic import TRAFFIC, Case
from distlearn.hardware.link import Link, Network

SMALL_BYTES = 32_768
"""Up to here ``algorithm="auto"`` means few messages, above it few bytes."""

Bytes = int | Sequence[int]


def collective_bytes(op: str, nbytes: Bytes, group: int, algorithm: str = "auto", *,
                     rank: int | None = None, root: int = 0, itemsize: int = 1,
                     devices_per_node: int | None = None) -> int:
    """Bytes that a rank sends in one collective.

    Parameters
    ----------
    op : str
        ``"all_reduce"``, ``"reduce_scatter"``, ``"all_gather"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"``, ``"all_to_all"`` or ``"barrier"``.
    nbytes : int, or sequence of int
        Bytes of the whole buffer: the input of all_reduce, reduce and reduce_scatter, the output of
        all_gather, what the root has in broadcast, gather and scatter, what this rank sends in
        all_to_all, its own part included. A sequence gives the part of each rank, where parts are
        uneven; an int is cut as ``numpy.array_split`` does.
    group : int
        Number of ranks p.
    algorithm : str
        As in `distlearn.comm`; ``"auto"`` chooses as it does there.
    rank : int, optional
        Default: the largest count of all ranks.
    root : int
    itemsize : int
        Bytes of one element, which is never cut.
    devices_per_node : int, optional
        For ``"hierarchical"``: consecutive ranks that share a node. Default: one node.

    Raises
    ------
    ValueError
        Naming the argument that is not understood.

    Examples
    --------
    >>> collective_bytes("all_reduce", 1_000_000, 8, "ring")          # 2 (p - 1) / p n
    1750000
    >>> collective_bytes("all_reduce", 1_000_000, 8, "recursive_doubling")   # log2(p) n
    3000000
    """
    return max(cost[1] for cost in _costs(op, nbytes, group, algorithm, rank, root, itemsize,
                                          devices_per_node))


def collective_messages(op: str, nbytes: Bytes, group: int, algorithm: str = "auto", *,
                        rank: int | None = None, root: int = 0, itemsize: int = 1,
                        devices_per_node: int | None = None) -> int:
    """Messages that a rank sends in one collective; parameters as in `collective_bytes`.

    Examples
    --------
    >>> collective_messages("all_reduce", 1_000_000, 8, "ring")              # 2 (p - 1)
    14
    """
    return max(cost[0] for cost in _costs(op, nbytes, group, algorithm, rank, root, itemsize,
                                          devices_per_node))


def collective_time(op: str, nbytes: float, group: int, cluster: Link | Network,
                    algorithm: str = "auto") -> float:
    """Seconds that one collective takes in the α-β model.

    Every step takes α + b β, b the bytes of its largest message; parts are taken as equal. A step
    of the flat algorithms that crosses nodes takes as long as the slower link. Devices do not share
    links, and combining two partial results costs nothing.

    Parameters
    ----------
    op, nbytes, group, algorithm
        As in `collective_bytes`; ``nbytes`` a number. In all_to_all, what each rank has.
    cluster : Link, or a cluster with ``intra``, ``inter`` and ``devices_per_node``
        One link for all, or one within and one between nodes; ranks fill one node after the other.
        In a `Cluster` whose nodes are meshes, ``"auto"`` is ``"mesh"``: each rank exchanges its
        parts with all others of its node at once, over a link each.

    Raises
    ------
    ValueError
        Naming the argument that is not understood.

    Examples
    --------
    >>> link = Link(alpha_s=1e-6, beta_s_per_byte=1e-9)
    >>> collective_time("all_reduce", 8_000_000, 8, link, algorithm="ring")   # 14 α + 14 MB β
    0.014014
    """
    if isinstance(cluster, Cluster) and group > cluster.size:
        raise ValueError(f"group = {group} is more than the {cluster.size} devices of the cluster")
    mesh = cluster if isinstance(cluster, Cluster) and cluster.mesh else None
    if algorithm == "mesh" and mesh is None:
        raise ValueError("algorithm = 'mesh' needs a Cluster whose nodes are meshes")
    if mesh is not None and algorithm in ("mesh", "auto") and op in MESH_OPS:
        _known(op, "auto", group, nbytes)
        return sum((mesh.inter if crosses else mesh.intra).time(size) for size, crosses
                   in mesh_steps(op, group, nbytes, min(mesh.devices_per_node, group)))
    algorithm = _known(op, algorithm, group, nbytes)
    near = cluster if isinstance(cluster, Link) else cluster.intra
    far = near if isinstance(cluster, Link) else cluster.inter
    k = group if isinstance(cluster, Link) else min(cluster.devices_per_node, group)
    return sum(max(near.time(size), far.time(size)) if crosses else near.time(size)
               for size, crosses in steps(op, algorithm, group, nbytes, k))


def _costs(op: str, nbytes: Bytes, group: int, algorithm: str, rank: int | None, root: int,
           itemsize: int, devices_per_node: int | None) -> list[tuple[int, int]]:
    """Messages and bytes of one rank, or of all."""
    total = nbytes if isinstance(nbytes, int) else sum(nbytes)
    algorithm = _known(op, algorithm, group, total)
    for name, value in (("root", root), ("rank", 0 if rank is None else rank)):
        if not 0 <= value < group:
            raise ValueError(f"{name} = {value} is not a rank of a group of {group}")
    if itemsize < 1 or total % itemsize:
        raise ValueError(f"nbytes = {total} is not a number of elements of itemsize = {itemsize}")
    if devices_per_node is not None and devices_per_node < 1:
        raise ValueError(f"devices_per_node = {devices_per_node} must be at least 1")

    def chunks(parts: int) -> tuple[int, ...]:
        base, more = divmod(total // itemsize, parts)
        return tuple((base + (i < more)) * itemsize for i in range(parts))

    parts = chunks(group) if isinstance(nbytes, int) else tuple(nbytes)
    if len(parts) != group:
        raise ValueError(f"nbytes gives {len(parts)} parts for a group of {group} ranks")
    ranks = range(group) if rank is None else [rank]
    count = TRAFFIC[op][algorithm]
    return [count(Case(group, r, root, total, parts, chunks, devices_per_node or group))
            for r in ranks]


def _known(op: str, algorithm: str, group: int, nbytes: float) -> str:
    """The algorithm that is meant, once all words are known."""
    if op not in TRAFFIC:
        raise ValueError(f"op = {op!r} is not one of {', '.join(TRAFFIC)}")
    if group < 1:
        raise ValueError(f"group = {group} must be at least 1 rank")
    if nbytes < 0:
        raise ValueError(f"nbytes = {nbytes} must not be negative")
    if algorithm == "auto":
        small = nbytes <= SMALL_BYTES
        if op == "all_reduce":
            return "recursive_doubling" if small else "ring"
        if op in ("reduce_scatter", "all_gather"):
            return "halving_doubling" if small else "ring"
        return next(iter(TRAFFIC[op]))
    if algorithm not in TRAFFIC[op]:
        raise ValueError(f"algorithm = {algorithm!r} is not one of those of {op}: "
                         f"auto, {', '.join(TRAFFIC[op])}")
    return algorithm
