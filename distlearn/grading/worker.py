"""The child process of a question: the only place where a learner's code is run by the grader.

It gets cells, a function's name and argument lists; it never sees a wanted value. It sends back one
line of JSON per call, as plain data, over a pipe of its own. Standard library only, so that it
starts in a few hundredths of a second.
"""

from __future__ import annotations

import ast
import fcntl
import json
import linecache
import os
import resource
import signal
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from distlearn.grading.calling import Measured, Perform, call, describe, uses_library
from distlearn.grading.confine import keep_out, supervise
from distlearn.grading.plain import decode

FILE_BYTES = 16 * 2**20
OPEN_FILES = 256
MOST_DESCRIPTORS = 4096
MOST_TAKEN = 2**22


def main(request_fd: int, result_fd: int) -> NoReturn:
    """Read the request from one pipe, answer on the other, and leave at once.

    ``os._exit`` at the end: no ``atexit`` function of the learner runs, and no thread is awaited.
    """
    with os.fdopen(request_fd, "rb") as stream:
        request = json.load(stream)
    channel = fcntl.fcntl(result_fd, fcntl.F_DUPFD_CLOEXEC, 100 + os.getpid() % 100)
    os.close(result_fd)
    token = str(request["token"])
    supervise(lambda: _work(request, _sender(channel, token)),
              lambda message: _sender(channel, token)(message), request["closed"])


def _work(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    perform: Perform | None = None
    if request["program"] is not None:  # imported before the learner's code can be in the way,
        from distlearn.grading.programs import performer  # and not at the cost of its time

        perform = performer(request["program"])
    _limit(request)
    send({"kind": "ready"})
    for cell in request["cells"]:
        label, source = cell["label"], cell["source"]
        linecache.cache[label] = (len(source), None, _with_earlier(source, label), label)
    if isinstance(perform, Measured):
        send = _apart(request, perform, send)
        perform = perform.take
    try:
        _answer(request, perform, send)
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # closed, replaced or broken by the learner's code
                continue
        os._exit(0)


def _answer(request: dict[str, Any], perform: Perform | None,
            send: Callable[[dict[str, Any]], None]) -> None:
    module = types.ModuleType(request["module"])
    namespace = module.__dict__
    sys.modules[request["module"]] = module
    for cell in request["cells"]:
        label, source = cell["label"], cell["source"]
        try:
            _run(source, label, namespace)
        except BaseException as error:
            fields = describe(error, namespace, calling=False)
            if isinstance(error, SyntaxError) and not fields["where"]:
                fields["where"] = f"{label}, line {error.lineno}"
            send({**fields, "kind": "raised" if fields["kind"] == "stub" else fields["kind"],
                  "phase": "cells"})
            return
    if request["function"] not in namespace:
        send({"kind": "missing", "phase": "cells"})
        return
    function = namespace[request["function"]]
    shortcut = uses_library(function, tuple(request["without"]), namespace)
    if shortcut is not None:
        send({"kind": "library", "message": shortcut, "phase": "cells"})
        return
    send({"kind": "loaded"})
    for index, coded in enumerate(request["calls"]):
        args = [decode(arg) for arg in coded]
        send({**call(function, args, namespace, perform=perform), "phase": "call", "index": index})


def _apart(request: dict[str, Any], perform: Measured, send: Callable[[dict[str, Any]], None]
           ) -> Callable[[dict[str, Any]], None]:
    """Go on in a child, and measure here what it takes: no learner's code has been here.

    Returns, in the child, what sends to here. The child has no way to the grader: a counter that
    it could forge would be worth points.
    """
    keep_out(True)
    heard, told = os.pipe()
    learner = os.fork()
    if learner == 0:
        os.closerange(3, told)
        os.closerange(told + 1, MOST_DESCRIPTORS)
        keep_out(False)
        signal.setitimer(signal.ITIMER_PROF, request["time_limit"])
        return _sender(told, "")
    os.close(told)
    try:
        with os.fdopen(heard, "rb") as stream:
            _measure(stream, request["calls"], perform, send)
        status = os.waitpid(learner, 0)[1]
        if os.WIFSIGNALED(status):  # what ended it is what ended all
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(os.getpid(), os.WTERMSIG(status))
    finally:
        os._exit(0)


def _measure(stream: BinaryIO, calls: list[Any], perform: Measured,
             send: Callable[[dict[str, Any]], None]) -> None:
    """Pass on what the learner's process says, with a measured value in place of each taken one."""
    count = 0
    while count < len(calls):
        line = stream.readline(MOST_TAKEN)
        try:
            message = json.loads(line)
        except ValueError:  # its end, or what was not made by `_sender`
            return
        if not isinstance(message, dict):
            return
        if message.get("phase") == "call":
            if message.get("kind") == "value":
                args = [decode(arg) for arg in calls[count]]
                made = call(perform.measure, [decode(message.get("value")), args], {})
                message = {**made, "printed": message.get("printed")}
            send({**message, "phase": "call", "index": count})
            count += 1
        elif message.get("kind") != "value":
            send(message)


def _with_earlier(source: str, label: str) -> list[str]:
    """The lines of a cell; before it those of the cells above, if they are of the same file."""
    return [line if line.strip() else linecache.getline(label, number) or line
            for number, line in enumerate(source.splitlines(True), start=1)]


def _run(source: str, label: str, namespace: dict[str, Any]) -> None:
    """Run a cell, also one that awaits outside of any function, as Jupyter does."""
    code = compile(source, label, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    waiting = eval(code, namespace)
    if isinstance(waiting, types.CoroutineType):
        import asyncio

        asyncio.run(waiting)


def _sender(channel: int, token: str) -> Callable[[dict[str, Any]], None]:
    owner, write, dumps, getpid, leave = os.getpid(), os.write, json.dumps, os.getpid, os._exit

    def send(message: dict[str, Any]) -> None:
        if getpid() != owner:  # a copy made by a fork in the learner's code
            leave(0)
        data = memoryview((token + dumps(message) + "\n").encode())
        while data:
            data = data[write(channel, data) :]

    return send


def _limit(request: dict[str, Any]) -> None:
    """Lower this process's limits; they hold for everything that it starts."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + request["time_limit"] + 0.999)
    with open("/proc/self/statm" if os.path.exists("/proc/self/statm") else os.devnull) as statm:  # noqa: PTH110, PTH123
        pages = int((statm.read().split() or ["0"])[0])
    space = pages * resource.getpagesize() + int(request["memory_limit"])
    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_AS: (space, space),
        resource.RLIMIT_FSIZE: (FILE_BYTES, FILE_BYTES),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (OPEN_FILES, OPEN_FILES),
    }
    if request["processes"]:
        limits[resource.RLIMIT_NPROC] = (request["processes"], request["processes"])
    for which, (soft, hard) in limits.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(which, (soft, hard))
    signal.setitimer(signal.ITIMER_PROF, request["time_limit"])  # exact; the limit above is a guard
