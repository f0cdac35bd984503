"""Ranks that are processes: how they start, and how one that fails ends them all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from distlearn.comm import (
    CommError,
    Communicator,
    DeadlockError,
    EngineError,
    MismatchError,
    RankError,
    Recording,
    TimeLimitError,
    launch,
    mpirun,
    run,
)
from distlearn.comm import job as jobs
from distlearn.comm.supervise import Supervisor, swept_shared_memory
from distlearn.comm.torch_engine import TorchTransport
from tests.comm.failing_programs import (
    OwnError,
    one_exits,
    one_is_killed,
    one_raises,
    result_stays,
    shapes_differ,
    waits_for_itself,
    waits_forever,
)

needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None,
                               reason="mpi4py is not installed: pip install 'distlearn[mpi]'")
needs_torch = pytest.mark.skipif(find_spec("torch") is None,
                                 reason="torch is not installed: pip install 'distlearn[torch]'")
ENGINES = [pytest.param("mpi", marks=needs_mpi), pytest.param("torch", marks=needs_torch)]
LIMIT_S = 120


@pytest.mark.parametrize("engine", ENGINES)
def test_the_error_of_one_rank_is_the_one_raised(engine: str) -> None:
    with pytest.raises(OwnError, match="mine") as caught:
        run(one_raises, 4, engine, timeout=LIMIT_S)
    notes = "\n".join(caught.value.__notes__)
    assert f"in rank 2 of 4 ({engine} engine)" in notes
    assert 'raise OwnError("mine")' in notes and "failing_programs.py" in notes


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_rank_ends_the_job(engine: str) -> None:
    with pytest.raises(RankError, match="SIGKILL") as caught:
        run(one_is_killed, 4, engine, timeout=LIMIT_S)
    assert caught.value.rank in (1, None)  # mpiexec does not tell which


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_exits_ends_the_job(engine: str) -> None:
    with pytest.raises(RankError, match=r"rank 1 of 4 called sys.exit\(3\)") as caught:
        run(one_exits, 4, engine, timeout=LIMIT_S)
    assert (caught.value.rank, caught.value.exit_code) == (1, 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mismatch_has_its_name_between_processes_too(engine: str) -> None:
    with pytest.raises(MismatchError) as caught:
        run(shapes_differ, 4, engine, timeout=LIMIT_S)
    assert "shape differs: (2,) on rank 2; (3,) on rank 3" in str(caught.value)
    assert "rank 3 waits in all_reduce(float64 (3,), op='sum')" in str(caught.value)
    assert [w.location.split(":")[0].endswith("failing_programs.py") for w in caught.value.waiting
            ] == [True, True]


@pytest.mark.parametrize("engine", ["virtual", *ENGINES])
def test_a_rank_that_waits_for_itself(engine: str) -> None:
    with pytest.raises(DeadlockError, match=r"rank \d waits for (rank \d|itself)"):
        run(waits_for_itself, 2, engine, timeout=LIMIT_S)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_that_cannot_travel_is_an_error(engine: str) -> None:
    with pytest.raises(TypeError, match=r"the result of rank \d cannot be handed"):
        run(result_stays, 2, engine, timeout=LIMIT_S)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_time_limit_ends_a_deadlock(engine: str) -> None:
    with pytest.raises(TimeLimitError, match=r"within timeout = 0.1 s on 2"):
        run(waits_forever, 2, engine, timeout=0.1)


@needs_mpi
def test_the_time_limit_says_where_ranks_were(tmp_path: Path) -> None:
    job = jobs.Job(waits_forever, (), 2, "mpi", None, None, 1.0)
    jobs.dump(job, tmp_path)
    command, variables = launch.mpiexec_command(
        2, [sys.executable, "-m", "distlearn.comm.worker", str(tmp_path)])
    with swept_shared_memory(), Supervisor() as supervisor:
        supervisor.start(command, {**os.environ, **variables})
        end = time.monotonic() + LIMIT_S
        text = ""
        while text.count("in waits_forever") < 2 and time.monotonic() < end:
            text = str(jobs.time_limit(tmp_path, job))
        assert "rank 0 was at" in text and "rank 1 was at" in text
        assert text.count("failing_programs.py") == 2
    assert None not in supervisor.statuses


SCRIPT = r"""
import sys
import numpy as np
from distlearn.comm import run

