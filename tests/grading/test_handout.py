"""What learners get: it works where it is unpacked, and no solution or hidden case is in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from distlearn.grading import hand_out, questions
from distlearn.grading.releasing import solved
from tests.exercises.material import hidden
from tests.grading.answers import SOLUTIONS, notebook

ROOT = SOLUTIONS.parent
ANSWER = """\
def f(x):
    ### BEGIN SOLUTION
    secret = 2
    secret += x
    return secret
    ### END SOLUTION
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handout of this repository."""
    return hand_out(tmp_path_factory.mktemp("handout") / "course").path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small checkout with what an instructor leaves lying about."""
    root = tmp_path / "root"
    notebook(root / "solutions" / "a_1.ipynb", [ANSWER])
    for name in ("LICENSE", "LICENSE-text", "Makefile", "pyproject.toml", "requirements.lock",
                 "README.md", "CONTRIBUTING.md", "book/a.md", "book/_build/html/index.html",
                 "book/.ipynb_checkpoints/a.md", "distlearn/__init__.py",
                 "distlearn/__pycache__/a.pyc", "tests/exercises/hidden_a.py", ".git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def text_of(path: Path) -> str:
    """What stands in a file, as a reader sees it, without spaces and line ends."""
    text = path.read_bytes().decode("utf-8", "ignore")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return "".join(text.split())


def test_no_solution_is_in_it(given: Path) -> None:
    blocks = ["".join(block.split()) for path in SOLUTIONS.glob("*.ipynb")
              for block in solved(path)]
    assert len(blocks) >= len(questions())
    texts = {path: text_of(path) for path in given.rglob("*")
             if path.suffix in (".py", ".md", ".ipynb", ".txt")}
    for block in blocks:
        if len(block) > 60:  # shorter ones are formulas of the chapters
            assert not [path for path, text in texts.items() if block in text]
    assert not any("###BEGINSOLUTION" in text for path, text in texts.items()
                   if path.suffix == ".ipynb")


def test_no_hidden_case_can_be_found_or_imported(given: Path) -> None:
    names = [path.relative_to(given).as_posix() for path in given.rglob("*")]
    assert not [name for name in names if re.search(r"hidden_|mutants_|tests/|solutions/", name)]
    new = {repr(case.wanted) for name, cases in hidden().items() for case in cases
           if len(repr(case.wanted)) > 40}  # shorter ones stand in examples, too
    visible = {repr(case.wanted) for question in questions() for case in question.cases}
    package = "".join(path.read_text("utf-8") for path in (given / "distlearn").rglob("*.py"))
    assert not [wanted for wanted in new - visible if wanted in package]


LEARNER = """
import json, pathlib, sys
sys.path.insert(0, ".")
import matplotlib; matplotlib.use("Agg")
import distlearn
from distlearn.grading import hidden
assert pathlib.Path(distlearn.__file__).parent.parent == pathlib.Path.cwd()
assert hidden.default_path() is None
names = {"__name__": "__main__"}
for cell in json.load(open("exercises/ranks_1.ipynb"))["cells"]:
    if cell["cell_type"] == "code":
        source = "".join(line for line in cell["source"] if not line.startswith("%"))
        exec(source, names)
"""


def test_its_notebooks_run_and_its_stubs_say_what_to_do(given: Path) -> None:
    done = subprocess.run([sys.executable, "-P", "-W", "error", "-c", LEARNER], cwd=given,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for question in questions("ranks_1"):
        assert f"`{question.function}` is not written yet" in " ".join(done.stdout.split())


def test_make_lab_asks_for_nothing_that_learners_do_not_have(given: Path) -> None:
    (given / ".venv" / "stamps").mkdir(parents=True)
    (given / ".venv" / "stamps" / "setup").touch()
    done = subprocess.run(["make", "-n", "lab"], cwd=given, capture_output=True, text=True,
                          check=True)
    assert "jupyter lab" in done.stdout
    assert "release" not in done.stdout
    needed = re.findall(r"license-files = \[(.*)\]|^readme = \"(.*)\"",
                        (given / "pyproject.toml").read_text(), re.MULTILINE)
    for name in re.findall(r"[\w.-]+", " ".join("".join(pair) for pair in needed)):
        assert (given / name).is_file()


def test_what_lies_about_is_left_out(root: Path, tmp_path: Path) -> None:
    hand_out(tmp_path / "out", root=root)
    names = {path.relative_to(tmp_path / "out").as_posix()
             for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {"LICENSE", "LICENSE-text", "Makefile", "pyproject.toml", "requirements.lock",
                     "README.md", "book/a.md", "distlearn/__init__.py", "exercises/a_1.ipynb",
                     ".distlearn-handout"}
    assert "NotImplementedError" in (tmp_path / "out" / "exercises" / "a_1.ipynb").read_text()
    assert "make lab" in (tmp_path / "out" / "README.md").read_text()


def test_the_built_book_comes_along_if_asked_for(root: Path, tmp_path: Path) -> None:
    done = hand_out(tmp_path / "out", root=root, book=True)
    assert (done.path / "book/_build/html/index.html").is_file()
    (root / "book/_build/html/index.html").unlink()
    with pytest.raises(FileNotFoundError, match="make book"):
        hand_out(tmp_path / "other", root=root, book=True)
    assert not (tmp_path / "other").exists()


def test_a_zip_file_has_the_same_and_the_same_bytes_again(root: Path, tmp_path: Path) -> None:
    folder = hand_out(tmp_path / "course", root=root).path
    packed = hand_out(tmp_path / "course.zip", root=root).path
    first = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"course/{path.relative_to(folder).as_posix()}": path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(FileExistsError, match="--overwrite"):
        hand_out(packed, root=root)
    hand_out(packed, root=root, overwrite=True)
    assert packed.read_bytes() == first


def test_only_an_older_handout_is_replaced(root: Path, tmp_path: Path) -> None:
    out = hand_out(tmp_path / "out", root=root).path
    with pytest.raises(FileExistsError, match="--overwrite"):
        hand_out(out, root=root)
    (out / "old.txt").touch()
    hand_out(out, root=root, overwrite=True)
    assert not (out / "old.txt").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    hand_out(mine, root=root)  # an empty folder is as good as none
    (mine / ".distlearn-handout").unlink()
    with pytest.raises(FileExistsError, match="not made by"):
        hand_out(mine, root=root, overwrite=True)
    assert (mine / "README.md").is_file()


def test_nothing_is_left_where_it_fails(root: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="is copied into it"):
        hand_out(root / "book" / "out", root=root)
    with pytest.raises(FileNotFoundError, match="no checkout with solutions"):
        hand_out(tmp_path / "out", root=tmp_path)
    (root / "LICENSE").unlink()
    with pytest.raises(FileNotFoundError, match="LICENSE"):
        hand_out(tmp_path / "out", root=root)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["book/a_1 solved.ipynb", "book/notes.md", "distlearn/a.py"])
def test_a_solution_kept_elsewhere_is_found(root: Path, tmp_path: Path, name: str) -> None:
    if name.endswith(".ipynb"):
        notebook(root / name, ["x = 1", ANSWER.replace("###", "#")])
    else:
        (root / name).write_text(ANSWER.replace("    ", "\t"))
    with pytest.raises(ValueError, match=re.escape(f"{name} would be handed out with a solution")):
        hand_out(tmp_path / "out", root=root)
    assert not (tmp_path / "out").exists()
