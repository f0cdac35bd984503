"""Who is absent, what is nobody's, what is there twice: all of it is said."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from distlearn.grading import grade
from distlearn.grading.collect import entries
from distlearn.grading.roster import call_roll, read_roster
from tests.grading.answers import script

BUBBLE = "def bubble_fraction(p, m):\n    return (p - 1) / (m + p - 1)"
WRONG = "def bubble_fraction(p, m):\n    return p / m"


def rows(out: Path) -> dict[str, dict[str, str]]:
    with (out / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize(("text", "names"), [
    ("ann\n\n# the others\nBob Lee\n", ("ann", "Bob Lee")),
    ("id,student\n7,ann\n8,été\n", ("ann", "été")),
    ("\ufeffStudent,points\r\nann,\r\n", ("ann",)),
    ('"Lee, Bob",x\n', ("Lee, Bob",)),
])
def test_a_roster_is_lines_or_csv(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    (tmp_path / "class").write_text(text, encoding="utf-8", newline="")
    assert read_roster(tmp_path / "class") == names


@pytest.mark.parametrize(("text", "words"), [
    ("", "names no student"), ("student\n", "names no student"), ("ann\nAnn\n", "'ann' twice"),
])
def test_a_roster_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "class").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_roster(tmp_path / "class")


def test_the_roll_is_called(tmp_path: Path) -> None:
    script(tmp_path / "ann.py", [BUBBLE])
    script(tmp_path / "ANN2.py", [BUBBLE])
    (tmp_path / "bob").mkdir()
    (tmp_path / "dee.docx").write_bytes(b"PK\x03\x04\xff")
    (tmp_path / "plan.xlsx").write_bytes(b"PK\x03\x04\xff")
    found, notes = call_roll(entries(tmp_path), ["bob", "Ann", "cem", "Dee"])
    assert [one.student for one in found] == ["ANN2", "Ann", "Dee", "bob", "cem",
                                                "plan.xlsx"]
    assert [one.student for one in found if one.loose] == ["plan.xlsx"], "dee's is the wrong file"
    assert notes == ["1 of 4 on the roster handed in nothing: cem.",
                     "Not on the roster, but graded: ANN2."]


def test_absent_strays_and_files_twice_are_told(tmp_path: Path) -> None:
    source = tmp_path / "in"
    script(source / "ann.py", [BUBBLE])
    script(source / "bob" / "try_1.py", [WRONG])
    script(source / "bob" / "try_2.py", [BUBBLE])
    (source / "README.txt").write_text("Please grade soon. Thanks!")
    (source / "broken.ipynb").write_text("{")  # somebody's: it is called a notebook
    (tmp_path / "class.txt").write_text("ann\nbob\ncem\n")
    report = grade(source, tmp_path / "out", sets=["pipeline_1"], roster=tmp_path / "class.txt",
                   progress=False)
    assert [one.student for one in report.students] == ["ann", "bob", "broken", "cem"]
    book = rows(tmp_path / "out")
    assert (book["cem"]["total"], book["cem"]["note"]) == ("0", "Nothing was handed in.")
    for words in ("`try_2.py` counted, `try_1.py` did not", "equally many, the last by name"):
        assert words in book["bob"]["note"]
    assert book["bob"]["pipeline/bubble"] == "2"
    assert (book["README.txt"]["total"], book["README.txt"]["pipeline/bubble"]) == ("", "")
    assert "left out: `README.txt` is neither a notebook" in book["README.txt"]["note"]
    assert "broken JSON" in book["broken"]["note"]
    text = report.to_text()
    for words in ("1 of 3 on the roster handed in nothing: cem.", "cem: Nothing was handed in.",
                  "bob: Several files have answers to pipeline_1: `try_2.py` counted",
                  "No submission, left out: `README.txt` is neither",
                  "Not on the roster, but graded: broken."):
        assert words in text
    data = json.loads((tmp_path / "out" / "results.json").read_text())
    assert data["strays"] == [{"file": "README.txt", "why": report.strays[0][1]}]
    assert not (tmp_path / "out" / "feedback" / "README.md").exists()


def test_the_first_file_does_not_win_by_its_name_alone(tmp_path: Path) -> None:
    script(tmp_path / "in" / "ann" / "a.py", [BUBBLE, "def order_1f1b(p, m, r): return []"])
    script(tmp_path / "in" / "ann" / "z.py", [BUBBLE])
    report = grade(tmp_path / "in", tmp_path / "out", progress=False, sets=["pipeline_1"])
    assert "`a.py` counted, `z.py` did not (it has answers to more questions)" in report.to_text()


def test_a_notebook_not_handed_in_is_one_line(tmp_path: Path) -> None:
    ring = "async def ring_all_reduce(comm, x): return x"
    script(tmp_path / "in" / "ann.py", [BUBBLE])
    script(tmp_path / "in" / "bob.py", [BUBBLE, ring])
    script(tmp_path / "in" / "cem" / "ranks_1.py", ["def ring(comm, x): return x"])
    script(tmp_path / "in" / "cem" / "pipeline_1.py", [BUBBLE])
    report = grade(tmp_path / "in", tmp_path / "out", progress=False)
    ann, bob, cem = report.students
    assert list(ann.not_handed_in) == ["ranks_1"]
    assert not bob.not_handed_in
    assert not cem.not_handed_in, "it is there, with other names"
    line = report.to_text().splitlines()[0]
    assert line.count("ranks_1: not handed in") == 1
    assert "ring" not in line
    feedback = (tmp_path / "out" / "feedback" / "ann.md").read_text()
    assert feedback.count("not handed in") == 1
    assert "| ranks_1 | 0 of " in feedback
    assert rows(tmp_path / "out")["ann"]["ranks/ring"] == "0"


def test_only_strays_are_no_class(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.txt").write_text("Nothing to see here.")
    with pytest.raises(ValueError, match=r"no submissions: their folder holds only notes\.txt"):
        grade(tmp_path / "in", tmp_path / "out", progress=False)
