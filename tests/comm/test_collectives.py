"""The same 20 programs on every engine: virtual ranks 1-16, four MPI processes, four of torch.

MPI and torch are started once each, for all programs. Under mpiexec or torchrun
(``mpiexec -n 4 python -m pytest tests/comm/test_collectives.py -k mpi``) the ranks are those.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pytest

from distlearn.comm import run
from distlearn.comm.mpi import launched as mpi_launched
from distlearn.comm.torch_engine import launched as torch_launched
from tests.comm.collective_programs import PROGRAMS, bits, run_all

RANKS_PER_NODE = 2


@lru_cache
def outcomes(engine: str, ranks: int) -> list[tuple[dict[str, str | None], dict[str, bytes]]]:
    """One start of the engine for all programs."""
    return run(run_all, ranks, engine, ranks_per_node=RANKS_PER_NODE, timeout=240)


def missing(module: str) -> Any:
    extra = {"mpi4py": "mpi"}.get(module, module)
    return pytest.mark.skipif(
        find_spec(module) is None,
        reason=f"{module} is not installed: pip install 'distlearn[{extra}]'")


REAL = [
    pytest.param("mpi", None if mpi_launched() else 4, id="mpi-4", marks=missing("mpi4py")),
    pytest.param("torch", None if torch_launched() else 4, id="torch-4", marks=missing("torch")),
]
VIRTUAL = [pytest.param("virtual", n, id=f"virtual-{n}") for n in range(1, 17)]


def test_there_are_20_programs() -> None:
    assert len(PROGRAMS) == 20


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("engine", "ranks"), [*VIRTUAL, *REAL])
def test_program(engine: str, ranks: int, name: str) -> None:
    if engine == "virtual":
        run(PROGRAMS[name], ranks, ranks_per_node=RANKS_PER_NODE)
        return
    for rank, (failed, _) in enumerate(outcomes(engine, ranks)):
        assert failed[name] is None, f"rank {rank}:\n{failed[name]}"


@pytest.mark.parametrize(("engine", "ranks"), REAL)
def test_native_collectives(engine: str, ranks: int) -> None:
    for rank, (failed, _) in enumerate(outcomes(engine, ranks)):
        assert failed["native"] is None, f"rank {rank}:\n{failed['native']}"


@pytest.mark.parametrize(("engine", "ranks"), REAL)
def test_all_engines_give_the_same_bits(engine: str, ranks: int) -> None:
    found = [got for _, got in outcomes(engine, ranks)]
    assert len(found[0]) > 50
    assert found == run(bits, len(found), ranks_per_node=RANKS_PER_NODE)
