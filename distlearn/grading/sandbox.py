"""Run a learner's cells in a child process, with limits, and read back plain data.

What crosses the border: in, the cells and the arguments; out, one coded value per call. Wanted
values stay here, and so does the comparison, so that no object, patch or edited test on the other
side can decide about points.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from distlearn.grading import hidden
from distlearn.grading.calling import PRINTED_KEPT
from distlearn.grading.confine import MOST_PROCESSES, memory_of
from distlearn.grading.outcome import KINDS, Outcome, Run
from distlearn.grading.plain import decode, encode, legible
from distlearn.grading.submission import Cell

try:  # imported here so that the children find it compiled
    from distlearn.grading import worker
except ImportError:
    raise ImportError("grading runs learners' code in child processes with limits on time and "
                      "memory; that needs Linux or macOS") from None

START_SECONDS = 60.0
RESULT_BYTES = 8 * 2**20
WALL_FACTOR = 3.0
SPARE_MEMORY = 2**28  # what Python, numpy and the supervisors take


@dataclass(frozen=True)
class Limits:
    """What one question may use.

    Attributes
    ----------
    seconds : float
        Computing time (CPU). Waiting may take three times as long.
    memory : int
        Bytes, on top of what an empty Python needs.

    Raises
    ------
    ValueError
        For limits too small to run anything.
    """

    seconds: float = 10.0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 3600:
            raise ValueError(f"time_limit must be in 0 .. 3600 seconds; got {self.seconds!r}")
        if not 2**24 <= self.memory <= 2**44:
            raise ValueError(f"memory_limit must be 16 MiB .. 16 TiB, in bytes; got {self.memory}")


def run(
    cells: Sequence[Cell],
    function: str,
    calls: Sequence[tuple[Any, ...]],
    *,
    module: str = "__main__",
    without: tuple[str, ...] = (),
    program: dict[str, Any] | None = None,
    limits: Limits | None = None,
    closed: Sequence[Path] = (),
    cancel: Event | None = None,
) -> Run:
    """Run the cells in a child process, then call the function with each tuple of arguments.

    Parameters
    ----------
    cells : sequence of Cell
        The learner's code, in order.
    function : str
    calls : sequence of tuple
        Arguments as plain data.
    module : str
        The ``__name__`` that the cells see.
    without : tuple of str
        Library functions that the answer has to do without.
    program : dict, optional
        What `programs.performer` takes, for a function that is not just called.
    limits : Limits, optional
    closed : sequence of Path
        Files and folders that the code shall not see, where the system can hide them. Always among
        them: home and temporary folders, and the repository that this package runs from.
    cancel : threading.Event, optional
        Set it from another thread to end the child at once.

    Returns
    -------
    Run
        Never raises for anything that the learner's code does.
    """
    limits = limits or Limits()
    token = secrets.token_hex(16)
    request = json.dumps({
        "token": token, "function": function, "module": module, "without": without,
        "program": program,
        "cells": [{"label": cell.label, "source": cell.padded} for cell in cells],
        "calls": [[encode(arg) for arg in args] for args in calls],
        "time_limit": limits.seconds, "memory_limit": limits.memory, "processes": _processes(),
        "closed": [str(path) for path in (*_private(), *closed)],
    }).encode()
    with tempfile.TemporaryDirectory(prefix="distlearn-", ignore_cleanup_errors=True) as home:
        child = _Child(request, token, Path(home))
        try:
            _listen(child, len(calls), limits, cancel)
        finally:
            child.end()
    return _verdict(child, len(calls), limits)


class _Child:
    """A worker process and what has been heard from it."""

    def __init__(self, request: bytes, token: str, home: Path) -> None:
        self.token, self.buffer, self.received = token.encode(), b"", 0
        self.messages: list[dict[str, Any]] = []
        self.ready_at: float | None = None
        self.ended: dict[str, Any] | None = None
        self.printed = ""
        self.loaded = self.late = self.flooded = self.crowded = self.heavy = False
        request_read, request_write = os.pipe()
        self.result, result_write = os.pipe()
        root = str(Path(__file__).resolve().parents[2])
        start = (  # this very package, whatever else is installed
            f"import sys; sys.path.insert(0, {root!r}); from {worker.__name__} import main; "
            f"sys.path.remove({root!r}); main({request_read}, {result_write})")
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-B", "-c", start],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            pass_fds=(request_read, result_write), cwd=home, env=_environment(home),
            start_new_session=True,
        )
        os.close(request_read)
        os.close(result_write)
        with contextlib.suppress(BrokenPipeError), os.fdopen(request_write, "wb") as stream:
            stream.write(request)

    def hear(self, data: bytes) -> None:
        self.received += len(data)
        self.flooded = self.received > RESULT_BYTES
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            if not line.startswith(self.token):
                continue
            try:
                message = json.loads(line[len(self.token) :])
            except (ValueError, RecursionError):
                continue
            if not isinstance(message, dict):
                continue
            if message.get("kind") == "ready":
                self.ready_at = self.ready_at or time.monotonic()
            elif message.get("kind") == "loaded":
                self.loaded = True
            elif message.get("kind") == "crowded":
                self.crowded = True
            elif message.get("kind") == "ended":
                self.ended = message
            else:
                self.messages.append(message)

    def end(self) -> None:
        """Kill the child and all it started, politely first: its supervisor sweeps up."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self.result)