def helper(comm):
    if comm.size > 1 and comm.rank == 1 and "raise" in sys.argv:
        raise ValueError("on purpose")
    if comm.rank == 1 and "exit" in sys.argv:
        sys.exit(5)

async def program(comm):
    helper(comm)
    return (await comm.all_reduce(np.array(comm.rank + 1))).item()

if "early" in sys.argv:
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 1:
        sys.exit(4)
    MPI.COMM_WORLD.Barrier()
sums = run(program, engine="mpi", **({"ranks": 2} if "start" in sys.argv else {}))
print(f"sums {sums}\n", end="", flush=True)  # one write: ranks share the terminal
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@needs_mpi
def test_mpirun_runs_a_script_on_ranks(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert mpirun(3, script, timeout=LIMIT_S) == 0
    assert capfd.readouterr().out.count("sums [6, 6, 6]") == 3


@needs_mpi
@pytest.mark.parametrize(("how", "code", "says"), [
    ("raise", 1, "ValueError: on purpose"), ("exit", 1, "called sys.exit(5)"), ("early", 4, ""),
])
def test_mpirun_ends_all_ranks_when_one_fails(script: Path, how: str, code: int, says: str,
                                              capfd: pytest.CaptureFixture[str]) -> None:
    assert mpirun(2, script, [how], timeout=LIMIT_S) == code
    assert says in capfd.readouterr().err


@needs_mpi
def test_plain_mpiexec_ends_too(script: Path) -> None:
    """Without ``-m mpi4py``: the error is inside the program, so `run` ends the job itself."""
    command, variables = launch.mpiexec_command(2, [sys.executable, str(script), "raise"])
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 1
    assert "in rank 1 of 2 (mpi engine)" in done.stderr


@needs_mpi
def test_a_script_starts_ranks_for_its_own_functions(script: Path) -> None:
    """What a notebook does: the program and what it calls live in ``__main__``."""
    done = subprocess.run([sys.executable, str(script), "start"], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.stdout == "sums [3, 3]\n" and done.returncode == 0
    done = subprocess.run([sys.executable, str(script), "start", "raise"], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0  # sys.argv is not carried over, so nothing raises there
    assert "sums" in done.stdout


@needs_torch
def test_torchrun(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace('engine="mpi"', 'engine="torch"'))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               "2", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout.count("sums [3, 3]") == 2, done.stderr
    done = subprocess.run([*command, "raise"], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    assert done.returncode != 0 and "ValueError: on purpose" in done.stderr


def test_without_cloudpickle_a_notebooks_program_is_refused(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def program(comm: Communicator) -> None:
        pass

    monkeypatch.setattr(jobs.importlib.util, "find_spec", lambda name: None)
    program.__module__ = "__main__"
    job = jobs.Job(program, (), 2, "mpi", None, None, None)
    with pytest.raises(EngineError, match="pip install cloudpickle"):
        jobs.dump(job, tmp_path)
    program.__module__ = __name__
    with pytest.raises(EngineError, match="cannot be handed to other processes"):
        jobs.dump(job, tmp_path)  # a function inside a function


def test_no_mpiexec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.shutil, "which", lambda name, path=None: None)
    monkeypatch.chdir(Path(__file__).parents[2])  # a checkout: no index has to know distlearn
    with pytest.raises(EngineError, match=r"pip install -e '\.\[mpi\]'"):
        run(waits_forever, 2, "mpi")


def test_no_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.chdir(Path(__file__).parents[2])
    with pytest.raises(EngineError, match=r"needs torch .*: pip install -e '\.\[torch\]'"):
        TorchTransport()


@pytest.mark.parametrize(("answer", "kind"), [
    ("mpiexec (Open MPI) 5.0.11", "openmpi"), ("HYDRA build details:\n Version: 5.0.2", "mpich"),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.18", "intel"), ("something else", "other"),
])
def test_flavours(answer: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    mpiexec.chmod(0o755)
    assert launch.flavour(str(mpiexec)) == kind
    monkeypatch.setattr(launch, "find_mpiexec", lambda: str(mpiexec))
    command, variables = launch.mpiexec_command(3, ["python"])
    assert command[0] == str(mpiexec) and command[1:3] == ["-n", "3"] and command[-1] == "python"
    assert ("--oversubscribe" in command) == (kind == "openmpi")
    assert ("I_MPI_THREAD_YIELD" in variables) == (kind == "intel")


@pytest.mark.parametrize(("statuses", "output", "says", "rank"), [
    ([137], "prterun noticed", "a rank was killed by SIGKILL (exit status 137)", None),
    ([9], "EXIT STRING: Killed (signal 9)", "a rank was killed by SIGKILL (exit status 9)", None),
    ([9], "KILLED BY SIGNAL: 9 (Killed)", "a rank was killed by SIGKILL (exit status 9)", None),
    ([3], "prterun has exited", "a rank ended with exit status 3", None),
    ([1], "noise", "a rank ended with exit status 1", None),
    ([1, -11, 1], "noise", "rank 1 was killed by SIGSEGV (exit status -11)", 1),
    ([1, 3, None], "noise", "rank 1 ended with exit status 3", 1),
    ([0, 0, 7], "noise", "rank 2 ended with exit status 7", 2),
])
def test_ends_without_a_python_error(statuses: list[int | None], output: str, says: str,
                                     rank: int | None) -> None:
    error = jobs.killed(statuses, [f"{output}\n"])
    assert isinstance(error, RankError) and str(error).startswith(says)
    assert error.rank == rank and output in str(error)


def test_arguments() -> None:
    with pytest.raises(ValueError, match="recording"):
        run(waits_forever, 2, "mpi", recording=Recording())
    with pytest.raises(ValueError, match="ranks=4"):
        run(waits_forever, engine="torch")
    with pytest.raises(ValueError, match="threads = 0"):
        run(waits_forever, 2, "mpi", threads=0)
    for ranks in (0, 2.0, "4"):
        with pytest.raises(ValueError, match=f"ranks = {ranks!r} must be a whole number"):
            run(waits_forever, ranks, "mpi")  # type: ignore[arg-type]
    for timeout in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"timeout = {timeout} must be above 0"):
            run(waits_forever, 2, "mpi", timeout=timeout)
        with pytest.raises(ValueError, match=f"timeout = {timeout} must be above 0"):
            mpirun(2, __file__, timeout=timeout)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.py"):
        mpirun(2, "nowhere.py")


def test_errors_survive_the_journey(tmp_path: Path) -> None:
    """All errors of the package come back as what they are, with what they know."""
    import pickle

    for kind in CommError.__subclasses__():
        error = kind("says")
        error.waiting = ()
        assert type(pickle.loads(pickle.dumps(error))) is kind
    jobs.write_error(tmp_path, 3, RankError("gone", 3, -9))
    found = jobs.first_error(tmp_path)
    assert isinstance(found, RankError) and (found.rank, found.exit_code) == (3, -9)


def test_an_error_that_cannot_travel_is_told_in_words(tmp_path: Path) -> None:
    class OddError(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    error = OddError(1, 2)
    error.add_note("in rank 2 of 4 (mpi engine)")
    jobs.write_error(tmp_path, 2, error)
    assert str(jobs.first_error(tmp_path)).startswith("rank 2 failed: OddError: 1 and 2\n")
