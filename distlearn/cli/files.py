"""Output files: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


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
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
