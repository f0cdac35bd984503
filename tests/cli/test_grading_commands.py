"""`check`, `grade`, `release` are thin: codes and outputs around what distlearn.grading finds."""

import csv
from pathlib import Path

import pytest

RIGHT = "def bubble_fraction(p, m):\n    return (p - 1) / (m + p - 1)\n"
WRONG = "def bubble_fraction(p, m):\n    return (p - 1) / m\n"


@pytest.fixture
def two(empty):
    """Two submissions, one right and one wrong."""
    for name, code in (("ann", RIGHT), ("bob", WRONG)):
        (empty / "in" / name).mkdir(parents=True)
        (empty / "in" / name / "answers.py").write_text(code)
    (empty / "essay.md").write_text("Dear teacher, the dog ate it.")
    return empty / "in"


def test_check_passes_and_fails(cli, two):
    right = cli("check", two / "ann" / "answers.py", "pipeline/bubble")
    assert right.exit_code == 0
    assert "PASS" in right.stdout
    wrong = cli("check", two / "bob" / "answers.py", "pipeline/bubble")
    assert (wrong.exit_code, wrong.stderr) == (1, "")
    assert "got " in wrong.stdout and "wanted " in wrong.stdout
    assert cli("check", two / "ann" / "answers.py").exit_code == 1  # four answers are missing


def test_grade_writes_the_gradebook(cli, two):
    result = cli("grade", two, "-o", "out", "--jobs", 2)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("ann")
    with Path("out/gradebook.csv").open(newline="", encoding="utf-8") as file:
        rows = {row[0]: row for row in csv.reader(file)}
    assert {"ann", "bob"} <= set(rows)
    (two / "plan.txt").write_text("Who grades what? Nobody knows.")
    Path("class.csv").write_text("student,group\nann,1\nbobby,2\n")
    result = cli("grade", two, "-o", "out", "--roster", "class.csv", "--set", "pipeline_1")
    for line in ("1 of 2 on the roster handed in nothing: bobby.",
                 "Not on the roster, but graded: bob (is it bobby?).",
                 "bobby: Nothing was handed in.",
                 "No submission, left out: `plan.txt` is neither a notebook (.ipynb) nor Python"):
        assert line in result.stdout
    assert cli("grade", two, "-o", "out", "--strict").exit_code == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (("check", "none.py"), "none.py does not exist"),
    (("check", "essay.md"), "(.ipynb) nor Python (.py): check takes the notebook"),
    (("check", "in/ann/answers.py", "pipeline/bubbel"), "did you mean 'pipeline/bubble'"),
    (("check", "in/ann/answers.py", "--time", "0"), "'0' is not a number of seconds > 0"),
    (("check", "in/ann/answers.py", "--time", "1,2"), "'1,2' is not a number of seconds > 0"),
    (("check", "in/ann/answers.py", "--memory", "lots"), "'lots' is not a whole number"),
    (("grade", "in"), "Missing option '--out'"),
    (("grade", "none", "-o", "out"), "none does not exist"),
    (("grade", "in", "-o", "in/out"), "inside submissions_dir"),
    (("grade", "in", "-o", "out", "--set", "nope"), "no exercise set is called 'nope'"),
    (("release", "none", "out"), "no solved notebook"),
])
def test_bad_input(cli, two, arguments, message):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_release_and_its_check(cli, empty):
    import nbformat.v4 as v4
    from nbformat import write

    cell = ("def bubble_fraction(p, m):\n    ### BEGIN SOLUTION\n    return 1\n"
            "    ### END SOLUTION\n")
    Path("solutions").mkdir()
    write(v4.new_notebook(cells=[v4.new_code_cell(cell, id="a")]), "solutions/a.ipynb")
    stale = cli("release", "--check")
    assert stale.exit_code == 1 and "exercises/a.ipynb is missing" in stale.stdout
    assert "written: exercises/a.ipynb" in cli("release").stdout
    assert "return 1" not in Path("exercises/a.ipynb").read_text()
    assert cli("release", "--check").exit_code == 0
    assert "unchanged: 1" in cli("release").stdout
    text = Path("exercises/a.ipynb").read_text()
    Path("exercises/a.ipynb").write_text(text.replace("def bubble", "# mine\\ndef bubble"))
    assert "kept: exercises/a.ipynb" in cli("release").stdout
    assert "mine" in Path("exercises/a.ipynb").read_text()
    assert cli("release", "--overwrite").exit_code == 0
    assert Path("exercises/a.ipynb").read_text() == text


def test_handout_says_what_it_made_and_refuses_to_replace(cli, empty):
    done = cli("handout", "-o", "course.zip")
    assert done.exit_code == 0
    assert "written: course.zip" in done.stdout and "pipeline_1.ipynb" in done.stdout
    again = cli("handout", "-o", "course.zip")
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    assert "--overwrite" in again.stderr
    assert cli("handout", "-o", "course.zip", "--overwrite").exit_code == 0
