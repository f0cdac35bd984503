"""Plans, followed by hand: every contribution arrives once, chunks are cut as the papers say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.comm import ALGORITHMS, Message, Plan, plan
from distlearn.comm.moves import bind, trace
from distlearn.comm.plans import beside, even_split

PAIRS = [(operation, algorithm) for operation, names in ALGORITHMS.items() for algorithm in names]
REDUCING = {"all_reduce", "reduce", "reduce_scatter"}


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, int]:
    operation, algorithm = draw(st.sampled_from(PAIRS))
    size = draw(st.integers(1, 24))
    root = draw(st.integers(0, size - 1)) if operation in (
        "broadcast", "reduce", "gather", "scatter") else 0
    per_node = draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0
                                     or operation == "all_reduce"]))
    nodes = tuple(r // per_node for r in range(size))
    return plan(operation, algorithm, size, root, nodes), root


@given(plans())
def test_every_contribution_arrives_exactly_once(made: tuple[Plan, int]) -> None:
    """Follow who contributed to each chunk; where sums are formed, nobody may count twice."""
    p, root = made
    held: list[dict[int, Counter[int]]] = [
        {chunk: Counter([r]) for chunk in p.initial[r]} for r in range(p.size)]
    for step in p.steps:
        sent = [(m, {c: held[m.source][c] for c in m.chunks}) for m in step]
        for message, chunks in sent:
            for chunk, who in chunks.items():
                mine = held[message.dest]
                mine[chunk] = mine[chunk] + who if message.reduce else who
    for r in range(p.size):
        for chunk in p.final[r]:
            if p.operation in REDUCING:
                want = Counter(range(p.size))
            elif p.operation in ("broadcast", "scatter"):
                want = Counter([root])
            elif p.operation == "all_to_all":
                want = Counter([chunk // p.size])
            else:
                want = Counter([chunk])
            assert held[r][chunk] == want


@given(plans())
def test_one_port(made: tuple[Plan, int]) -> None:
    """In a step each rank sends at most one message and receives at most one, never to itself."""
    for step in made[0].steps:
        assert max(Counter(m.source for m in step).values()) == 1
        assert max(Counter(m.dest for m in step).values()) == 1
        assert all(m.source != m.dest for m in step)


@pytest.mark.parametrize("p", range(1, 18))
def test_barrier_tells_everyone_about_everyone(p: int) -> None:
    heard = [{r} for r in range(p)]
    for step in plan("barrier", "dissemination", p).steps:
        before = [set(h) for h in heard]
        for message in step:
            heard[message.dest] |= before[message.source]
    assert all(h == set(range(p)) for h in heard)


@pytest.mark.parametrize(("operation", "algorithm", "p", "steps"), [
    ("all_reduce", "ring", 8, 14), ("all_reduce", "halving_doubling", 8, 6),
    ("all_reduce", "recursive_doubling", 8, 3), ("all_reduce", "tree", 8, 6),
    ("all_reduce", "halving_doubling", 7, 6),  # 2 log2(4), and folding in and out
    ("broadcast", "tree", 9, 4), ("all_gather", "halving_doubling", 16, 4),
    ("all_to_all", "pairwise", 8, 7), ("barrier", "dissemination", 9, 4),
])
def test_number_of_steps(operation: str, algorithm: str, p: int, steps: int) -> None:
    """As in Thakur, Rabenseifner and Gropp 2005, tables of sections 4.1 to 4.5."""
    assert len(plan(operation, algorithm, p).steps) == steps


def test_ring_all_reduce_of_three_as_drawn_in_every_textbook() -> None:
    steps = plan("all_reduce", "ring", 3).steps
    arrows = [[(m.source, m.dest, m.chunks) for m in step] for step in steps]
    assert arrows[0] == [(0, 1, (2,)), (1, 2, (0,)), (2, 0, (1,))]
    assert arrows[1] == [(0, 1, (1,)), (1, 2, (2,)), (2, 0, (0,))]  # now rank r owns chunk r
    assert arrows[2] == [(0, 1, (0,)), (1, 2, (1,)), (2, 0, (2,))]


@given(st.integers(0, 10_000), st.integers(1, 70))
def test_even_split_is_numpys(total: int, parts: int) -> None:
    assert list(even_split(total, parts)) == [len(x) for x in np.array_split(range(total), parts)]


@given(plans(), st.data())
def test_moves_stay_in_their_buffers(made: tuple[Plan, int], data: st.DataObject) -> None:
    p, _ = made
    sizes = tuple(data.draw(st.lists(st.integers(0, 5), min_size=p.chunks, max_size=p.chunks))
                  if p.chunks < 60 else [1] * p.chunks)
    moves = bind(p, sizes)
    for step in moves.steps:
        for transfer in step:
            for payload, own, out, _ in transfer.pieces:
                assert payload.buffer // 2 == transfer.source
                assert out.buffer == 2 * transfer.dest + 1 and own.buffer // 2 == transfer.dest
                for span in (payload, own, out):
                    assert 0 <= span.start <= span.stop <= moves.lengths[span.buffer]
                    assert span.stop - span.start == out.stop - out.start


@pytest.mark.parametrize(("steps", "says"), [
    (((Message(0, 1, (7,), False),),), "rank 0 has no chunk 7"),
    (((Message(0, 1, (0,), False), Message(1, 0, (0,), False)),),
     "rank 1 sends and overwrites chunk 0 in the same step"),
])
def test_impossible_plans_are_refused(steps: tuple[tuple[Message, ...], ...], says: str) -> None:
    bad = Plan("all_reduce", "mine", 2, 1, steps, ((0,), (0,)), ((0,), (0,)))
    with pytest.raises(ValueError, match=says):
        trace(bad)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="operation 'allreduce' is not one of all_reduce"):
        plan("allreduce", "ring", 4)
    with pytest.raises(ValueError, match="'rings' is not one of those of all_reduce: auto, ring"):
        plan("all_reduce", "rings", 4)
    with pytest.raises(ValueError, match="root = 4"):
        plan("broadcast", "tree", 4, root=4)
    with pytest.raises(ValueError, match="same number of ranks on every node"):
        plan("all_gather", "hierarchical", 3, nodes=(0, 0, 1))


def test_beside_joins_step_by_step() -> None:
    a, b = Message(0, 1, (0,), True), Message(2, 3, (0,), True)
    assert beside(((a,), (a,)), ((b,),)) == ((a, b), (a,))
