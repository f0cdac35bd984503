"""What a learner's code sees of the disk: Python and the system, read-only; the rest is empty.

Built with mounts in a namespace of its own (Linux), so nothing on the disk itself changes, and all
of it is gone when the process has ended. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

HOME_BYTES = 64 * 2**20
PRIVATE = ("/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp",
           "/var")
NEEDED = (
    "/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero",
    *(f"/etc/{name}" for name in (
        "alternatives", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
        "localtime", "nsswitch.conf", "passwd", "ssl", "timezone")),
)

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_KEPT_FLAGS = {  # a remount has to repeat what is set already
    "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048,
    "relatime": 1 << 21,
}


def narrow(home: str, hidden: Iterable[str]) -> bool:
    """Make the disk read-only and hide what learners' code has no business with.

    Parameters
    ----------
    home : str
        The one folder that can be written: empty, in memory, 64 MiB; becomes the current one.
    hidden : iterable of str
        Files and folders that are to be empty, on top of `PRIVATE`. What Python needs inside of
        them stays.

    Returns
    -------
    bool
        False, with everything as it was, where the kernel does not allow it.
    """
    before, done = _mounts(), list[str]()
    kept = {path: os.open(path, os.O_PATH) for path in _needed() if os.path.exists(path)}  # noqa: PTH110
    try:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        for path, flags in before.items():
            with contextlib.suppress(OSError):  # below another mount, where nobody gets
                _mount(None, path, None, flags | _MS_RDONLY | _MS_BIND | _MS_REMOUNT)
        if os.statvfs("/").f_flag & os.ST_RDONLY == 0:
            raise OSError("the disk stays writable")
        closed = {os.path.realpath(path) for path in (*PRIVATE, *hidden)} - {"/"}
        for path in sorted(closed | kept.keys(), key=lambda path: (path.count("/"), path)):
            if path in closed:
                done += _hide(path, kept["/dev/null"])
            elif any(path.startswith(f"{one}/") for one in closed):
                done += _show(path, kept[path])
        Path(home).mkdir(parents=True, exist_ok=True)
        _mount("tmpfs", home, "tmpfs", 0, f"size={HOME_BYTES},mode=700")
        done.append(home)
        os.chdir(home)
    except OSError:
        for path in reversed(done):
            _libc().umount2(path.encode(), _MNT_DETACH)
        for path, flags in before.items():
            with contextlib.suppress(OSError):
                _mount(None, path, None, flags | _MS_BIND | _MS_REMOUNT)
        return False
    finally:
        for descriptor in kept.values():
            os.close(descriptor)
    return True


def _needed() -> Iterator[str]:
    """What has to stay: this package, and where Python looks for modules and libraries."""
    root = str(Path(__file__).resolve().parents[2])
    installed = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *sys.path)
    found = [*NEEDED, *(path for path in installed if path and path != root)]
    for path in (*found, str(Path(__file__).resolve().parents[1])):
        yield os.path.abspath(path)  # noqa: PTH100 - also as it is spelled, through links
        yield os.path.realpath(path)


def _hide(path: str, nothing: int) -> list[str]:
    """Put something empty in front of a file or folder."""
    if os.path.isdir(path):  # noqa: PTH112
        _mount("tmpfs", path, "tmpfs", 0, "size=64k,nr_inodes=512,mode=755")
    elif os.path.exists(path):  # noqa: PTH110
        _mount(f"/proc/self/fd/{nothing}", path, None, _MS_BIND)
    else:
        return []
    return [path]


def _show(path: str, descriptor: int) -> list[str]:
    """Put back what was hidden with the folder around it; it was opened before."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.stat(path), os.stat(descriptor)):  # noqa: PTH116
            return []
    target = Path(path)
    if os.path.isdir(descriptor):  # noqa: PTH112
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(f"/proc/self/fd/{descriptor}", path, None, _MS_BIND | _MS_REC)
    return [path]


def _mounts() -> dict[str, int]:
    """Every mounted path and its flags."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        _, _, _, _, path, options, *_ = line.split(" ")
        path = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), path)
        found[path] = sum(_KEPT_FLAGS.get(option, 0) for option in options.split(","))
    return found


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2).

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    def name(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    if _libc().mount(name(source), name(target), name(kind), ctypes.c_ulong(flags),
                     name(data or None)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
