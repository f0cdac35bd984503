"""Files: input in UTF-8 and not without end, output whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 256 * 2**20


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, with a byte order mark or without.

    Raises
    ------
    ValueError
        If it is not UTF-8, or larger than 256 MiB, so that nothing endless is read.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES // 2**20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: byte {error.start} is "
                         f"0x{data[error.start]:02x}") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file under a temporary name beside it, then rename it.

    Raises
    ------
    ValueError
        If the directory does not exist, or the path is a directory.
    OSError
        If it cannot be written.
    """
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a directory")
    if path.exists() and not path.is_file():  # /dev/stdout, a named pipe: nothing to rename
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()  # through a symbolic link, instead of replacing the link
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise type(error)(error.errno, error.strerror, str(path)) from None
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
