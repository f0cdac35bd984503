"""Shut the worker process in: its own namespaces where the kernel allows, and nothing left behind.

Linux only; elsewhere, or where user namespaces are switched off, the process group is all there is.
Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from distlearn.grading.view import narrow

MOST_PROCESSES = 64
WATCH_SECONDS = 0.005  # a fork bomb doubles in about one thousandth
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38


def enter_namespaces() -> bool:
    """Give this process mounts of its own, and its next child also process ids and no network.

    Killing that child then kills everything it ever started, at once; it can reach no other
    process and no network. Returns False, changing nothing, where that is not allowed.
    """
    if not sys.platform.startswith("linux"):
        return False
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"),
                       ("gid_map", f"{gid} {gid} 1")):
        try:
            Path(f"/proc/self/{name}").write_text(text)
        except OSError:  # stays an unmapped user: fewer rights, which is fine
            continue
    return True


def supervise(
    work: Callable[[], None], report: Callable[[dict[str, Any]], None], hidden: Sequence[str] = (),
) -> NoReturn:
    """Do ``work()`` in a child; wait, report how it ended, and sweep up what it left behind.

    With namespaces there is one more process in between, the first of its namespace: when it
    ends, the kernel ends all others in it. Then the child also sees nothing of the ``hidden``
    paths, and can write in the current folder only. SIGTERM ends the child early.
    """
    # until there is somebody to end, or it would end this process alone
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    calm = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):  # ahead of those it watches, where that is allowed
        os.setpriority(os.PRIO_PROCESS, 0, calm - 10)
    confined = enter_namespaces()
    if confined:
        narrow(str(Path.cwd()), hidden)
        first = os.fork()
        if first:
            _end_with(first)
            os.waitpid(first, 0)
            os._exit(0)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    keep_out(True)
    child = os.fork()
    if child == 0:
        keep_out(False)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.setpriority(os.PRIO_PROCESS, 0, calm)
        _give_up_rights()
        work()
        os._exit(0)
    _end_with(child)
    if confined:
        _watch(child, report)
    _, status, usage = os.wait4(child, 0)
    report({
        "kind": "ended",
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "cpu": usage.ru_utime + usage.ru_stime,
    })
    if not confined:
        _sweep()
    os._exit(0)


def keep_out(wanted: bool) -> None:
    """Whether other processes of this user may look into this one and use what it has open."""
    _prctl(PR_SET_DUMPABLE, 0 if wanted else 1)


def _end_with(child: int) -> None:
    def end(*_: Any) -> None:
        if _lives(child):  # it may just have ended by itself
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _watch(child: int, report: Callable[[dict[str, Any]], None]) -> None:
    """Wait until the child has ended. End all, and say so, when too many live in this namespace.

    Processes and threads count. The limit that the system offers (RLIMIT_NPROC) does not hold for
    root, as whom containers run. It is said first: the end of so many can take longer than the time
    that is left.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    seen = 0
    with _newest_process() as newest:
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            last = newest()
            if abs(last - seen) >= MOST_PROCESSES // 4:  # cheap as long as few are started
                seen = last
                if sum(_lives(pid) for pid in range(2, last + 1)) > MOST_PROCESSES:
                    report({"kind": "crowded"})
                    os.kill(-1, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, WATCH_SECONDS)


@contextlib.contextmanager
def _newest_process() -> Iterator[Callable[[], int]]:
    """A function that says which process or thread id was given last in this namespace."""
    try:
        counter = os.open("/proc/sys/kernel/ns_last_pid", os.O_RDONLY)
    except OSError:  # a kernel without it: the last line of this file says the same
        counter = os.open("/proc/loadavg", os.O_RDONLY)
    try:
        yield lambda: int(os.pread(counter, 128, 0).split()[-1])
    finally:
        os.close(counter)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _give_up_rights() -> None:
    """Keep no special right of this namespace, or of root, and never get one back."""
    if not sys.platform.startswith("linux"):
        return
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    for right in range(64):
        _prctl(PR_CAPBSET_DROP, right)
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capset(header, none)


def memory_of(process: int) -> int:
    """Bytes that a process and all it has started keep for themselves; 0 where nobody says.

    The limit on memory holds for each process alone, and a learner's code can start some.
    """
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
        children = [pid for task in Path(f"/proc/{process}/task").iterdir()
                    for pid in (task / "children").read_text().split()]
    except (OSError, ValueError):  # it has just ended, or this is no Linux
        return 0
    own = (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return own + sum(memory_of(int(pid)) for pid in children)


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
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
