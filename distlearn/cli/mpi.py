"""The command that starts MPI jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from distlearn.cli.errors import Found
from distlearn.cli.values import count, seconds

EXAMPLES = """[bold]Example[/bold]

distlearn mpirun -n 8 train.py --steps 50

What stands after SCRIPT goes to the script, which calls run(program, engine="mpi") or uses mpi4py.
"""


def mpirun(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", show_default=False,
                                           help="A Python file.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS",
                                                          show_default=False,
                                                          help="Of the script.")] = None,
    ranks: Annotated[Any, typer.Option("-n", "--ranks", parser=count, metavar="N",
                                       help="MPI processes.")] = 2,
    threads: Annotated[Any, typer.Option("--threads", parser=count, metavar="N",
                                         help="BLAS threads of each rank.")] = 1,
    timeout: Annotated[Any, typer.Option("--timeout", parser=seconds, metavar="SECONDS",
                                         show_default=False,
                                         help="End the job after so long; default: never.")]
    = None,
) -> None:
    """Run a Python script on N MPI processes.

    Knows the flags of Open MPI, MPICH and Intel MPI.

    A rank that fails ends the whole job, and its traceback is shown.

    Exit code: that of the job; 2 if there is no MPI; 1 if its time is up.
    """
    from distlearn.comm import EngineError, TimeLimitError
    from distlearn.comm import mpirun as start

    try:
        code = start(ranks, script, tuple(arguments or ()), timeout=timeout, threads=threads)
    except TimeLimitError as error:
        raise Found(str(error)) from None
    except EngineError as error:
        raise ValueError(str(error)) from None
    raise typer.Exit(code)
