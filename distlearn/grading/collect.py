"""Find who handed in what, in whatever layout, and choose the file that counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distlearn.grading.question import Question
from distlearn.grading.slicing import Program
from distlearn.grading.submission import SubmissionError, printable, read

MAX_FILES = 200
MAX_DEPTH = 10
_SKIPPED = ("__pycache__", "__MACOSX", "node_modules")


@dataclass(frozen=True)
class Entry:
    """What one learner handed in.

    Attributes
    ----------
    student : str
        Name of the folder, or of the file without suffixes; printable characters only.
    files : tuple of Path
        Candidates, in order of their names.
    trouble : str
        Why there is nothing to read, or "".
    loose : bool
        Whether it lies in the folder of all and is not even called a notebook or Python file, so
        that it may be nobody's submission.
    """

    student: str
    files: tuple[Path, ...]
    trouble: str = ""
    loose: bool = False


@dataclass(frozen=True)
class Readable:
    """The files of an entry that can be read.

    Attributes
    ----------
    programs : tuple of Program
    notes : tuple of str
        What is wrong with the others.
    """

    programs: tuple[Program, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """The file of an entry that counts for the questions of a notebook.

    Attributes
    ----------
    program : Program or None
        None if no file can be graded.
    notes : tuple of str
        What was chosen, and what is wrong with the other files.
    """

    program: Program | None
    notes: tuple[str, ...] = ()


def entries(folder: Path) -> list[Entry]:
    """One entry a learner: each folder in ``folder`` and each file directly in it, by name.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If ``folder`` is not a folder.
    """
    if not folder.exists():
        raise FileNotFoundError(f"submissions folder {folder} does not exist")
    if not folder.is_dir():
        raise NotADirectoryError(f"submissions folder {folder} is not a folder")
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _SKIPPED:
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        found.setdefault(path.name if is_folder else _stem(path.name), []).append(path)
    taken: set[str] = set()
    result = []
    for name, paths in found.items():
        student = printable(name)
        while student in taken:
            student += "_"
        taken.add(student)
        loose = all(path.is_file() and not path.is_symlink() and not _is_named_well(path.name)
                    for path in paths)
        result.append(replace(entry(student, paths), loose=loose))
    return result


def entry(student: str, paths: Sequence[Path]) -> Entry:
    """The entry of one learner from files and folders."""
    files: list[Path] = []
    trouble = ""
    for path in paths:
        if path.is_symlink() and path.is_dir():
            trouble = f"`{printable(path.name)}` is a symbolic link, which is not followed."
        elif path.is_dir():
            files += _walk(path, 0)
        else:
            files.append(path)
    if len(files) > MAX_FILES:
        trouble = f"More than {MAX_FILES} files were handed in; the first {MAX_FILES} are read."
        files = files[:MAX_FILES]
    if not files and not trouble:
        trouble = ("Nothing was handed in: the folder is empty, or its files lie more than "
                   f"{MAX_DEPTH} folders deep.")
    return Entry(student, tuple(files), trouble)


def readable(entry: Entry) -> Readable:
    """Read and analyse all files of an entry."""
    notes = [entry.trouble] if entry.trouble else []
    programs = []
    for path in entry.files:
        try:
            programs.append(Program(read(path)))
        except SubmissionError as error:
            notes.append(f"`{printable(path.name)}` {error}.")
    return Readable(tuple(programs), tuple(notes))


def choose(files: Readable, questions: Sequence[Question]) -> Choice:
    """The file that answers most of the questions.

    Of two that answer equally many, a notebook goes before a Python file, and then the name that
    comes last in the alphabet (``answers_v2`` before ``answers_v1``).
    """
    notes = list(files.notes)
    ranked: list[tuple[tuple[int, int, bool, str], Program]] = []
    for program in files.programs:
        written = sum(program.written(question.function) for question in questions)
        present = sum(question.function in program.defined for question in questions)
        submission = program.submission
        ranked.append(((written, present, submission.notebook, str(submission.path)), program))
    if not ranked:
        return Choice(None, tuple(notes))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    best = ranked[0][1]
    rivals = [(key, program) for key, program in ranked[1:] if key[0]]
    if rivals:
        others = ", ".join(f"`{x.submission.name}`" for _, x in rivals[:4])
        written, _, is_notebook, _ = ranked[0][0]
        (next_written, _, next_is_notebook, _), _ = rivals[0]
        why = ("it has answers to more questions" if written > next_written else
               "it is a notebook" if is_notebook > next_is_notebook else
               "of two that answer equally many, the last by name counts")
        notes.insert(0, f"Several files have answers to {questions[0].notebook}: "
                        f"`{best.submission.name}` counted, {others} did not ({why}).")
    return Choice(best, tuple(notes[:5]))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if depth >= MAX_DEPTH:
        return
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return
    for path in children:
        if path.name.startswith(".") or path.name in _SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, depth + 1)
        else:
            yield path


def _is_named_well(name: str) -> bool:
    return any(suffix in (".ipynb", ".py") for suffix in Path(name).suffixes)


def _stem(name: str) -> str:
    """The file's name without its suffixes, also where a download has added one."""
    while Path(name).suffix in (".ipynb", ".py", ".txt", ".json"):
        name = Path(name).stem
    return name
