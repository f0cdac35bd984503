"""A run handed to other processes: the program goes out in a file, results and errors come back."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import re
import signal
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from distlearn.comm.errors import CommError, EngineError, RankError, TimeLimitError
from distlearn.comm.program import Program

_UNNAMED = "<dynamic-code>"
# frames that are not the user's
_OURS = (str(Path(__file__).parent), "<frozen", sysconfig.get_path("stdlib"))
_INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")
_FRAME = re.compile(r'File "(.+)", line (\d+) in (\w+)')


@dataclass(frozen=True)
class Job:
    """What every rank has to know.

    Attributes
    ----------
    program, args
        The rank program and its arguments.
    ranks : int
    engine : str
    ranks_per_node : int or None
    backend : str or None
    timeout : float or None
        Seconds.
    """

    program: Program
    args: tuple[Any, ...]
    ranks: int
    engine: str
    ranks_per_node: int | None
    backend: str | None
    timeout: float | None


def dump(job: Job, folder: Path) -> None:
    """Write the job file.

    Raises
    ------
    EngineError
        If the program cannot be handed to another process.
    """
    dumps = pickle.dumps
    if importlib.util.find_spec("cloudpickle") is not None:
        # by value where the other process cannot import it: notebooks, scripts, closures
        dumps = importlib.import_module("cloudpickle").dumps
    else:
        module = getattr(job.program, "__module__", None)
        if module == "__main__":
            raise EngineError(
                f"program {job.program!r} is defined in a notebook or script, which other "
                "processes cannot import: pip install cloudpickle, or move it to a module")
    try:
        payload = dumps(job)
    except Exception as error:
        raise EngineError(f"program {job.program!r} or its args cannot be handed to other "
                          f"processes: {error}") from error
    _write(folder / "job", pickle.dumps((list(sys.path), _files(job.program), payload)))


def load(folder: Path) -> Job:
    """Read the job file; modules are found where the starting process found them."""
    path, files, payload = pickle.loads((folder / "job").read_bytes())
    sys.path[:] = path
    job: Job = pickle.loads(payload)
    for name, function in _functions(job.program):
        if name in files and function.__code__.co_filename == _UNNAMED:
            function.__code__ = _renamed(function.__code__, files[name])
    return job


def _functions(program: Program) -> Iterator[tuple[str, FunctionType]]:
    """The program, under the name "", and the functions it finds in its module."""
    if isinstance(program, FunctionType):
        yield "", program
        for name, value in program.__globals__.items():
            if isinstance(value, FunctionType):
                yield name, value


def _files(program: Program) -> dict[str, str]:
    """Where these functions were written: cloudpickle forgets it, but tracebacks need it."""
    return {name: function.__code__.co_filename for name, function in _functions(program)}


def _renamed(code: CodeType, file: str) -> CodeType:
    inner = tuple(_renamed(const, file) if isinstance(const, CodeType) else const
                  for const in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)


def write_result(folder: Path, rank: int, value: Any) -> None:
    """Keep a rank's result.

    Raises
    ------
    TypeError
        If it cannot be handed to another process.
    """
    try:
        data = pickle.dumps(value)
    except Exception as error:
        raise TypeError(f"the result of rank {rank} cannot be handed to another process: {error}"
                        ) from error
    _write(folder / f"result-{rank}", data)


def write_error(folder: Path, rank: int | None, error: BaseException) -> None:
    """Keep the error of a rank: the first one is the one to report."""
    text = "".join(traceback.format_exception(error))
    says = f"{type(error).__name__}: {error}"
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # an exception class of its own kind: the text has to do
        data = None
    _write(folder / f"error-{os.getpid()}", pickle.dumps((time.time(), rank, data, says, text)))


def collect(folder: Path, ranks: int) -> list[Any]:
    """The results of all ranks.

    Raises
    ------
    RankError
        If one is missing.
    """
    results = []
    for rank in range(ranks):
        path = folder / f"result-{rank}"
        if not path.exists():
            raise RankError(f"rank {rank} of {ranks} ended without a result", rank)
        results.append(pickle.loads(path.read_bytes()))
    return results


def first_error(folder: Path) -> BaseException | None:
    """The earliest error that a rank has left, with its traceback as a note."""
    found = []
    for path in folder.glob("error-*"):
        with suppress(OSError, EOFError):
            found.append(pickle.loads(path.read_bytes()))
    if not found:
        return None
    _, rank, data, says, text = min(found, key=lambda entry: entry[0])
    who = "a rank that was not up yet" if rank is None else f"rank {rank}"
    note = f"Traceback in {who}:\n{text}"
    if data is None:
        return RankError(f"{who} failed: {says}\n{note}", rank)
    error: BaseException = pickle.loads(data)
    error.add_note(note)
    return error


def time_limit(folder: Path, job: Job) -> TimeLimitError:
    """The error for a job that has to be killed, with the line each rank was on."""
    asked: list[tuple[Path, int]] = []  # and how much had been written before
    for path in sorted(folder.glob("stack-*[0-9]")):
        with suppress(OSError):
            size = path.stat().st_size
            os.kill(int(path.name.split("-")[1]), signal.SIGUSR1)
            asked.append((path, size))
    time.sleep(0.3 if asked else 0.0)  # faulthandler writes without Python's help, at once
    lines = []
    for path, size in asked:
        rank = folder / path.name.replace("stack", "rank")
        name = rank.read_text() if rank.exists() else "?"
        frames = [frame for frame in _FRAME.findall(path.read_text()[size:])
                  if not frame[0].startswith(_OURS) and not _INSTALLED.search(frame[0])]
        if frames:
            file, line, function = frames[0]
            lines.append(f"\n  rank {name} was at {file}:{line} in {function}")
    return TimeLimitError(
        f"the program did not finish within timeout = {job.timeout:g} s on {job.ranks} "
        f"{job.engine} ranks and was killed; with engine='virtual' a deadlock is explained"
        + "".join(sorted(lines)))


def killed(statuses: Sequence[int | None], output: Sequence[str]) -> CommError:
    """The error for a job that ended without any rank telling why.

    Parameters
    ----------
    statuses : sequence of int
        Of each rank, or of mpiexec alone. Negative: the signal. Open MPI adds 128 to a rank's
        signal; MPICH and Intel MPI return it as it is, and write "signal 9".
    output : sequence of str
        What was written to stderr.
    """
    alone = len(statuses) == 1
    ended = sorted(((s, r) for r, s in enumerate(statuses) if s), key=lambda end: end[0] == 1)
    status, rank = ended[0]
    number = abs(status) % 128 if status < 0 or status > 128 else 0
    if alone and re.search(rf"signal:? {status}\b", "".join(output), re.IGNORECASE):
        number = status
    how = f"ended with exit status {status}"
    if number:
        with suppress(ValueError):
            how = f"was killed by {signal.Signals(number).name} (exit status {status})"
    tail = "".join(output[-30:]).strip()
    return RankError(f"{'a rank' if alone else f'rank {rank}'} {how} without a Python error"
                     + (f"\n{tail}" if tail else ""), None if alone else rank, status)


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for one job, removed with everything in it when the job is over."""
    return tempfile.TemporaryDirectory(prefix="distlearn-run-", ignore_cleanup_errors=True)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.rename(path)
