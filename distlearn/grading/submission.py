"""Read what a learner handed in: cells of code, whatever the file is called and whatever is broken.

A notebook gives its code cells. A Python file gives the cells between ``# %%`` lines, or, if it has
none, its paragraphs; so a syntax error spoils one paragraph and not the file. Nothing is run here.
"""

from __future__ import annotations

import ast
import codecs
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 64 * 2**20
MAX_CODE = 2**19

_PERCENT = re.compile(r"^#\s*%%")
# Of a line without spaces at its ends. No part can begin where the one before may go on, so that
# the time grows as the line does, whatever stands in it.
_MAGIC = re.compile(r"%{1,2}[A-Za-z]|!|\?|[A-Za-z_][\w.]*\?{1,2}$|\w[\w, ]*=\s*[%!][A-Za-z]")
_TEXT_MAGICS = ("%%bash", "%%sh", "%%html", "%%javascript", "%%js", "%%latex", "%%markdown",
                "%%svg", "%%writefile", "%%script", "%%perl", "%%ruby")
_STATEMENTS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom, ast.Assign)


class SubmissionError(ValueError):
    """A file that cannot be graded, in words for the learner."""


@dataclass(frozen=True)
class Cell:
    """A piece of code that stands or falls together.

    Attributes
    ----------
    label : str
        ``code cell 4`` (counted from 1), or the file's name for a Python file.
    source : str
    first_line : int
        Line of the file on which it starts, 1 for a notebook's cell.
    """

    label: str
    source: str
    first_line: int = 1

    @property
    def padded(self) -> str:
        """The source behind so many empty lines that Python's line numbers are the file's."""
        return "\n" * (self.first_line - 1) + self.source

    def parse(self) -> ast.Module:
        """The syntax tree, with the file's line numbers.

        Raises
        ------
        SyntaxError
            If the source is not Python (also for null bytes or nesting too deep to read).
        """
        return _parse(self.padded, self.label)


@dataclass(frozen=True)
class Submission:
    """The code of one file.

    Attributes
    ----------
    path : Path
    notebook : bool
        Whether it is a notebook; its cells then see ``__name__ == "__main__"``.
    cells : tuple of Cell
    prose : str
        Text of Markdown and raw cells, where an answer sometimes ends up.
    """

    path: Path
    notebook: bool
    cells: tuple[Cell, ...]
    prose: str = ""

    @property
    def name(self) -> str:
        """The file's name, as text that can be written anywhere."""
        return printable(self.path.name)

    @property
    def kind(self) -> str:
        """What to call it when talking to its author."""
        return "notebook" if self.notebook else "file"


def read(path: Path) -> Submission:
    """Read a notebook or Python file, known by its content and not by its name.

    Raises
    ------
    SubmissionError
        If it is a link, no regular file, empty, too large, binary, or neither of the two.
    """
    if path.is_symlink():
        raise SubmissionError("is a symbolic link, which is not followed: hand in the file itself")
    if not path.is_file():
        raise SubmissionError("is not a regular file")
    size = path.stat().st_size
    if size == 0:
        raise SubmissionError("is empty")
    if size > MAX_BYTES:
        raise SubmissionError(
            f"is {size / 2**20:,.0f} MiB, over the {MAX_BYTES // 2**20} MiB that are read: "
            "clear the outputs and save again")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SubmissionError(f"cannot be read: {error.strerror}") from None
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        if codecs.lookup(encoding).name in ("idna", "punycode"):  # no code is; they take for ever
            raise LookupError(encoding)
        text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except (UnicodeError, SyntaxError, LookupError):
        raise SubmissionError("is neither a notebook nor Python: it is not text (UTF-8)") from None
    if "\0" in text:
        raise SubmissionError("is neither a notebook nor Python: it has null bytes")
    if not text.strip():
        raise SubmissionError("is empty")
    if text.lstrip().startswith("{") and path.suffix != ".py":
        return _notebook(path, text)
    if path.suffix == ".ipynb":
        raise SubmissionError("is called .ipynb but is not a notebook (no JSON object)")
    if len(text) > MAX_CODE:
        raise SubmissionError(f"has {len(text):,} characters of code, too many for an answer")
    submission = Submission(path, False, tuple(_python_cells(printable(path.name), text)))
    if path.suffix != ".py" and not any(_looks_like_python(c) for c in submission.cells):
        raise SubmissionError("is neither a notebook (.ipynb) nor Python (.py)")
    return submission


