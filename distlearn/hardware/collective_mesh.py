"""Collectives in a mesh: every rank exchanges a part with all the others at once, a link each.

Across nodes, rings join the ranks of equal place, each with its share of the data.
"""

from __future__ import annotations

from distlearn.hardware.collective_steps import Step

_EXCHANGES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1, "broadcast": 2, "reduce": 2,
              "gather": 1, "scatter": 1, "all_to_all": 1}
_RINGS = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}

MESH_OPS = tuple(_EXCHANGES)


def mesh_steps(op: str, p: int, n: float, k: int) -> list[Step]:
    """The steps of one collective, as `distlearn.hardware.collective_steps.steps`.

    Raises
    ------
    ValueError
        Across nodes: for ranks that do not fill the nodes, or an operation other than all_reduce,
        reduce_scatter, all_gather and all_to_all.
    """
    if p == 1:
        return []
    if p == k:
        return [(n / p, False)] * _EXCHANGES[op]
    if op == "all_to_all":
        return [(n / p, False)] + [(n / p, True)] * (p - k)
    if op not in _RINGS:
        raise ValueError(f"op = {op!r} has no mesh algorithm across nodes; all_to_all, "
                         f"{', '.join(_RINGS)} have")
    if p % k:
        raise ValueError(f"group = {p} ranks do not fill nodes of {k}")
    inside = [(n / k, False)] * _EXCHANGES[op] if k > 1 else []
    return inside + [(n / p, True)] * ((p // k - 1) * _RINGS[op])