def _listen(child: _Child, calls: int, limits: Limits, cancel: Event | None) -> None:
    """Read until all calls are answered, the child ends, or time is up. Output is thrown away."""
    assert child.process.stdout is not None
    output = child.process.stdout.fileno()
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for stream in (child.result, output):
            os.set_blocking(stream, False)
            selector.register(stream, selectors.EVENT_READ)
        while child.result in selector.get_map():
            for key, _ in selector.select(timeout=0.05):
                try:
                    data = os.read(key.fd, 2**18)
                except BlockingIOError:
                    continue
                if not data:
                    selector.unregister(key.fd)
                elif key.fd == child.result:
                    child.hear(data)
                elif len(child.printed) < PRINTED_KEPT:
                    child.printed += data[:PRINTED_KEPT].decode("utf-8", "replace")
            now = time.monotonic()
            if child.ready_at is None:
                child.late = now - started > START_SECONDS
            else:
                child.late = now - child.ready_at > WALL_FACTOR * limits.seconds
            child.heavy = memory_of(child.process.pid) > limits.memory + SPARE_MEMORY
            finished = len(child.messages) >= calls or _closing(child.messages)
            cancelled = cancel is not None and cancel.is_set()
            stopped = (child.late or child.flooded or child.crowded or child.heavy
                       or child.ended)
            if finished or cancelled or stopped:
                return


def _closing(messages: list[dict[str, Any]]) -> bool:
    return bool(messages) and messages[-1].get("phase") == "cells"


def _verdict(child: _Child, calls: int, limits: Limits) -> Run:
    outcomes: list[Outcome] = []
    for message in child.messages:
        if message.get("phase") == "cells" and message.get("kind") != "value":
            return Run((), _outcome(message))
        if message.get("index") == len(outcomes) < calls:
            outcomes.append(_outcome(message))
    if len(outcomes) == calls:
        return Run(tuple(outcomes))
    return Run(tuple(outcomes), _why_ended(child, limits), child.loaded)


def _why_ended(child: _Child, limits: Limits) -> Outcome:
    ended = child.ended or {}
    cpu, number = ended.get("cpu"), ended.get("signal")
    if child.flooded:
        return Outcome("silent", message="it sent more than can be read")
    if child.crowded:
        return Outcome("processes")
    if child.heavy:
        return Outcome("memory")
    spent = isinstance(cpu, int | float) and cpu >= limits.seconds and bool(number)
    late = Outcome("time", message=f"{limits.seconds:g} s", printed=legible(child.printed))
    if spent or number in (signal.SIGPROF, signal.SIGXCPU):
        return late
    if child.late and child.ready_at is None:
        return Outcome("silent", message="Python did not start")
    if child.late:
        return late
    if isinstance(number, int) and number:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return Outcome("recursion" if name == "SIGSEGV" else "exit", message=name)
    if child.ended:
        return Outcome("exit", message="os._exit")
    return Outcome("silent", message="its process was lost")


def _outcome(message: dict[str, Any]) -> Outcome:
    """Read one message; whatever is not as it should be makes it ``silent``."""
    texts = {key: message.get(key, "") for key in ("kind", "message", "where", "code", "printed")}
    if not all(type(text) is str for text in texts.values()) or texts["kind"] not in KINDS:
        return Outcome("silent", message="its answer could not be read")
    try:
        # coded once more: on the other side somebody else may have coded it, without the limits
        value = decode(encode(decode(message.get("value"))))
    except (ValueError, TypeError, RecursionError):
        return Outcome("silent", message="its answer could not be read")
    return Outcome(value=value, **{key: legible(text[:400]) for key, text in texts.items()})


def _environment(home: Path) -> dict[str, str]:
    """A small, equal environment for everyone: no secrets, no threads, a fixed hash seed."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "PATH": os.defpath, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(home), "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2",  # else the cores say how far the memory goes
        **dict.fromkeys(threads, "1"),
    }


def _private() -> Iterator[Path]:
    """Folders that are nobody else's business."""
    yield Path(tempfile.gettempdir()).absolute()
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path.home()
    cases = hidden.default_path()
    if cases is not None:  # with tests, solutions and their history
        yield cases.parents[1]


def _processes() -> int:
    """How many processes this user may have in all; 0 if no limit would hold.

    More than `confine` lets live, so that it is who ends too many, and says so, also while other
    programs of this user start some.
    """
    if os.getuid() == 0 or not Path("/proc").is_dir():
        return 0
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                count += len(list((entry / "task").iterdir()))
    return count + 4 * MOST_PROCESSES