def printable(name: str) -> str:
    """A file name as text that can be written anywhere: no control characters, valid Unicode."""
    clean = "".join(c if c.isprintable() else "_" for c in _valid(name)).strip()
    return re.sub(r"[`|<>]", "_", clean)[:120] or "_"


def _valid(text: str) -> str:
    """Unicode that can be encoded: without the lone surrogates of a broken name or JSON text."""
    return text.encode("utf-8", "replace").decode()


def _notebook(path: Path, text: str) -> Submission:
    try:
        notebook = json.loads(text)
        sheets = notebook.get("worksheets") or [notebook]  # nbformat 3 kept cells in worksheets
        raw = [cell for sheet in sheets for cell in sheet["cells"]]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise SubmissionError("is not a notebook: broken JSON, or no cells in it") from None
    cells: list[Cell] = []
    prose: list[str] = []
    for cell in raw:
        if not isinstance(cell, dict):
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        source = _valid(source) if isinstance(source, str) else ""
        if cell.get("cell_type") == "code":
            cells.append(Cell(f"code cell {len(cells) + 1}", _without_magics(source)))
        else:
            prose.append(source)
    size = sum(len(cell.source) for cell in cells)
    if size > MAX_CODE:
        raise SubmissionError(f"has {size:,} characters of code, too many for an answer")
    return Submission(path, True, tuple(cells), "\n".join(prose))


def _without_magics(source: str) -> str:
    """The cell without IPython's own lines (``%``, ``!``, ``?``), line numbers kept."""
    lines = source.replace("\r\n", "\n").split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith(_TEXT_MAGICS):
        return ""
    if _parses(source):  # a line may begin with % inside brackets or text
        return source
    return "\n".join(
        f"{line[: len(line) - len(line.lstrip())]}pass" if _MAGIC.match(line.strip()) else line
        for line in lines)


def _python_cells(name: str, text: str) -> Iterator[Cell]:
    lines = text.split("\n")
    starts = [k for k, line in enumerate(lines) if _PERCENT.match(line)]
    if not starts:
        yield from _paragraphs(name, lines, 0)
        return
    for start, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        header = lines[start]
        if _PERCENT.match(header) and re.search(r"\[(markdown|md|raw)\]", header):
            continue
        source = "\n".join(lines[start:end])
        if source.strip():
            yield Cell(name, _without_magics(source), start + 1)


def _paragraphs(name: str, lines: list[str], offset: int) -> Iterator[Cell]:
    """Split at empty lines before a line that is not indented, but never inside a statement.

    A paragraph that is not complete takes up the next ones until it can be read; if it never can,
    it alone is broken.
    """
    starts = [0] + [
        k for k in range(1, len(lines))
        if lines[k][:1].strip() and not lines[k - 1].strip() and lines[k][0] not in ")]}"
    ]
    ends = [*starts[1:], len(lines)]
    room = 20 * sum(map(len, lines))  # characters that are looked at; enough but for mischief
    k = 0
    while k < len(starts):
        stop = k
        for j in range(k, min(k + 30, len(starts)) if room > 0 else k):
            text = "\n".join(lines[starts[k] : ends[j]])
            room -= len(text)
            if _parses(text):
                stop = j
                break
        source = "\n".join(lines[starts[k] : ends[stop]])
        if source.strip():
            yield Cell(name, source, offset + starts[k] + 1)
        k = stop + 1


def _looks_like_python(cell: Cell) -> bool:
    try:
        body = cell.parse().body
    except SyntaxError:
        return bool(re.search(r"^(?:async )?def \w+\(.*:", cell.source, re.MULTILINE))
    return any(isinstance(x, _STATEMENTS) for x in body)


def _parses(source: str) -> bool:
    try:
        _parse(source, "cell")
    except SyntaxError:
        return False
    return True


def _parse(source: str, label: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape in the learner's text
        try:
            return ast.parse(source, label)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(f"cannot be read: {type(error).__name__}") from None
