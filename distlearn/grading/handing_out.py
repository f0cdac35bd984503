"""Make what an instructor gives to learners: exercises, book and package, and no solution.

Hidden cases, mutants and solutions stand outside the package, in ``tests/`` and ``solutions/``, and
nothing of these folders is copied. What is copied is searched for the text of the solutions all the
same: somebody may have kept a solved notebook beside a chapter.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from distlearn.grading.releasing import exercises, solved

_FOLDERS = ("book", "distlearn")
_FILES = ("LICENSE", "LICENSE-text", "Makefile", "pyproject.toml", "requirements.lock")
_MARK = ".distlearn-handout"  # a folder with it was made here, and may be replaced
_BUILT = Path("book/_build/html")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


@dataclass(frozen=True)
class Handout:
    """What `hand_out` has written.

    Attributes
    ----------
    path : Path
    files : int
        How many files are in it.
    exercises : tuple of str
        Names of the notebooks to solve.
    """

    path: Path
    files: int
    exercises: tuple[str, ...]


def hand_out(
    out: str | Path, *, root: str | Path | None = None, book: bool = False,
    overwrite: bool = False,
) -> Handout:
    """Write everything that a learner needs into a folder or zip file, whole or not at all.

    Parameters
    ----------
    out : path
        A folder to make; a zip file if it ends with ``.zip``. The same sources give the same bytes.
    root : path, optional
        The instructor's checkout. Default: the one that this package runs from.
    book : bool
        With the built pages of the book, not only its sources.
    overwrite : bool
        Replace an older handout.

    Raises
    ------
    FileNotFoundError
        If there is no checkout, or the book is asked for and not built.
    FileExistsError
        If ``out`` is there and may not be overwritten, or is no handout.
    ReleaseError
        If an exercise cannot be made from its solution.
    ValueError
        If a file that would be copied has a solution in it, or ``out`` lies in a copied folder.
    """
    root = Path(root) if root is not None else Path(__file__).resolve().parents[2]
    target = Path(out)
    if not (root / "solutions").is_dir() or not (root / "pyproject.toml").is_file():
        raise FileNotFoundError(f"{root} is no checkout with solutions/: learners' files are made "
                                "from the instructor's copy of the repository")
    for folder in _FOLDERS:
        if target.resolve().is_relative_to((root / folder).resolve()):
            raise ValueError(f"out {target} is inside {root / folder}, which is copied into it")
    _refuse_existing(target, overwrite)
    files = _files(root, book)
    _refuse_solutions(files, root / "solutions")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".distlearn-", dir=target.parent) as temporary:
        made = Path(temporary) / "new"
        if target.suffix == ".zip":
            _write_zip(made, files, target.stem)
        else:
            _write_folder(made, files)
            if target.is_dir():
                target.replace(Path(temporary) / "old")
        made.replace(target)
    names = tuple(sorted(name for name, _ in exercises(root / "solutions")))
    return Handout(target, len(files), names)


def _refuse_existing(target: Path, overwrite: bool) -> None:
    if not target.exists() and not target.is_symlink():
        return
    if target.suffix == ".zip":
        if target.is_file() and overwrite:
            return
    elif target.is_dir() and not target.is_symlink():
        if not any(target.iterdir()) or (overwrite and (target / _MARK).is_file()):
            return
        if overwrite:
            raise FileExistsError(f"out {target} was not made by `distlearn handout` and is not "
                                  "replaced")
    raise FileExistsError(f"out {target} exists already; an older handout is replaced with "
                          "--overwrite")


def _files(root: Path, book: bool) -> dict[str, bytes]:
    """Everything that is handed out, by its path with ``/``."""
    found = {"README.md": Path(__file__).with_name("handout.md").read_bytes(), _MARK: b""}
    for name, text in exercises(root / "solutions"):
        found[f"exercises/{name}"] = text.encode()
    paths = [root / name for name in _FILES]
    paths += [path for folder in _FOLDERS for path in _walk(root / folder)]
    if book:
        if not (root / _BUILT / "index.html").is_file():
            raise FileNotFoundError(f"{root / _BUILT} has no built book: run `make book` first")
        paths += _walk(root / _BUILT)
    for path in paths:
        found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def _walk(folder: Path) -> Iterator[Path]:
    """Files, without what programs leave behind: caches, checkpoints, builds."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in ("__pycache__", "_build"):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file() and path.suffix != ".pyc":
            yield path


def _refuse_solutions(files: Mapping[str, bytes], solutions: Path) -> None:
    blocks = [block for path in sorted(solutions.glob("*.ipynb")) for block in solved(path)]
    for name, data in files.items():
        if PurePosixPath(name).suffix not in (".ipynb", ".md", ".py", ".txt"):
            continue
        text = _plain(_code(name, data.decode("utf-8", "replace")))
        for block in blocks:
            if block.count("\n") > 1 and _plain(block) in text:
                raise ValueError(f"{name} would be handed out with a solution in it, the one that "
                                 f"begins with {block.strip().splitlines()[0].strip()!r}")


def _code(name: str, text: str) -> str:
    """What a reader sees of it: of a notebook the cells, not the JSON."""
    if not name.endswith(".ipynb"):
        return text
    try:
        cells = json.loads(text)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells)
    except (ValueError, KeyError, TypeError):
        return text


def _plain(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _write_zip(path: Path, files: Mapping[str, bytes], top: str) -> None:
    with zipfile.ZipFile(path, "x") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"{top}/{name}", _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name], zipfile.ZIP_DEFLATED)
