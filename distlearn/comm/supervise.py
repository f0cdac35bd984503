"""Start processes, pass on what they print, end them all: when one fails, or time is up."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TextIO

_SEGMENTS = Path("/dev/shm")
_POLL_S = 0.02
_GRACE_S = 3.0  # between asking a process to end and killing it


class Supervisor:
    """A few child processes that live and die together.

    Leaving the ``with`` block ends those that still run, their own children included.

    Parameters
    ----------
    relay : bool
        Pass output on through ``sys.stdout`` and ``sys.stderr`` (a notebook shows it) instead of
        letting the processes write to the terminal themselves.
    """

    def __init__(self, relay: bool = True) -> None:
        self._relay = relay
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []
        self.errors: list[str] = []

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    @property
    def statuses(self) -> list[int | None]:
        """Exit status of each process (negative: the signal that killed it), None if it runs."""
        return [process.poll() for process in self._processes]

    def start(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start one more process, in a process group of its own."""
        pipe = subprocess.PIPE if self._relay else None
        process = subprocess.Popen(command, env=dict(env), stdin=subprocess.DEVNULL, stdout=pipe,
                                   stderr=pipe, text=True, errors="replace", start_new_session=True)
        self._processes.append(process)
        if self._relay:
            assert process.stdout is not None and process.stderr is not None
            self._read(process.stdout, sys.stdout)
            self._read(process.stderr, None)

    def _read(self, pipe: IO[str], sink: TextIO | None) -> None:
        def read() -> None:
            with pipe:
                for line in pipe:
                    if sink is None:
                        self.errors.append(line)
                    else:
                        sink.write(line)
                        sink.flush()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        self._readers.append(thread)

    def wait(self, timeout: float | None, grace: float = 0.0) -> bool:
        """Wait until all have ended, or one has failed and ``grace`` seconds more have passed.

        False: the time limit came first. The others still run then.
        """
        end = None if timeout is None else time.monotonic() + timeout
        failed_at = None
        while None in (statuses := self.statuses):
            now = time.monotonic()
            if failed_at is None and any(statuses):
                failed_at = now
            if failed_at is not None and now > failed_at + grace:
                return True
            if end is not None and now > end:
                return False
            time.sleep(_POLL_S)
        for reader in self._readers:
            reader.join(timeout=_GRACE_S)
        return True

    def stop(self) -> None:
        """End what still runs: ask, wait a moment, kill."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                if process.poll() is None:
                    _signal_group(process, number)
            end = time.monotonic() + _GRACE_S
            while None in self.statuses and time.monotonic() < end:
                time.sleep(_POLL_S)
        for reader in self._readers:
            reader.join(timeout=_GRACE_S)


@contextmanager
def swept_shared_memory() -> Iterator[None]:
    """Remove the shared-memory segments that killed MPICH ranks leave behind.

    Only what appeared meanwhile, belongs to this user and is open in no process.
    """
    before = set(_SEGMENTS.glob("mpich_*"))
    try:
        yield
    finally:
        end = time.monotonic() + _GRACE_S
        while left := [path for path in set(_SEGMENTS.glob("mpich_*")) - before if _is_own(path)]:
            used = set(_mapped())
            for path in left:
                if str(path) not in used:
                    path.unlink(missing_ok=True)
            if time.monotonic() > end:  # another job's
                break
            time.sleep(_POLL_S)


def _is_own(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.owner() == getpass.getuser()
    return False


def _mapped() -> Iterator[str]:
    """Shared-memory files that some process has mapped."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            for line in maps.read_text().splitlines():
                if str(_SEGMENTS) in line:
                    yield line.split(maxsplit=5)[-1]


def _signal_group(process: subprocess.Popen[str], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        process.send_signal(number)
