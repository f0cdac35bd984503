"""20 programs that use every collective; each asserts on every rank what it got.

The answer is numpy's, computed from the data of all ranks, which every rank can make by itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from distlearn.comm import ALGORITHMS, Communicator
from distlearn.hardware import collective_bytes, collective_messages

Program = Callable[[Communicator], Coroutine[Any, Any, None]]
PROGRAMS: dict[str, Program] = {}

SIZES = (0, 1, 2, 3, 5, 16, 31, 1000)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "complex64", "complex128")
SHORT_FLOATS = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
NUMBERS = [np.dtype(d) for d in (*INTEGERS, *FLOATS, *SHORT_FLOATS)]
RECORD = np.dtype([("expert", "<i4"), ("gate", "<f8"), ("row", "<f4", (3,))])
SWAPPED = np.dtype(">f4")


def program(function: Program) -> Program:
    """Enter a program into the list that every engine runs."""
    PROGRAMS[function.__name__] = function
    return function


@lru_cache(maxsize=4096)
def data(rank: int, shape: int | tuple[int, ...], dtype: Any = "int64", seed: int = 0) -> Any:
    """What a rank holds: small whole numbers, so that every order of summation is exact."""
    rng = np.random.default_rng((seed, rank))
    array = rng.integers(0, 4, shape).astype(dtype)
    array.flags.writeable = False
    return array


def check(got: Any, want: Any) -> None:
    want = np.asarray(want)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.flags.c_contiguous and got.flags.writeable
    assert np.array_equal(got, want), f"got {got}, want {want}"


def algorithms(comm: Communicator, operation: str) -> list[str]:
    """All algorithms that do the operation on this group, and the automatic choice."""
    per_node = [comm.nodes.count(node) for node in set(comm.nodes)]
    return ["auto", *(a for a in ALGORITHMS[operation]
                      if a != "hierarchical" or operation == "all_reduce"
                      or len(set(per_node)) == 1)]


def roots(comm: Communicator) -> list[int]:
    """All of a small group; of a large one, ends and middle."""
    p = comm.size
    return list(range(p)) if p <= 5 else [0, 1, p // 2, p - 1]


@program
async def all_reduce_every_reduction(comm: Communicator) -> None:
    mine = [data(r, 7, "float64") + 1 for r in range(comm.size)]
    want = {"sum": np.sum(mine, 0), "mean": np.mean(mine, 0), "max": np.max(mine, 0),
            "min": np.min(mine, 0), "prod": np.prod(mine, 0)}
    for op, value in want.items():
        for algorithm in algorithms(comm, "all_reduce"):
            check(await comm.all_reduce(mine[comm.rank], op, algorithm=algorithm), value)


@program
async def all_reduce_every_dtype(comm: Communicator) -> None:
    for dtype in (*NUMBERS, SWAPPED):
        mine = [data(r, 5).astype(dtype) for r in range(comm.size)]
        if dtype.name.startswith("float8"):  # holds whole numbers up to 8 only
            mine = [(m.astype(int) % 2 * (r < 8)).astype(dtype) for r, m in enumerate(mine)]
        want = np.sum([m.astype("complex128") for m in mine], 0)
        for algorithm in ("auto", "ring"):
            got = await comm.all_reduce(mine[comm.rank], algorithm=algorithm)
            assert got.dtype == dtype
            assert np.array_equal(got.astype("complex128"), want), (dtype, got, want)
    flags = [data(r, 9) > 2 for r in range(comm.size)]
    check(await comm.all_reduce(flags[comm.rank]), np.any(flags, 0))
    check(await comm.all_reduce(flags[comm.rank], "prod"), np.all(flags, 0))


@program
async def all_reduce_odd_sizes(comm: Communicator) -> None:
    for shape in (*((n,) for n in SIZES), (), (3, 0, 2), (5, 7), (2, 3, 4)):
        mine = [data(r, shape, "float32") for r in range(comm.size)]
        for algorithm in algorithms(comm, "all_reduce"):
            check(await comm.all_reduce(mine[comm.rank], algorithm=algorithm),
                  np.sum(mine, 0, dtype="float32"))


@program
async def all_reduce_gives_all_ranks_the_same_bits(comm: Communicator) -> None:
    for dtype in ("float16", "float32", ml_dtypes.bfloat16):
        mine = np.random.default_rng(comm.rank).normal(size=103).astype(dtype)
        mine[::9] *= -0.0
        for op in ("sum", "max", "min"):
            for algorithm in algorithms(comm, "all_reduce"):
                got = await comm.all_reduce(mine, op, algorithm=algorithm)
                everyone = await comm.all_gather(got.view(np.uint8), axis=None)
                assert all(np.array_equal(other, everyone[0]) for other in everyone)


@program
async def reduce_to_every_root(comm: Communicator) -> None:
    for root in roots(comm):
        mine = [data(r, (3, 5), "float64", root) for r in range(comm.size)]
        for algorithm in algorithms(comm, "reduce"):
            got = await comm.reduce(mine[comm.rank], "max", root, algorithm=algorithm)
            if comm.rank == root:
                check(got, np.max(mine, 0))
            else:
                assert got is None


@program
async def broadcast_from_every_root(comm: Communicator) -> None:
    for root in roots(comm):
        for dtype in (np.dtype("float32"), RECORD, np.dtype(ml_dtypes.bfloat16)):
            want = np.zeros(11, dtype)
            want.view(np.uint8)[:] = np.arange(11 * dtype.itemsize) % 100 + root
            for algorithm in algorithms(comm, "broadcast"):
                got = await comm.broadcast(want if comm.rank == root else None, root,
                                           algorithm=algorithm)
                check(got, want)
                check(await comm.broadcast(want if comm.rank == root else np.zeros_like(want),
                                           root, algorithm=algorithm), want)


@program
async def reduce_scatter_along_every_axis(comm: Communicator) -> None:
    for shape in ((4 * comm.size,), (2 * comm.size + 1, 3), (3, comm.size, 2), (1, 2), (0,)):
        mine = [data(r, shape, "float32") for r in range(comm.size)]
        for axis in range(-len(shape), len(shape)):
            want = np.array_split(np.sum(mine, 0, dtype="float32"), comm.size, axis)[comm.rank]
            for algorithm in algorithms(comm, "reduce_scatter"):
                check(await comm.reduce_scatter(mine[comm.rank], axis=axis, algorithm=algorithm),
                      want)


@program
async def reduce_scatter_uneven(comm: Communicator) -> None:
    counts = [(3 * r) % 5 for r in range(comm.size)]
    stops = np.cumsum(counts)
    mine = [data(r, (sum(counts), 2), "int32") for r in range(comm.size)]
    want = np.sum(mine, 0, dtype="int32")[stops[comm.rank] - counts[comm.rank]:stops[comm.rank]]
    for algorithm in algorithms(comm, "reduce_scatter"):
        check(await comm.reduce_scatter(mine[comm.rank], counts=counts, algorithm=algorithm), want)


@program
async def all_gather_along_every_axis(comm: Communicator) -> None:
    for shape in ((3,), (2, 3), (2, 1, 4), (2, 0)):
        mine = [data(r, shape) for r in range(comm.size)]
        for axis in range(-len(shape), len(shape)):
            for algorithm in algorithms(comm, "all_gather"):
                check(await comm.all_gather(mine[comm.rank], axis=axis, algorithm=algorithm),
                      np.concatenate(mine, axis))
    check(await comm.all_gather(np.float32(comm.rank)), np.arange(comm.size, dtype="float32"))


@program
async def all_gather_uneven(comm: Communicator) -> None:
    mine = [data(r, ((r * 7 + 2) % 5, 3)) for r in range(comm.size)]
    shapes = [(), (2,), (0, 3), (2, 1, 2)]
    for algorithm in algorithms(comm, "all_gather"):
        check(await comm.all_gather(mine[comm.rank], algorithm=algorithm), np.concatenate(mine))
        got = await comm.all_gather(data(comm.rank, shapes[comm.rank % 4]), axis=None,
                                    algorithm=algorithm)
        for r, array in enumerate(got):
            check(array, data(r, shapes[r % 4]))


@program
async def gather_to_every_root(comm: Communicator) -> None:
    for root in roots(comm):
        mine = [data(r, (2, r % 3), "complex64", root) for r in range(comm.size)]
        for algorithm in algorithms(comm, "gather"):
            joined = await comm.gather(mine[comm.rank], root, axis=1, algorithm=algorithm)
            listed = await comm.gather(mine[comm.rank], root, axis=None, algorithm=algorithm)
            if comm.rank != root:
                assert joined is None and listed is None
                continue
            check(joined, np.concatenate(mine, 1))
            for got, want in zip(listed, mine, strict=True):
                check(got, want)


@program
async def scatter_from_every_root(comm: Communicator) -> None:
    for root in roots(comm):
        whole = data(root, (2 * comm.size + 1, 3), ml_dtypes.bfloat16)
        parts = [data(r, ((r * 3 + root) % 4, 2), "int16") for r in range(comm.size)]
        for algorithm in algorithms(comm, "scatter"):
            got = await comm.scatter(whole if comm.rank == root else None, root,
                                     algorithm=algorithm)
            check(got, np.array_split(whole, comm.size)[comm.rank])
            got = await comm.scatter(parts if comm.rank == root else None, root,
                                     algorithm=algorithm)
            check(got, parts[comm.rank])


@program
async def all_to_all_uneven(comm: Communicator) -> None:
    def block(source: int, dest: int) -> Any:
        return data(source * comm.size + dest, ((source + 2 * dest) % 4, 2), "uint16")

    got = await comm.all_to_all([block(comm.rank, dest) for dest in range(comm.size)])
    assert len(got) == comm.size
    for source, array in enumerate(got):
        check(array, block(source, comm.rank))


@program
async def all_to_all_of_one_array(comm: Communicator) -> None:
    p, r = comm.size, comm.rank
    rows = np.arange(p * p * 2).reshape(p, p, 2)
    check(await comm.all_to_all(rows[r]), rows[:, r])  # a transpose of blocks
    counts = [[(s + 3 * d) % 3 for d in range(p)] for s in range(p)]
    mine = [data(s, (sum(counts[s]), 3), "float16") for s in range(p)]
    want = []
    for s in range(p):
        start = sum(counts[s][:r])
        want.append(mine[s][start:start + counts[s][r]])
    got = await comm.all_to_all(mine[r], counts=counts[r])
    check(got, np.concatenate(want))
    back = await comm.all_to_all(got, counts=[counts[s][r] for s in range(p)])
    check(back, mine[r])


@program
async def messages_match_by_source_and_tag_in_order(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sends = [comm.isend(np.array([comm.rank, tag, n]), right, tag)
             for n in range(3) for tag in (5, 0, 32_767)]
    receives = {(n, tag): comm.irecv(left, tag) for tag in (32_767, 5, 0) for n in range(3)}
    for (n, tag), request in receives.items():
        check(await request, [left, tag, n])
    for request in reversed(sends):
        assert await request.wait() is None
    early = comm.irecv(comm.rank)  # to oneself, too
    own = [comm.isend(np.array(n), comm.rank) for n in range(2)]
    late = comm.irecv(comm.rank)
    check(await late, 1)
    check(await early, 0)
    for request in own:
        await request
    if comm.rank == 0 and comm.size > 1:  # many under way, the last one comes first
        for tag, receive in enumerate([comm.irecv(1, tag) for tag in range(80)]):
            check(await receive, tag)
    elif comm.rank == 1:
        for tag in reversed(range(80)):
            await comm.send(np.array(tag), 0, tag)


@program
async def messages_of_every_kind(comm: Communicator) -> None:
    base = np.arange(24).reshape(4, 6)
    arrays = [np.array(3.5), np.zeros((0, 4), "int8"), base.T, base[::-2, 1::3],
              np.arange(100_000.0), np.array([1 + 2j, 3]), np.array([True, False]),
              np.zeros(3, RECORD), np.arange(4, dtype=SWAPPED), np.array(["ab", "c"]),
              *(np.arange(7).astype(dtype) for dtype in NUMBERS)]
    if comm.size == 1:
        return
    partner = comm.rank ^ 1
    if partner >= comm.size:
        return
    for array in arrays:
        if comm.rank % 2 == 0:
            await comm.send(array, partner)
            check(await comm.recv(partner), array)
        else:
            check(await comm.recv(partner), array)
            await comm.send(array, partner)


@program
async def large_messages_in_both_directions(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    mine = np.full(200_000, float(comm.rank))
    receive = comm.irecv(left)
    if comm.size > 1:
        await comm.send(mine, right)  # the neighbour's receive is posted, not awaited yet
        check(await receive, np.full(200_000, float(left)))
        request = comm.isend(mine, left)
        mine[:] = -1  # isend has taken a copy
        check(await comm.recv(right), np.full(200_000, float(right)))
        await request
    else:
        request = comm.isend(mine, 0)
        check(await receive, mine)
        await request


@program
async def subgroups(comm: Communicator) -> None:
    p, r = comm.size, comm.rank
    rows = await comm.split(r % 3, key=-r)  # ranks in reverse order
    members = [s for s in reversed(range(p)) if s % 3 == r % 3]
    assert rows is not None and rows.group == tuple(members) and members[rows.rank] == r
    check(await rows.all_reduce(np.array([r])), [sum(members)])
    check(await rows.all_gather(np.array([r])), members)
    some = await comm.split(None if r == 0 else 0)
    assert (some is None) == (r == 0)
    if some is not None:
        assert some.group == tuple(range(1, p))
        pair = await some.split(some.rank // 2)
        assert pair is not None
        check(await pair.all_gather(np.array([r])), list(pair.group))
        if pair.size == 2:  # the same tag in the parent and in the pair: no mix-up
            one, two = (pair.isend(np.array([r]), 1 - pair.rank),
                        some.isend(np.array([-r]), some.group.index(pair.group[1 - pair.rank])))
            other = pair.group[1 - pair.rank]
            check(await some.recv(some.group.index(other)), [-other])
            check(await pair.recv(1 - pair.rank), [other])
            await one
            await two
    await comm.barrier()
    check(await comm.all_reduce(np.array(1)), p)


@program
async def arguments_stay_and_results_are_ones_own(comm: Communicator) -> None:
    p = comm.size
    frozen = np.arange(2.0 * p * p).reshape(2 * p, p)[::2]
    frozen.flags.writeable = False
    before = frozen.copy()
    for _ in range(2):
        results = [
            await comm.all_reduce(frozen, algorithm="ring"), await comm.all_reduce(frozen),
            await comm.reduce_scatter(frozen), await comm.all_gather(frozen),
            await comm.broadcast(frozen), await comm.all_to_all(frozen),
            *await comm.all_gather(frozen, axis=None),
            *await comm.all_to_all([frozen] * p),
        ]
        for x in (await comm.reduce(frozen), await comm.gather(frozen),
                  await comm.scatter(frozen if comm.rank == 0 else None)):
            results += [] if x is None else [x]
        np.testing.assert_array_equal(frozen, before)
        for i, array in enumerate(results):
            assert not np.shares_memory(array, frozen)
            assert not any(np.shares_memory(array, other) for other in results[:i])
        await comm.barrier()
        for array in results:
            array[...] = comm.rank  # would show on another rank if they shared memory
        await comm.barrier()
        assert all((array == comm.rank).all() for array in results)


@program
async def ledger_counts_what_the_formulas_say(comm: Communicator) -> None:
    p, r = comm.size, comm.rank
    half = await comm.split(r % 2)
    assert half is not None
    for group in (comm, half):
        for n in (0, 3, 1001, 20_000):
            array = np.zeros(n, "float32")
            before = group.ledger.total("all_reduce", group.group)
            for algorithm in ("auto", "ring", "halving_doubling"):
                await group.all_reduce(array, algorithm=algorithm)
            after = group.ledger.total("all_reduce", group.group)
            asked = [{"op": "all_reduce", "nbytes": 4 * n, "group": group.size, "itemsize": 4,
                      "rank": group.rank, "algorithm": a}
                     for a in ("auto", "ring", "halving_doubling")]
            assert after.bytes_sent - before.bytes_sent == sum(
                collective_bytes(**case) for case in asked)
            assert after.messages - before.messages == sum(
                collective_messages(**case) for case in asked)
            assert after.calls - before.calls == 3
    before = comm.ledger.total("send"), comm.ledger.total("recv")
    request = comm.isend(np.zeros((3, 5)), (r + 1) % p)
    await comm.recv((r - 1) % p)
    await request
    sent, received = comm.ledger.total("send"), comm.ledger.total("recv")
    assert sent.bytes_sent - before[0].bytes_sent == 120
    assert sent.messages - before[0].messages == 1
    assert received.bytes_received - before[1].bytes_received == 120
    totals = await comm.all_gather(np.array([[comm.ledger.total().bytes_sent,
                                              comm.ledger.total().bytes_received]]))
    assert totals[:, 0].sum() == totals[:, 1].sum()  # what is sent arrives


async def bits(comm: Communicator) -> dict[str, bytes]:
    """Sums of numbers that round: any other order of summation would give other bits."""
    x = np.random.default_rng(comm.rank).normal(size=203).astype("float32")
    found = {}
    for operation in ("all_reduce", "reduce_scatter", "reduce"):
        for algorithm in algorithms(comm, operation):
            for dtype in ("float32", "float16", ml_dtypes.bfloat16):
                for op in ("sum", "mean", "prod"):
                    call = getattr(comm, operation)
                    got = await call(x.astype(dtype), op, algorithm=algorithm)
                    key = f"{operation}/{algorithm}/{np.dtype(dtype)}/{op}"
                    found[key] = b"" if got is None else got.tobytes()
    return found


async def native(comm: Communicator) -> None:
    """The engine's own collectives give the same values; the ledger admits it cannot count them."""
    p, r, own = comm.size, comm.rank, {"algorithm": "native"}
    mine = [data(s, (2 * p, 3), "float64") for s in range(p)]
    x = mine[r]
    before = comm.ledger.total().uncounted
    check(await comm.all_reduce(x, **own), np.sum(mine, 0))
    check(await comm.all_reduce(x, "mean", **own), np.mean(mine, 0))
    check(await comm.reduce_scatter(x, "max", **own), np.max(mine, 0)[2 * r:2 * r + 2])
    check(await comm.all_gather(x, axis=1, **own), np.concatenate(mine, 1))
    check(await comm.broadcast(x if r == 1 else None, 1, **own), mine[1])
    check(await comm.all_to_all(x, **own), np.concatenate([m[2 * r:2 * r + 2] for m in mine]))
    at_root = await comm.reduce(x, "min", 1, **own)
    assert (at_root is None) == (r != 1)
    half = await comm.split(r % 2)
    assert half is not None
    check(await half.all_reduce(x, **own), np.sum(mine[r % 2::2], 0))
    await comm.barrier(**own)
    assert comm.ledger.total().uncounted - before == 9


async def run_all(comm: Communicator) -> tuple[dict[str, str | None], dict[str, bytes]]:
    """All programs one after the other: the tracebacks of those that failed, and the bits."""
    failed: dict[str, str | None] = dict.fromkeys([*PROGRAMS, "native"])
    for name, made in {**PROGRAMS, "native": native}.items():
        try:
            await made(comm)
        except Exception:
            failed[name] = traceback.format_exc()
            return failed, {}  # the other ranks may be elsewhere now
    return failed, await bits(comm)
