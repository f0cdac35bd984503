"""Run a rank program on an engine."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distlearn.comm import job as jobs
from distlearn.comm import mpi, torch_engine
from distlearn.comm.launch import mpiexec_command, thread_environment
from distlearn.comm.numbers import check_count, check_timeout
from distlearn.comm.program import Program, node_numbers
from distlearn.comm.recording import Recording
from distlearn.comm.stepwise import ProcessWorld
from distlearn.comm.supervise import Supervisor, swept_shared_memory
from distlearn.comm.transport import Transport
from distlearn.comm.virtual import VirtualWorld

ENGINES = ("virtual", "mpi", "torch")
_GRACE_S = 2.0  # for the other ranks to fail by themselves once one has


def run(program: Program, ranks: int | None = None, engine: str = "virtual",
        args: Sequence[Any] = (), *, ranks_per_node: int | None = None,
        timeout: float | None = 600.0, threads: int = 1, backend: str | None = None,
        recording: Recording | None = None) -> list[Any]:
    """Run a program on several ranks.

    Parameters
    ----------
    program : coroutine function
        ``async def program(comm, *args)``; called once per rank with its `Communicator`.
    ranks : int
        Number of ranks. May be left out where mpiexec, srun or torchrun has set it.
    engine : str
        ``"virtual"``: all ranks in this process. ``"mpi"``: MPI processes. ``"torch"``: processes
        with torch.distributed. If this process itself was started as one rank of several (by
        mpiexec, srun, ``distlearn mpirun``; by torchrun), the program runs on these; else this call
        starts the processes and waits for them.
    args : sequence
        Further arguments, the same for all ranks. Virtual ranks share them, so they should not
        write to them.
    ranks_per_node : int, optional
        Pretend that each node holds so many ranks (hierarchical algorithms). Default: the real
        machines; the virtual world is one node.
    timeout : float or None
        Wall-clock limit for processes that this call starts, seconds.
    threads : int
        BLAS threads of each of these processes.
    backend : str, optional
        Of torch.distributed: ``"gloo"`` or ``"nccl"``. Default: NCCL if each rank has a GPU.
    recording : Recording, optional
        Keeps every step (virtual engine only).

    Returns
    -------
    list
        What the program returned on each rank; on every rank where they were started from outside.

    Raises
    ------
    CommError
        Or a subclass, see `distlearn.comm.errors`: a deadlock, a mismatch, a rank that died, the
        time limit, a missing engine.
    Exception
        The first one that a rank raised, of the same type on every engine, with a note that says
        on which rank. (Ranks that were started from outside print it and end the whole job.)

    Examples
    --------
    >>> async def program(comm, x):
    ...     return (await comm.all_reduce(x * comm.rank)).item()
    >>> run(program, ranks=4, args=(10,))
    [60, 60, 60, 60]
    """
    if engine not in ENGINES:
        raise ValueError(f"engine = {engine!r} is not one of {', '.join(ENGINES)}")
    check_count("threads", threads)
    if ranks is not None:
        check_count("ranks", ranks)
    check_timeout(timeout)
    if engine == "virtual":
        if ranks is None:
            raise ValueError("the virtual engine needs to know how many: ranks=8, say")
        return VirtualWorld(ranks, node_numbers(ranks, ranks_per_node), recording).run(
            program, args)
    if recording is not None:
        raise ValueError(f"recording: only engine='virtual' sees the steps of all ranks, not "
                         f"{engine!r}")
    if (mpi if engine == "mpi" else torch_engine).launched():
        return _launched(program, ranks, engine, args, ranks_per_node, backend)
    if ranks is None:
        raise ValueError(f"this process is not one rank of several, so engine={engine!r} has to "
                         "start them: ranks=4, say")
    return _start(jobs.Job(program, tuple(args), ranks, engine, ranks_per_node, backend, timeout),
                  threads)


def connect(engine: str, ranks: int | None, backend: str | None = None,
            store: str | None = None) -> Transport:
    """Join the other processes of this run."""
    if engine == "mpi":
        return mpi.MpiTransport(ranks)
    return torch_engine.TorchTransport(backend, store)


def run_here(transport: Transport, program: Program, args: Sequence[Any],
             ranks_per_node: int | None) -> Any:
    """Run the program as one rank of a world that is up; this rank's result."""
    if ranks_per_node is None:
        hosts = list(dict.fromkeys(transport.hosts))
        nodes = tuple(hosts.index(host) for host in transport.hosts)
    else:
        nodes = node_numbers(transport.size, ranks_per_node)
    return ProcessWorld(transport, nodes).run(program, args)


def _launched(program: Program, ranks: int | None, engine: str, args: Sequence[Any],
              ranks_per_node: int | None, backend: str | None) -> list[Any]:
    """Be the rank that this process was started as."""
    transport = connect(engine, None, backend)
    if ranks not in (None, transport.size):
        raise ValueError(f"ranks = {ranks}, but {transport.size} processes were started")
    try:
        results = transport.share(run_here(transport, program, args, ranks_per_node))
        transport.close()
    except BaseException as error:
        traceback.print_exception(error)
        transport.abort(1)
        raise
    return results


def _start(job: jobs.Job, threads: int) -> list[Any]:
    """Start the processes of a job, wait, and bring back what they say."""
    worker = [sys.executable, "-m", "distlearn.comm.worker"]
    with jobs.new_folder() as name, swept_shared_memory(), Supervisor() as supervisor:
        folder = Path(name)
        jobs.dump(job, folder)
        environment = {**os.environ, **thread_environment(threads)}
        if job.engine == "mpi":
            command, variables = mpiexec_command(job.ranks, [*worker, name])
            supervisor.start(command, {**environment, **variables})
        else:
            for rank in range(job.ranks):
                supervisor.start([*worker, name], {**environment,
                                                   **_torch_environment(rank, job.ranks)})
        in_time = supervisor.wait(job.timeout, _GRACE_S)
        if not in_time:
            raise jobs.time_limit(folder, job)
        statuses = supervisor.statuses
        supervisor.stop()
        if not any(status != 0 for status in statuses):
            sys.stderr.write("".join(supervisor.errors))
            return jobs.collect(folder, job.ranks)
        # torch ranks that lose a peer fail too, with status 1: not theirs is the error to report
        gone = job.engine == "torch" and any(s not in (None, 0, 1) for s in statuses)
        error = None if gone else jobs.first_error(folder)
        raise error or jobs.killed(statuses, supervisor.errors)


def _torch_environment(rank: int, ranks: int) -> dict[str, str]:
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    made = {name: str(value) for name, value in variables.items()}
    if sys.platform == "linux" and "GLOO_SOCKET_IFNAME" not in os.environ:
        made["GLOO_SOCKET_IFNAME"] = "lo"  # all ranks are here; host names may not resolve
    return made
