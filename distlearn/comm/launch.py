"""Start MPI jobs: find mpiexec, know which MPI it is, give it the right flags."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from distlearn.comm.errors import EngineError, TimeLimitError
from distlearn.comm.numbers import check_count, check_timeout
from distlearn.comm.supervise import Supervisor, swept_shared_memory
from distlearn.extras import install_command

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                     "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")


def find_mpiexec() -> str:
    """Path of mpiexec: beside this Python (where pip puts it), else on the PATH.

    Raises
    ------
    EngineError
        If there is none.
    """
    beside = Path(sys.executable).parent
    for name in ("mpiexec", "mpirun"):
        found = shutil.which(name, path=str(beside)) or shutil.which(name)
        if found:
            return found
    raise EngineError("no mpiexec found beside this Python or on the PATH: "
                      f"{install_command('mpi')}, or load your cluster's MPI module")


@lru_cache(maxsize=8)
def flavour(mpiexec: str) -> str:
    """Which MPI an mpiexec belongs to: ``"openmpi"``, ``"mpich"``, ``"intel"`` or ``"other"``."""
    answer = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False,
                            timeout=60)
    text = (answer.stdout + answer.stderr).lower()
    if "open mpi" in text or "open-mpi" in text or "prrte" in text:
        return "openmpi"
    if "intel" in text:
        return "intel"
    return "mpich" if "hydra" in text or "mpich" in text else "other"


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that give every rank so many BLAS threads: ranks must not fight for the cores."""
    check_count("threads", threads)
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def mpiexec_command(ranks: int, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command line and extra variables that start ``ranks`` copies of a command here.

    Raises
    ------
    EngineError
        If there is no mpiexec.
    ValueError
        If ``ranks`` is below 1.
    """
    check_count("ranks", ranks)
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    line, variables = [mpiexec, "-n", str(ranks)], {}
    if kind == "openmpi":
        # more ranks than cores is the teaching case; unbound ranks share the cores evenly
        line += ["--oversubscribe", "--bind-to", "none"]
        for prefix in ("OMPI", "PRTE"):  # containers and notebooks often run as root
            variables[f"{prefix}_ALLOW_RUN_AS_ROOT"] = "1"
            variables[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    elif kind == "intel":
        variables.update(I_MPI_THREAD_YIELD="3", I_MPI_THREAD_SLEEP="0")
    return [*line, *command], variables


def mpirun(ranks: int, script: str | Path, arguments: Sequence[str] = (), *,
           timeout: float | None = None, threads: int = 1,
           env: Mapping[str, str] | None = None) -> int:
    """Run a Python script on ``ranks`` MPI processes; what ``distlearn mpirun`` does.

    The script calls ``run(program, engine="mpi")``, or uses mpi4py itself. A rank that raises or
    calls ``sys.exit`` ends the whole job, with its traceback (a plain ``mpiexec python script.py``
    would leave the others waiting).

    Parameters
    ----------
    ranks : int
    script : path
    arguments : sequence of str
        Of the script.
    timeout : float, optional
        Wall-clock limit, seconds.
    threads : int
        BLAS threads of each rank.
    env : mapping, optional
        More environment variables; they win over those set here.

    Returns
    -------
    int
        Exit status of mpiexec.

    Raises
    ------
    EngineError
        If there is no mpiexec.
    TimeLimitError
        If the job did not end in time; it has been killed.
    """
    check_timeout(timeout)
    path = Path(script)
    if not path.is_file():
        raise FileNotFoundError(f"script {str(script)!r} is not a file")
    command, variables = mpiexec_command(
        ranks, [sys.executable, "-m", "mpi4py", str(path), *arguments])
    environment = {**os.environ, **thread_environment(threads), **variables, **(env or {})}
    with Supervisor(relay=False) as supervisor, swept_shared_memory():
        supervisor.start(command, environment)
        if not supervisor.wait(timeout):
            raise TimeLimitError(f"{path.name} on {ranks} ranks did not end within {timeout:g} s "
                                 "and was killed")
        return supervisor.statuses[0] or 0
