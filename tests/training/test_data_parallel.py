"""Data parallelism changes nothing: 50 steps on 1 rank and on 4 ranks of each engine."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import pytest

from distlearn.comm import run
from tests.training.data_parallel import STEPS, train


@lru_cache
def alone() -> tuple[list[float], float]:
    return run(train, ranks=1)[0]  # type: ignore[no-any-return]


def test_there_is_something_to_learn() -> None:
    losses, _ = alone()
    assert len(losses) == STEPS
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])


@pytest.mark.parametrize(
    ("engine", "module"), [("virtual", "numpy"), ("mpi", "mpi4py"), ("torch", "torch")]
)
def test_four_ranks_train_as_one(engine: str, module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'distlearn[{engine}]'")
    losses, weights = alone()
    for got_losses, got_weights in run(train, ranks=4, engine=engine):
        np.testing.assert_allclose(got_losses, losses, rtol=1e-10)
        assert got_weights == pytest.approx(weights, rel=1e-10)
