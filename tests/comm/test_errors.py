"""What goes wrong between virtual ranks ends at once, with an error that says who and where."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import currentframe
from typing import Any

import numpy as np
import pytest

from distlearn.comm import (
    CommError,
    Communicator,
    DeadlockError,
    MismatchError,
    MissingParticipantError,
    NotAwaitedError,
    RankError,
    UnmatchedRecvError,
    UnmatchedSendError,
    run,
)

X = np.zeros(4, "float32")
HERE = "test_errors.py"


def line() -> int:
    """Line of the caller."""
    frame = currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def failure(kind: type[CommError], program: Callable[..., Coroutine[Any, Any, Any]],
            ranks: int = 4) -> CommError:
    with pytest.raises(kind) as caught:
        run(program, ranks)
    assert type(caught.value) is kind
    return caught.value


def test_everyone_receives_first() -> None:
    async def program(comm: Communicator) -> None:
        await comm.recv((comm.rank - 1) % comm.size, tag=3)

    at = line() - 2
    error = failure(DeadlockError, program)
    assert "deadlock: rank 0 waits for rank 3 waits for rank 2 waits for rank 1 waits for rank 0" \
        in str(error)
    assert re.search(rf"rank 2 waits in recv\(source=1, tag=3\) at .*{HERE}:{at} for rank 1",
                     str(error))
    assert [(w.rank, w.peers) for w in error.waiting] == [(0, (3,)), (1, (0,)), (2, (1,)),
                                                          (3, (2,))]
    assert all(w.location.endswith(f"{HERE}:{at}") for w in error.waiting)


def test_everyone_sends_first() -> None:
    async def program(comm: Communicator) -> None:
        await comm.send(X, (comm.rank + 1) % comm.size)
        await comm.recv((comm.rank - 1) % comm.size)

    error = failure(DeadlockError, program)
    assert "rank 0 waits in send(float32 (4,), dest=1, tag=0)" in str(error)
    assert "start the sends with isend" in str(error)


def test_tags_that_do_not_meet() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 0:
            await comm.send(X, 1, tag=1)
        else:
            await comm.recv(0, tag=2)

    assert "different tags: 1 and 2" in str(failure(DeadlockError, program, 2))


def test_send_without_recv() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 0:
            await comm.send(X, 1)

    error = failure(UnmatchedSendError, program)
    assert re.search(r"rank 0 waits in send\(float32 \(4,\), dest=1, tag=0\) at .*test_errors.py:"
                     r"\d+, but rank 1 has finished and never receives it", str(error))


def test_isend_without_recv() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 2:
            comm.isend(X, 1, tag=9)

    error = failure(UnmatchedSendError, program)
    assert "rank 2's send(float32 (4,), dest=1, tag=9) at" in str(error)
    assert "was never received by rank 1" in str(error)


def test_recv_without_send() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 3:
            await comm.recv(0)

    assert "rank 0 has finished and never sends it" in str(failure(UnmatchedRecvError, program))


def test_irecv_without_send() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 1:
            comm.irecv(0)

    assert "was never sent by rank 0" in str(failure(UnmatchedRecvError, program))


def test_missing_participant() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank != 2:
            await comm.all_reduce(X)

    error = failure(MissingParticipantError, program)
    says = "all_reduce(float32 (4,), op='sum') waits for rank 2, which has finished without calling"
    assert says in str(error)
    assert [w.rank for w in error.waiting] == [0, 1, 3]
    assert all(w.peers == (2,) for w in error.waiting)


def test_missing_in_a_subgroup_while_others_go_on() -> None:
    async def program(comm: Communicator) -> None:
        half = await comm.split(comm.rank % 2)
        assert half is not None
        if comm.rank == 3:
            return
        await half.barrier()

    error = failure(MissingParticipantError, program)
    assert "barrier() in group (1, 3) waits for rank 3" in str(error)
    assert [w.rank for w in error.waiting] == [1]


def test_collective_against_message_is_a_deadlock() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 0:
            await comm.recv(1)
        else:
            await comm.barrier()

    error = failure(DeadlockError, program, 2)
    assert "rank 0 waits in recv(source=1, tag=0)" in str(error)
    assert "rank 1 waits in barrier()" in str(error)


CASES: list[tuple[Callable[[Communicator], Any], str]] = [
    (lambda c: c.all_reduce(np.zeros(4 + (c.rank == 2))),
     "shape differs: (4,) on ranks 0, 1, 3; (5,) on rank 2"),
    (lambda c: c.all_reduce(np.zeros(4, "float32" if c.rank else "float64")),
     "dtype differs: float64 on rank 0; float32 on ranks 1, 2, 3"),
    (lambda c: c.all_reduce(X) if c.rank else c.all_gather(X),
     "operation differs: all_gather on rank 0; all_reduce on ranks 1, 2, 3"),
    (lambda c: c.all_reduce(X, "max" if c.rank == 1 else "sum"), "reduction differs"),
    (lambda c: c.reduce(X, root=c.rank % 2), "root differs: 0 on ranks 0, 2; 1 on ranks 1, 3"),
    (lambda c: c.all_gather(np.zeros((2, c.rank))), "shape apart from the joined axis differs"),
    (lambda c: c.all_gather(X, axis=0 if c.rank else None), "axis differs"),
    (lambda c: c.all_reduce(X, algorithm="tree" if c.rank else "ring"), "algorithm differs"),
    (lambda c: c.reduce_scatter(X, counts=[1] * 4 if c.rank else [4, 0, 0, 0]), "counts differs"),
    (lambda c: c.broadcast(X if c.rank else np.zeros(5, "float32")), "shape differs"),
    (lambda c: c.all_to_all(np.zeros((4, 1 + c.rank))), "shape apart from the first axis differs"),
    (lambda c: c.split(0) if c.rank else c.barrier(), "operation differs"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_mismatch(case: int) -> None:
    call, says = CASES[case]

    async def program(comm: Communicator) -> None:
        await call(comm)

    error = failure(MismatchError, program)
    assert says in str(error)
    assert [w.rank for w in error.waiting] == [0, 1, 2, 3]
    assert all(HERE in w.location for w in error.waiting)


def test_mismatch_is_found_among_those_that_have_come() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 0:
            await comm.barrier()
        elif comm.rank == 1:
            await comm.all_reduce(X)

    assert "operation differs: barrier on rank 0; all_reduce on rank 1" in str(
        failure(MismatchError, program))


def test_forgotten_await() -> None:
    async def program(comm: Communicator) -> None:
        comm.all_reduce(X)

    error = failure(NotAwaitedError, program)
    assert "rank 0 called all_reduce(float32 (4,), op='sum')" in str(error)
    assert "write 'await'" in str(error)


def test_an_exception_in_one_rank_is_the_one_reported() -> None:
    ended = []

    async def program(comm: Communicator) -> None:
        try:
            await comm.barrier()
            if comm.rank == 2:
                raise ZeroDivisionError("mine")
            await comm.barrier()
        finally:
            ended.append(comm.rank)

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        run(program, 4)
    assert caught.value.__notes__ == ["in rank 2 of 4 (virtual engine)"]
    assert sorted(ended) == [0, 1, 2, 3]


def test_sys_exit_does_not_leave_the_caller() -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 1:
            sys.exit(3)
        await comm.barrier()

    error = failure(RankError, program)
    assert isinstance(error, RankError)
    assert (error.rank, error.exit_code) == (1, 3)


def test_communicating_in_finally_after_a_failure_does_not_hide_it() -> None:
    async def program(comm: Communicator) -> None:
        try:
            if comm.rank == 1:
                raise KeyError("first")
            await comm.barrier()
        finally:
            await comm.barrier()

    with pytest.raises((KeyError, CommError)) as caught:
        run(program, 3)
    assert isinstance(caught.value, KeyError) or "barrier" in str(caught.value)


def test_what_fails_while_ranks_are_ended_does_not_hide_the_first_error() -> None:
    async def program(comm: Communicator) -> None:
        try:
            if comm.rank == 2:
                raise ZeroDivisionError("first")
            await comm.barrier()
        except ZeroDivisionError:
            raise
        except BaseException:
            raise KeyError("while it is closed") from None

    with pytest.raises(ZeroDivisionError, match="first"):
        run(program, 4)


def test_a_caught_foreign_awaitable_is_reported_all_the_same() -> None:
    import asyncio

    async def program(comm: Communicator) -> int:
        with suppress(TypeError):
            await asyncio.sleep(0)
        return 5

    with pytest.raises(TypeError, match="can only await the operations of its communicator"):
        run(program, 2)


def test_foreign_awaitables_are_refused_at_their_line() -> None:
    import asyncio

    async def program(comm: Communicator) -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="can only await the operations of its communicator"):
        run(program, 2)


def test_programs_must_be_coroutines() -> None:
    with pytest.raises(TypeError, match="must be written as 'async def'"):
        run(lambda comm: 3, 2)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("call", "kind", "says"), [
    (lambda c: c.send(X, 2), ValueError, "dest = 2 is not a rank of a group of 2"),
    (lambda c: c.recv(-1), ValueError, "source = -1"),
    (lambda c: c.recv(1, tag=40_000), ValueError, "tag = 40000 is not a whole number in 0 .. 327"),
    (lambda c: c.recv(1, tag=1.5), ValueError, "tag = 1.5 is not a whole number"),
    (lambda c: c.send(X, 1.0), ValueError, "dest = 1.0 is not a rank"),
    (lambda c: c.broadcast(X, root="0"), ValueError, "root = '0' is not a rank"),
    (lambda c: c.reduce_scatter(X, counts=[1.5, 2.5]), ValueError, "counts = [1.5, 2.5]"),
    (lambda c: c.reduce_scatter(X, axis=0.0), ValueError, "axis = 0.0 is not an axis"),
    (lambda c: c.split("a"), ValueError, "color = 'a' of a split is not a whole number"),
    (lambda c: c.split(0, key=None), ValueError, "key = None of a split"),
    (lambda c: c.all_reduce(np.ones(2, "m8[s]"), "mean"), TypeError, "would not stay"),
    (lambda c: c.all_reduce(X, "avg"), ValueError, "op = 'avg' is not one of sum, mean"),
    (lambda c: c.all_reduce(X, algorithm="star"), ValueError, "'star' is not one of those of"),
    (lambda c: c.all_reduce(np.arange(3), "mean"), TypeError, "dtype int64 would not stay"),
    (lambda c: c.all_reduce(np.array(["a"]), "max"), TypeError, "not defined for arrays of dtype"),
    (lambda c: c.all_reduce([object()]), TypeError, "only arrays of plain numbers"),
    (lambda c: c.broadcast(None), ValueError, "brings no array"),
    (lambda c: c.reduce_scatter(X, counts=[3, 3]), ValueError, "add up to 4"),
    (lambda c: c.reduce_scatter(X, axis=1), ValueError, "axis = 1 is not an axis"),
    (lambda c: c.reduce_scatter(np.float32(1)), ValueError, "axis = 0 is not an axis"),
    (lambda c: c.scatter([X]), ValueError, "a list of 2 arrays"),
    (lambda c: c.scatter(X, root=1), ValueError, "is not the root"),
    (lambda c: c.all_to_all([X, X.astype(int)]), TypeError, "must have one dtype"),
    (lambda c: c.all_to_all(np.float32(1)), ValueError, "takes a numpy array, or a list"),
    (lambda c: c.all_gather(X, algorithm="recursive_doubling"), ValueError, "is not one of those"),
])
def test_arguments(call: Callable[[Communicator], Any], kind: type[Exception], says: str) -> None:
    async def program(comm: Communicator) -> None:
        if comm.rank == 0:
            await call(comm)

    with pytest.raises(kind, match=re.escape(says)):
        run(program, 2)


def test_hierarchical_needs_even_nodes() -> None:
    async def program(comm: Communicator) -> None:
        await comm.all_gather(X, algorithm="hierarchical")

    with pytest.raises(ValueError, match="same number of ranks on every node"):
        run(program, 3, ranks_per_node=2)


@pytest.mark.parametrize(("options", "says"), [
    ({"ranks": 0}, "ranks = 0"), ({"ranks": 2.0}, "ranks = 2.0"), ({"ranks": None}, "ranks=8"),
    ({"ranks_per_node": 1.5}, "ranks_per_node = 1.5 must be a whole number"),
    ({"engine": "mpj"}, "engine = 'mpj'"), ({"ranks_per_node": 0}, "ranks_per_node = 0"),
])
def test_run_arguments(options: dict[str, Any], says: str) -> None:
    async def program(comm: Communicator) -> None:
        pass

    with pytest.raises(ValueError, match=re.escape(says)):
        run(program, **{"ranks": 2, **options})
