"""Where results go: whole or not at all, under safe names; hidden cases that cannot be used."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from distlearn.grading import Report, grade
from distlearn.grading.hidden import load
from distlearn.grading.report import StudentResult
from distlearn.grading.writing import write
from tests.grading.answers import cells, notebook


def test_an_empty_folder_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match="no submissions"):
        grade(tmp_path / "in", tmp_path / "out", progress=False)


def test_a_result_that_cannot_be_kept_is_not_worked_out(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distlearn.grading.grader.run", lambda *_, **__: pytest.fail("it was run"))
    notebook(tmp_path / "in" / "ann.ipynb", cells())
    (tmp_path / "out" / "results.json").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match=r"out/results\.json"):
        grade(tmp_path / "in", tmp_path / "out", progress=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file/out"):
        grade(tmp_path / "in", tmp_path / "file" / "out", progress=False)


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_the_old_results_whole(
        trouble: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report((), tuple(StudentResult(name, "", ()) for name in ("ann", "bob")))
    write(report, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    wanted, real = len(before) - 1, Path.write_text
    written: list[Path] = []

    def fail_late(path: Path, *arguments: Any, **options: Any) -> int:
        written.append(path)
        if len(written) == wanted:
            raise trouble
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail_late)
    other = Report((), (StudentResult("ann", "other.py", ()), StudentResult("cem", "", ())))
    with pytest.raises(type(trouble)) as caught:
        write(other, tmp_path)
    if isinstance(caught.value, OSError):
        assert str(caught.value.filename).endswith("results.json")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_only_feedback_of_an_earlier_run_is_removed(tmp_path: Path) -> None:
    (tmp_path / "feedback" / "figures.html").mkdir(parents=True)
    (tmp_path / "feedback" / "remarks.md").write_text("by the instructor")
    (tmp_path / "results.json").write_text('{"students": [{"feedback": "../gone"}, 3]}')
    write(Report((), (StudentResult("ann", "", ()), StudentResult("bob", "", ()))), tmp_path)
    write(Report((), (StudentResult("bob", "", ()),)), tmp_path)
    assert sorted(path.name for path in (tmp_path / "feedback").iterdir()) == [
        "bob.html", "bob.md", "figures.html", "remarks.md"]


@pytest.mark.parametrize("name", ["x" * 300, "学" * 100, "𠀀" * 100, "été", "..", "a/b", "é" * 99])
def test_every_student_name_becomes_a_file_name(name: str, tmp_path: Path) -> None:
    names = [name, name + "x", unicodedata.normalize("NFD", name) + "'", name.upper() + "!"]
    names = list(dict.fromkeys(names))
    write(Report((), tuple(StudentResult(one, "", ()) for one in names)), tmp_path)
    files = [path.name for path in (tmp_path / "feedback").glob("*.md")]
    same = {unicodedata.normalize("NFC", file).casefold() for file in files}
    assert len(files) == len(same) == len(names)


@pytest.mark.parametrize(("source", "words"), [
    ("def cases() return", "cannot be run: SyntaxError"),
    ("import not_there", "cannot be run: ModuleNotFoundError"),
    ("def cases(): return 1 / 0", "cannot be run: ZeroDivisionError"),
    ("def cases(): return 3", "returns a dict"),
    ("def cases(): return {'pipeline/bubble': [3]}", "case 0: it is a int, not a Case"),
    ("def cases(): return {'pipeline/bubbel': [3]}", "did you mean 'pipeline/bubble'"),
    ("def cases(): return {'pipeline/bubble': [Case((1,), 0)]}", "1 arguments, bubble_fraction"),
])
def test_broken_hidden_cases_are_named(source: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "hidden.py").write_text(f"from distlearn.grading import Case\n{source}\n")
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        load(tmp_path / "hidden.py")
    assert "hidden.py" in str(caught.value)
