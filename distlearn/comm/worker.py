"""One rank of a job: ``python -m distlearn.comm.worker FOLDER``, started by `run`."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from pathlib import Path

from distlearn.comm import job as jobs
from distlearn.comm.runner import connect, run_here
from distlearn.comm.transport import Transport

_PR_SET_PDEATHSIG = 1


def main(folder: Path) -> int:
    """Do one rank's part of the job in this folder; its exit status."""
    _die_with_parent()
    # where is this rank? answered on SIGUSR1, even while it is blocked inside MPI
    path = folder / f"stack-{os.getpid()}"
    hidden = path.with_suffix(".new")
    with hidden.open("w") as stack:
        faulthandler.register(signal.SIGUSR1, stack)
        hidden.rename(path)  # only now may it be asked: before, the signal would kill
        transport: Transport | None = None
        try:
            job = jobs.load(folder)
            transport = connect(job.engine, job.ranks, job.backend, str(folder / "store"))
            (folder / f"rank-{os.getpid()}").write_text(str(transport.rank))
            result = run_here(transport, job.program, job.args, job.ranks_per_node)
            jobs.write_result(folder, transport.rank, result)
            transport.close()
        except BaseException as error:
            jobs.write_error(folder, None if transport is None else transport.rank, error)
            if transport is None:
                return 1
            transport.abort(1)
    return 0


def _die_with_parent() -> None:
    """Ask Linux to kill this process when the one that started it is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
