"""The wanted values of the ranks exercises agree with distlearn's communicators and models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from distlearn.comm import run
from distlearn.grading import Case, find
from distlearn.hardware import Link, collective_bytes, collective_time
from distlearn.nn import EVALUATION, Grads, LossScale, ModelConfig, add_gradients, build
from tests.exercises.material import hidden


def all_cases(name: str) -> Iterator[Case]:
    yield from find(name).cases
    yield from hidden()[name]


def measured(operation: str, x: Any, **options: Any) -> tuple[list[Any], list[int]]:
    """Results, and bytes that each rank sent, of the library's own collective."""
    async def program(comm: Any) -> tuple[Any, int]:
        result = await getattr(comm, operation)(np.array(x[comm.rank]), **options)
        return result, comm.ledger.total().bytes_sent

    nodes = {"ranks_per_node": options.pop("per_node")} if "per_node" in options else {}
    pairs = run(program, ranks=len(x), **nodes)
    return [result for result, _ in pairs], [sent for _, sent in pairs]


def test_ring_equals_the_librarys_ring() -> None:
    for case in all_cases("ranks/ring"):
        results, sent = measured("all_reduce", case.args[0], algorithm="ring")
        np.testing.assert_allclose(results, case.wanted["results"], rtol=1e-14, atol=1e-14)
        assert sum(sent) == case.wanted["total"]
        assert max(sent) <= case.wanted["most"]
        p = len(sent)
        assert case.wanted["to"] == [[(r + 1) % p] if p > 1 else [] for r in range(p)]


def test_halves_equal_one_all_reduce_and_cost_as_much_as_two_collectives() -> None:
    for case in all_cases("ranks/halves"):
        x = case.args[0]
        results, _ = measured("all_reduce", x)
        np.testing.assert_allclose(results, case.wanted["results"], rtol=1e-14, atol=1e-14)
        p, n = len(x), np.size(x[0])
        if "total" not in case.wanted:
            continue
        for algorithm in ("ring", "halving_doubling"):
            sent = [sum(collective_bytes(op, 8 * n, p, algorithm, rank=rank, itemsize=8)
                        for op in ("reduce_scatter", "all_gather")) for rank in range(p)]
            assert sum(sent) == case.wanted["total"]
            assert max(sent) <= case.wanted["most"]


def test_bytes_equal_the_ledger() -> None:
    async def star(comm: Any, n: int, itemsize: int) -> int:
        x = np.zeros((n, itemsize), np.uint8)
        for rank in range(1, comm.size):
            if comm.rank == 0:
                await comm.recv(rank)
            elif comm.rank == rank:
                await comm.send(x, 0)
        for rank in range(1, comm.size):
            if comm.rank == 0:
                await comm.send(x, rank)
            elif comm.rank == rank:
                await comm.recv(0)
        return comm.ledger.total().bytes_sent

    types = {1: np.uint8, 2: np.float16, 4: np.float32, 8: np.float64}
    seen = set()
    for case in all_cases("ranks/bytes"):
        algorithm, p, n, itemsize = case.args
        seen.add(algorithm)
        if algorithm == "star":
            assert run(star, ranks=p, args=(n, itemsize)) == case.wanted
            continue
        x = np.zeros((p, n), types[itemsize])
        assert measured("all_reduce", x, algorithm=algorithm)[1] == case.wanted
        assert case.wanted == [
            collective_bytes("all_reduce", n * itemsize, p, algorithm, rank=rank, itemsize=itemsize)
            for rank in range(p)]
    assert seen == {"star", "tree", "ring"}


def test_at_the_crossover_both_take_equally_long() -> None:
    for case in all_cases("ranks/crossover"):
        p, alpha, beta = case.args
        link = Link(alpha_s=alpha, beta_s_per_byte=beta)

        def time(n: float, algorithm: str, p: int = p, link: Link = link) -> float:
            return collective_time("all_reduce", n, p, link, algorithm)

        n = case.wanted
        assert time(n, "ring") == pytest.approx(time(n, "tree"), rel=1e-9)
        assert time(2 * n + 1000, "ring") < time(2 * n + 1000, "tree")
        if n > 0:
            assert time(n / 2, "ring") > time(n / 2, "tree")


def test_two_levels_equal_the_hierarchical_all_reduce() -> None:
    for case in all_cases("ranks/groups"):
        x, per_node = case.args
        results, _ = measured("all_reduce", x, algorithm="hierarchical", per_node=per_node)
        np.testing.assert_allclose(results, case.wanted["results"], rtol=1e-13, atol=1e-13)
        nodes, n = len(x) // per_node, len(x[0])
        most = max(sum(collective_bytes("all_reduce", 8 * n, nodes, algorithm, rank=rank,
                                        itemsize=8) for rank in range(nodes))
                   for algorithm in ("ring", "recursive_doubling"))
        assert case.wanted["between"] == [per_node, most]


def test_step_follows_the_slope_of_the_whole_loss() -> None:
    for case in all_cases("ranks/step"):
        w, x, y, lr = case.args
        rows, targets = np.concatenate([np.array(a) for a in x]), np.concatenate(y)
        gradient = np.mean([(row @ w - target) * row
                            for row, target in zip(rows, targets, strict=True)], axis=0)
        for result in case.wanted["results"]:
            np.testing.assert_allclose(result, np.array(w) - lr * gradient, rtol=1e-12, atol=1e-12)


def test_factors_make_a_real_model_learn_the_same_as_from_the_whole_batch() -> None:
    model = build(ModelConfig(layers=1, hidden=8, heads=2, vocab=13, seq=6))
    params = model.init(seed=0, dtype=np.float64)
    dice = np.random.default_rng(2)
    tried = 0
    for case in all_cases("ranks/accumulation"):
        (tokens,) = case.args
        if max(map(max, tokens)) > 12:
            continue
        tried += 1
        shape = (len(tokens), len(tokens[0]), 2, 6)
        ids, targets = dice.integers(13, size=shape), dice.integers(13, size=shape)
        for r, row in enumerate(tokens):
            for i, n in enumerate(row):
                targets[r, i].reshape(-1)[n:] = -100
        _, right = model.loss_and_gradients(params, ids.reshape(-1, 6), targets.reshape(-1, 6))
        total = Grads()
        for r, row in enumerate(tokens):
            for i, n in enumerate(row):
                if n:
                    factor = case.wanted[r][i] / len(tokens)  # the mean over the ranks
                    context = replace(EVALUATION, loss_scale=factor)
                    _, grads = model.loss_and_gradients(params, ids[r, i], targets[r, i], context)
                    add_gradients(total, grads)
        for name in right:
            np.testing.assert_allclose(total[name], right[name], rtol=1e-10, atol=1e-14)
    assert tried >= 8


def test_scales_equal_those_of_the_library_on_real_half_precision() -> None:
    for case in all_cases("ranks/scaling"):
        largest, first, window = case.args
        scale, used = LossScale.torch(initial=first, window=window), []
        for value in largest:
            used.append(scale.scale)
            with np.errstate(over="ignore"):
                half = np.float64(value * scale.scale).astype(np.float16)
            scale = scale.after_step(not np.isfinite(half))
        assert used == case.wanted
