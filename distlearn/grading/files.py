"""Text files: input in UTF-8 and not without end, output whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
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
    """Write one text file; see `write_texts`."""
    write_texts({path: text})


def write_texts(files: Mapping[Path, str]) -> None:
    """Write text files under temporary names beside them, and rename when all are there.

    Lines end with a line feed on every system. A symbolic link stays, and what it points to is
    written. What cannot be renamed, such as ``/dev/stdout``, is written at once.

    Parameters
    ----------
    files : mapping of Path to str

    Raises
    ------
    ValueError
        If the directory of a file does not exist, or a path is a directory.
    OSError
        If one cannot be written, with the name of that file. No file has changed then, but for
        those renamed already if it was a renaming that failed.
    """
    for path in files:
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
        if path.is_dir():
            raise ValueError(f"cannot write {path}: it is a directory")
    temporary: dict[Path, Path] = {}
    try:
        for number, (path, text) in enumerate(files.items()):
            with _named(path):
                if path.exists() and not path.is_file():  # a pipe: there is nothing to rename
                    path.write_text(text, encoding="utf-8", newline="\n")
                    continue
                target = path.resolve()
                beside = target.with_name(f".distlearn-{os.getpid()}-{number}.tmp")
                temporary[path] = beside
                beside.write_text(text, encoding="utf-8", newline="\n")
        for path, beside in temporary.items():
            with _named(path):
                beside.replace(path.resolve())
    except BaseException:  # also Ctrl-C
        for beside in temporary.values():
            beside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give an error the name of the file that was to be written."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
