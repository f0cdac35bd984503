"""A class of submissions: every one gets what it deserves, question by question."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from distlearn.grading import Report, grade
from tests.grading.answers import FULL, cells, expected, notebook, right, script

EQUAL = """
class Everything(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __hash__(self): return 0

def bubble_fraction(p, m):
    return Everything()
"""
FLOOD = """
def order_1f1b(p, m, r):
    while True:
        print("x" * 100_000)
"""


def hand_in(folder: Path) -> None:
    """The ten submissions of the first issue, and what they try."""
    notebook(folder / "right" / "pipeline_1.ipynb", cells())
    notebook(folder / "wrong" / "pipeline_1.ipynb",
             cells(bubble_fraction="def bubble_fraction(p, m): return (p - 1) / m"))
    (folder / "empty").mkdir()
    notebook(folder / "syntax.ipynb",
             cells(order_1f1b="x = 1\ndef order_1f1b(p, m, r)\n    return []"))
    notebook(folder / "loop.ipynb",
             cells(bubble_fraction="def bubble_fraction(p, m):\n    while True: pass"))
    notebook(folder / "exit.ipynb",
             cells(peak_activations="def peak_activations(actions):\n    sys.exit(0)"))
    notebook(folder / "equal" / "pipeline_1.ipynb", cells(bubble_fraction=EQUAL))
    notebook(folder / "flood" / "pipeline_1.ipynb", cells(order_1f1b=FLOOD))
    notebook(folder / "renamed" / "my answers (final).ipynb.txt", cells())
    script(folder / "python.py", cells())


DESERVED = {
    "right": expected(), "renamed": expected(), "python": expected(),
    "wrong": expected("bubble_fraction"), "loop": expected("bubble_fraction"),
    "equal": expected("bubble_fraction"), "exit": expected("peak_activations"),
    "syntax": expected("order_1f1b"), "flood": expected("order_1f1b"),
    "empty": dict.fromkeys(FULL, 0),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    folder, out = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("out")
    hand_in(folder)
    return grade(folder, out, time_limit=1.0, progress=False), out


def test_every_submission_gets_the_deserved_score(graded: tuple[Report, Path]) -> None:
    report, _ = graded
    assert report.scores == DESERVED
    assert report.notes == (), "hidden cases were not found"


def test_gradebook_has_a_row_a_student_and_a_column_a_question(
        graded: tuple[Report, Path]) -> None:
    _, out = graded
    rows = list(csv.DictReader((out / "gradebook.csv").read_text().splitlines()))
    assert [row["student"] for row in rows] == sorted(DESERVED)
    for row in rows:
        scores = DESERVED[row["student"]]
        assert {name: int(row[name]) for name in FULL} == scores
        assert int(row["total"]) == sum(scores.values())
        assert row["max"] == "20"


def test_class_summary_counts_per_question(graded: tuple[Report, Path]) -> None:
    _, out = graded
    rows = {row["question"]: row
            for row in csv.DictReader((out / "questions.csv").read_text().splitlines())}
    for name, points in FULL.items():
        full = sum(scores[name] == points for scores in DESERVED.values())
        assert float(rows[name]["share_full"]) == full / 10
        assert float(rows[name]["mean"]) == pytest.approx(points * full / 10)
        assert rows[name]["common_failure"]


@pytest.mark.parametrize(("student", "words"), [
    ("wrong", ["pipeline/bubble", "bubble_fraction(p=4, m=8)", "got     0.375",
               "wanted  0.2727", "Megatron"]),
    ("loop", ["took longer than 1 s"]),
    ("exit", ["ends the whole Python process (SystemExit 0)"]),
    ("syntax", ["code cell 3, line 2: SyntaxError: expected ':' in `def order_1f1b(p, m, r)`"]),
    ("equal", ["object of type Everything, a kind of float"]),
    ("flood", ["took longer than 1 s"]),
    ("empty", ["the folder is empty"]),
])
def test_feedback_says_what_happened(
        graded: tuple[Report, Path], student: str, words: list[str]) -> None:
    _, out = graded
    text = (out / "feedback" / f"{student}.md").read_text()
    page = (out / "feedback" / f"{student}.html").read_text()
    for word in words:
        assert word in " ".join(text.split()) or word in text
    assert "Traceback" not in text + page
    assert "distlearn/grading" not in text + page
    assert max(len(text.encode()), len(page.encode())) < 64 * 1024


def test_results_json_has_everything(graded: tuple[Report, Path]) -> None:
    report, out = graded
    data = json.loads((out / "results.json").read_text())
    assert {one["student"]: one["total"] for one in data["students"]} == {
        one.student: one.total for one in report.students}
    for one in data["students"]:
        assert (out / one["feedback"]).is_file()


def test_grading_again_gives_the_same_bytes_and_no_leftovers(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    notebook(folder / "ann.ipynb", cells(bubble_fraction="def bubble_fraction(p, m): return 1"))
    notebook(folder / "gone.ipynb", [""])
    grade(folder, out, progress=False, jobs=1)
    assert (out / "feedback" / "gone.md").exists()
    (folder / "gone.ipynb").unlink()
    grade(folder, out, progress=False, jobs=2)
    first = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert set(first) == {"gradebook.csv", "questions.csv", "results.json", "ann.md", "ann.html"}
    (out / "mine.txt").write_text("stays")
    grade(folder, out, progress=False)
    again = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert again.pop("mine.txt") == b"stays"
    assert again == first


def test_feedback_stays_small_when_everything_fails_with_big_outputs(tmp_path: Path) -> None:
    big = "x" * 3_000_000
    path = notebook(tmp_path / "in" / "big.ipynb", [
        f"def {name}(*args):\n    raise ValueError('y' * 1_000_000)" for name in right()])
    book = json.loads(path.read_text())
    for cell in book["cells"]:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": big}]
    path.write_text(json.dumps(book))
    report = grade(tmp_path / "in", tmp_path / "out", progress=False)
    assert report.students[0].total == 0
    for file in (tmp_path / "out" / "feedback").iterdir():
        assert file.stat().st_size < 64 * 1024
        assert "xxxxxxxx" not in file.read_text()


def test_names_cannot_leave_the_folder_or_run_in_a_spreadsheet(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("=cmd|' /C calc'!A0", "@sum", "..hidden.. ", "Ann", "ann", "a\nb", "été 学生",
                 "<img src=x onerror=alert(1)>"):
        notebook(folder / name / "x.ipynb", [""])
    report = grade(folder, out, progress=False)
    assert len(report.students) == 7  # names that begin with a point are not submissions
    rows = list(csv.reader((out / "gradebook.csv").read_text().splitlines()))
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "@", "+", "-")]
    assert len(list((out / "feedback").glob("*.md"))) == 7
    assert len({path.name.lower() for path in (out / "feedback").glob("*.md")}) == 7
    assert not [p for p in (out / "feedback").glob("*.html") if "<img" in p.read_text()]


def test_output_inside_the_submissions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    with pytest.raises(ValueError, match=r"out_dir .* is inside submissions_dir"):
        grade(tmp_path, tmp_path / "out")


def test_missing_folder_and_bad_limits_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        grade(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(ValueError, match="time_limit"):
        grade(tmp_path, tmp_path.parent / "elsewhere", time_limit=0)
    with pytest.raises(ValueError, match="jobs"):
        grade(tmp_path, tmp_path.parent / "elsewhere", jobs=0)
    with pytest.raises(ValueError, match="exercise set"):
        grade(tmp_path, tmp_path.parent / "elsewhere", sets=["nope"])
    with pytest.raises(FileNotFoundError, match="hidden"):
        grade(tmp_path, tmp_path.parent / "elsewhere", hidden=tmp_path / "none")


def test_without_hidden_cases_the_report_says_so(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distlearn.grading.hidden.default_path", lambda: None)
    notebook(tmp_path / "in" / "ann.ipynb", cells())
    report = grade(tmp_path / "in", tmp_path / "out", progress=False)
    assert "Only the visible cases" in report.notes[0]
    assert report.ok
