"""Shut the worker process in: its own namespaces where the kernel allows, and nothing left behind.

Linux only; elsewhere, or where user namespaces are switched off, the process group is all there is.
Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWIPC, CLONE_NEWUSER = 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def enter_namespaces() -> bool:
    """Give the next child of this process its own users, process ids and (empty) network.

    Killing that child then kills everything it ever started, at once; it can reach no other
    process and no network. Returns False, changing nothing, where that is not allowed.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"),
                       ("gid_map", f"{gid} {gid} 1")):
        try:
            Path(f"/proc/self/{name}").write_text(text)
        except OSError:  # stays an unmapped user: fewer rights, which is fine
            continue
    return True


def supervise(work: Callable[[], None], report: Callable[[dict[str, Any]], None]) -> NoReturn:
    """Do ``work()`` in a child; wait, report how it ended, and sweep up what it left behind.

    With namespaces there is one more process in between, the first of its namespace: when it
    ends, the kernel ends all others in it. SIGTERM ends the child early.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    confined = enter_namespaces()
    if confined:
        first = os.fork()
        if first:
            _end_with(first)
            os.waitpid(first, 0)
            os._exit(0)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    child = os.fork()
    if child == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        work()
        os._exit(0)
    _end_with(child)
    _, status, usage = os.wait4(child, 0)
    report({
        "kind": "ended",
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "cpu": usage.ru_utime + usage.ru_stime,
    })
    if not confined:
        _sweep()
    os._exit(0)


def _end_with(child: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))


def _sweep() -> None:
    """Kill whatever was left and has this process as its new parent, until there is none."""
    for _ in range(1000):
        try:
            for task in Path("/proc/self/task").iterdir():
                for pid in (task / "children").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ChildProcessError, FileNotFoundError):
            return
        except ProcessLookupError:
            continue


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
