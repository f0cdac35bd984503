"""The ledger counts what hardware.collectives says, to the byte; times are the plan's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.comm import ALGORITHMS, Communicator, plan, run
from distlearn.comm.algorithms import SMALL_BYTES, choose
from distlearn.hardware import (
    Link,
    TwoLevelNetwork,
    collective_bytes,
    collective_messages,
    collective_time,
)
from distlearn.hardware import collectives as formulas
from distlearn.hardware.collective_traffic import TRAFFIC

PAIRS = [(operation, algorithm) for operation, names in ALGORITHMS.items() for algorithm in names]
ROOTED = {"broadcast", "reduce", "gather", "scatter"}


def test_formulas_know_the_algorithms() -> None:
    assert {op: tuple(names) for op, names in TRAFFIC.items()} == ALGORITHMS
    assert formulas.SMALL_BYTES == SMALL_BYTES


async def call(comm: Communicator, operation: str, algorithm: str, parts: list[int], root: int,
               ) -> Any:
    """The operation, with ``parts[r]`` int16 elements for rank r."""
    whole, mine = np.zeros(sum(parts), "int16"), np.zeros(parts[comm.rank], "int16")
    options: dict[str, Any] = {"algorithm": algorithm}
    if operation in ("all_reduce",):
        return await comm.all_reduce(whole, **options)
    if operation == "reduce_scatter":
        return await comm.reduce_scatter(whole, counts=parts, **options)
    if operation == "all_gather":
        return await comm.all_gather(mine, **options)
    if operation == "all_to_all":
        return await comm.all_to_all(whole, counts=parts, **options)
    if operation == "broadcast":
        return await comm.broadcast(whole, root, **options)
    if operation == "reduce":
        return await comm.reduce(whole, "sum", root, **options)
    if operation == "gather":
        return await comm.gather(mine, root, **options)
    if operation == "scatter":
        return await comm.scatter(whole if comm.rank == root else None, root, counts=parts,
                                  **options)
    return await comm.barrier(**options)


@given(st.data())
def test_ledger_equals_formula_to_the_byte(data: st.DataObject) -> None:
    operation, algorithm = data.draw(st.sampled_from([*PAIRS, *((op, "auto") for op in TRAFFIC)]))
    p = data.draw(st.integers(1, 20))
    parts = data.draw(st.lists(st.integers(0, 9), min_size=p, max_size=p))
    root = data.draw(st.integers(0, p - 1)) if operation in ROOTED else 0
    per_node = data.draw(st.sampled_from([k for k in range(1, p + 1) if p % k == 0
                                          or operation == "all_reduce"]))

    async def program(comm: Communicator) -> Any:
        await call(comm, operation, algorithm, parts, root)
        return comm.ledger.total(operation)

    entries = run(program, p, ranks_per_node=per_node)
    even = operation in ("all_reduce", "broadcast", "reduce", "barrier")
    nbytes: Any = 2 * sum(parts) if even else [2 * part for part in parts]
    for rank, entry in enumerate(entries):
        case = {"algorithm": algorithm, "rank": rank, "root": root, "itemsize": 2,
                "devices_per_node": per_node}
        if operation == "barrier":
            nbytes = 0
        assert entry.bytes_sent == collective_bytes(operation, nbytes, p, **case)
        assert entry.messages == collective_messages(operation, nbytes, p, **case)
        assert entry.calls == 1
    assert sum(e.bytes_sent for e in entries) == sum(e.bytes_received for e in entries)


@pytest.mark.parametrize("nbytes", [0, SMALL_BYTES, SMALL_BYTES + 4, 10**6])
def test_auto_means_the_same_in_both(nbytes: int) -> None:
    for operation in set(ALGORITHMS) - {"barrier"}:
        name = choose(operation, nbytes)
        assert collective_bytes(operation, nbytes, 8) == collective_bytes(operation, nbytes, 8,
                                                                          name)


@pytest.mark.parametrize(("operation", "algorithm"), PAIRS)
@pytest.mark.parametrize(("p", "k"), [(1, 1), (2, 2), (4, 2), (8, 2), (8, 8), (16, 4), (6, 3),
                                      (12, 4), (7, 7), (5, 1), (13, 13)])
def test_time_is_that_of_the_plan(operation: str, algorithm: str, p: int, k: int) -> None:
    """Each step of the plan costs what its dearest message costs."""
    network = TwoLevelNetwork(Link(1e-6, 2e-11), Link(5e-6, 1e-10), devices_per_node=k)
    made = plan(operation, algorithm, p, nodes=tuple(r // k for r in range(p)))
    n = 840_000 * 11 * 13 * p * p  # a multiple of every number of chunks
    size = n // p if operation == "all_to_all" else n / max(made.chunks, 1)
    if operation == "all_to_all":
        size = n / p
    if operation == "barrier":
        size = 0
    total = 0.0
    for step in made.steps:
        total += max((network.intra if m.source // k == m.dest // k else network.inter).time(
            len(m.chunks) * size) for m in step)
    assert collective_time(operation, n, p, network, algorithm) == pytest.approx(total, rel=1e-12)


def test_textbook_values() -> None:
    """Thakur, Rabenseifner and Gropp 2005: sections 4.1 (all-gather), 4.5 (all-reduce)."""
    alpha, beta, n, p = 2e-6, 3e-10, 64 * 2**20, 16
    link = Link(alpha, beta)
    lg = 4
    assert collective_time("all_reduce", n, p, link, "ring") == pytest.approx(
        2 * (p - 1) * alpha + 2 * (p - 1) / p * n * beta)
    assert collective_time("all_reduce", n, p, link, "halving_doubling") == pytest.approx(
        2 * lg * alpha + 2 * (p - 1) / p * n * beta)
    assert collective_time("all_reduce", n, p, link, "recursive_doubling") == pytest.approx(
        lg * alpha + lg * n * beta)
    assert collective_time("broadcast", n, p, link, "tree") == pytest.approx(
        lg * (alpha + n * beta))
    assert collective_time("broadcast", n, p, link, "ring") == pytest.approx(
        (lg + p - 1) * alpha + 2 * (p - 1) / p * n * beta)
    assert collective_time("all_gather", n, p, link, "halving_doubling") == pytest.approx(
        lg * alpha + (p - 1) / p * n * beta)


def test_hierarchical_pays_off_where_links_between_nodes_are_slow() -> None:
    network = TwoLevelNetwork(Link.from_bandwidth(300e9, 2e-6), Link.from_bandwidth(25e9, 5e-6), 8)
    n = 256 * 2**20
    assert collective_time("all_reduce", n, 32, network, "hierarchical") < collective_time(
        "all_reduce", n, 32, network, "ring")


@pytest.mark.parametrize(("arguments", "says"), [
    (("all_sum", 4, 2), "op = 'all_sum' is not one of all_reduce"),
    (("all_reduce", 4, 0), "group = 0"), (("all_reduce", -1, 2), "nbytes = -1"),
    (("all_reduce", 4, 2, "star"), "algorithm = 'star'"),
    (("all_gather", [4, 4, 4], 2), "3 parts for a group of 2"),
])
def test_arguments(arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        collective_bytes(*arguments)
    with pytest.raises(ValueError, match="itemsize = 4"):
        collective_bytes("all_reduce", 6, 2, itemsize=4)
    with pytest.raises(ValueError, match="rank = 2"):
        collective_bytes("all_reduce", 6, 2, rank=2)
    with pytest.raises(ValueError, match="bytes_per_s"):
        Link.from_bandwidth(0)
