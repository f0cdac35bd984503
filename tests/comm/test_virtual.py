"""The virtual world: same order every time, many ranks, steps that can be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distlearn.comm import ALGORITHMS, Communicator, Recording, run
from distlearn.comm.errors import RankError


async def busy(comm: Communicator, log: list[tuple[int, str]]) -> Any:
    """A bit of everything, in an order that depends on the scheduler."""
    rng = np.random.default_rng(comm.rank)
    x = rng.normal(size=37).astype("float32")
    for step in range(3):
        log.append((comm.rank, f"start {step}"))
        half = await comm.split(comm.rank % 2)
        assert half is not None
        x = await half.all_reduce(x, "mean", algorithm="ring")
        request = comm.isend(x, (comm.rank + 1) % comm.size, step)
        y = await comm.recv((comm.rank - 1) % comm.size, step)
        await request
        x = x + y
    return x, comm.ledger.entries


def test_two_runs_do_the_same_in_the_same_order() -> None:
    logs: list[list[tuple[int, str]]] = [[], []]
    (first, second) = (run(busy, 8, args=(log,)) for log in logs)
    assert logs[0] == logs[1]
    for (x, entries), (y, others) in zip(first, second, strict=True):
        assert x.tobytes() == y.tobytes()
        assert entries == others


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_reduce"])
def test_64_ranks(algorithm: str) -> None:
    async def program(comm: Communicator) -> Any:
        return await comm.all_reduce(np.arange(130) * comm.rank, algorithm=algorithm)

    for got in run(program, 64, ranks_per_node=8):
        np.testing.assert_array_equal(got, np.arange(130) * (63 * 32))


def order_of(algorithm: str, p: int, n: int) -> Any:
    """The sum each element gets, from numbers for which every order gives another result."""
    values = np.random.default_rng(1).normal(size=(p, n)).astype("float32") * 10.0 ** np.arange(
        p).astype("float32")[:, None]

    async def program(comm: Communicator) -> Any:
        return await comm.all_reduce(values[comm.rank], algorithm=algorithm)

    results = run(program, p)
    assert all(r.tobytes() == results[0].tobytes() for r in results)
    return values, results[0]


def test_the_ring_sums_chunk_c_from_rank_c_plus_1_on() -> None:
    values, got = order_of("ring", 5, 10)
    for chunk in range(5):
        part = values[:, 2 * chunk:2 * chunk + 2]
        total = part[(chunk + 1) % 5]
        for i in range(2, 6):
            total = total + part[(chunk + i) % 5]
        assert total.tobytes() == got[2 * chunk:2 * chunk + 2].tobytes()


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "tree"])
def test_doubling_and_tree_sum_pairs_of_pairs(algorithm: str) -> None:
    (x0, x1, x2, x3, x4, x5, x6, x7), got = order_of(algorithm, 8, 6)
    assert (((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7))).tobytes() == got.tobytes()


def test_halving_sums_distant_ranks_first() -> None:
    (x0, x1, x2, x3, x4, x5, x6, x7), got = order_of("halving_doubling", 8, 8)
    assert (((x0 + x4) + (x2 + x6)) + ((x1 + x5) + (x3 + x7))).tobytes() == got.tobytes()


def test_reduce_scatter_and_reduce_give_the_bits_of_all_reduce() -> None:
    values = np.random.default_rng(0).normal(size=(6, 23))

    async def program(comm: Communicator) -> None:
        x = values[comm.rank]
        for algorithm in ("ring", "halving_doubling"):
            whole = await comm.all_reduce(x, algorithm="ring")
            part = await comm.reduce_scatter(x, algorithm="ring")
            assert (await comm.all_gather(part, algorithm=algorithm)).tobytes() == whole.tobytes()
        at_root = await comm.reduce(x, algorithm="ring")
        assert at_root is None or at_root.tobytes() == whole.tobytes()

    run(program, 6)


def test_the_recording_shows_every_step() -> None:
    async def program(comm: Communicator) -> None:
        await comm.all_gather(np.array([10 + comm.rank], "int8"), algorithm="ring")
        half = await comm.split(comm.rank // 2)
        assert half is not None
        await half.broadcast(np.array([1.0]))

    recording = Recording()
    run(program, 4, recording=recording)
    gather, *broadcasts = recording.collectives
    assert gather.location.split(":")[0].endswith("test_virtual.py")
    assert [sorted(held) for held in gather.steps[0].held] == [[0], [1], [2], [3]]
    assert [sorted(held) for held in gather.steps[1].held] == [[0, 3], [0, 1], [1, 2], [2, 3]]
    assert gather.steps[-1].held[2][3].tolist() == [13]
    assert [step.nbytes for step in gather.steps] == [(), (1,) * 4, (1,) * 4, (1,) * 4]
    assert [record.group for record in broadcasts] == [(0, 1), (2, 3)]


def test_overflow_is_a_result() -> None:
    async def program(comm: Communicator) -> Any:
        return await comm.all_reduce(np.array([60_000], "float16"))

    assert np.isinf(run(program, 2)[0]).all()


def test_a_negative_zero_is_the_same_on_all_ranks() -> None:
    """numpy's maximum(0., -0.) depends on the order of its arguments; the plan fixes it."""
    async def program(comm: Communicator) -> Any:
        x = np.where(np.arange(16) % comm.size == comm.rank, 0.0, -0.0)
        return [await comm.all_reduce(x, "max", algorithm=a) for a in ALGORITHMS["all_reduce"]]

    results = run(program, 4, ranks_per_node=2)
    for algorithm in zip(*results, strict=True):
        assert len({x.tobytes() for x in algorithm}) == 1


def test_ranks_are_independent_until_they_meet() -> None:
    async def program(comm: Communicator) -> int:
        if comm.rank == 0:
            return 0
        await comm.send(np.array(comm.rank), 1) if comm.rank == 2 else None
        return int(await comm.recv(2)) if comm.rank == 1 else comm.rank

    assert run(program, 3) == [0, 2, 2]


def test_awaiting_twice_is_refused() -> None:
    async def program(comm: Communicator) -> None:
        operation = comm.barrier()
        await operation
        await operation

    with pytest.raises(RuntimeError, match="was already awaited"):
        run(program, 2)


def test_errors_keep_what_led_to_them() -> None:
    async def exits(comm: Communicator) -> None:
        raise SystemExit(3)

    async def fails(comm: Communicator) -> None:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904 - on purpose

    with pytest.raises(RankError) as left:
        run(exits, 2)
    assert isinstance(left.value.__cause__, SystemExit)
    with pytest.raises(ValueError, match="second") as caught:
        run(fails, 2)
    assert isinstance(caught.value.__context__, KeyError)
    assert not caught.value.__suppress_context__
