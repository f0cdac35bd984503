"""Exercises are made from solutions: nothing leaks, nothing varies, nobody's work is lost."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

from distlearn.grading import ReleaseError, check_release, questions, release
from tests.grading.answers import SOLUTIONS, notebook

EXERCISES = SOLUTIONS.parent / "exercises"
ANSWER = """\
def f(x):
    'Doc.'
    ### BEGIN SOLUTION
    secret = 2
    return secret * x
    ### END SOLUTION
"""


def test_the_repository_is_in_step() -> None:
    assert check_release(SOLUTIONS, EXERCISES) == []


def test_no_solution_leaks() -> None:
    for path in EXERCISES.glob("*.ipynb"):
        text = path.read_text()
        assert "SOLUTION" not in text
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        assert text == nbformat.writes(book) + "\n", "the bytes that Jupyter would write"
        assert book.metadata.kernelspec.name == "python3"
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
        stubs = [cell for cell in code if "NotImplementedError" in cell.source]
        asked = questions(path.stem)
        assert [re.search(r"def (\w+)", cell.source)[1] for cell in stubs] == [  # type: ignore[index]
            question.function for question in asked]
        for cell in stubs:
            function = ast.parse(cell.source).body[-1]
            assert [type(x) for x in function.body] == [ast.Expr, ast.Raise], "doc and stub only"  # type: ignore[attr-defined]


def test_solution_becomes_a_stub_and_outputs_go(tmp_path: Path) -> None:
    path = notebook(tmp_path / "s" / "a.ipynb", [ANSWER])
    book = json.loads(path.read_text())
    book["cells"][0].update(execution_count=7, outputs=[
        {"output_type": "stream", "name": "stdout", "text": "secret"}])
    path.write_text(json.dumps(book))
    release(tmp_path / "s", tmp_path / "e")
    cell = nbformat.read(tmp_path / "e" / "a.ipynb", as_version=4).cells[0]
    assert cell.source == ("def f(x):\n    'Doc.'\n"
                           '    raise NotImplementedError("write f here")\n')
    assert cell.outputs == []
    assert cell.id == "c0"


def test_same_source_same_bytes(tmp_path: Path) -> None:
    release(SOLUTIONS, tmp_path / "one")
    release(SOLUTIONS, tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    again = release(SOLUTIONS, tmp_path / "one")
    assert not again.written
    assert len(again.unchanged) == len(list((tmp_path / "one").iterdir()))


def test_a_learners_work_is_not_overwritten(tmp_path: Path) -> None:
    source = notebook(tmp_path / "s" / "a.ipynb", [ANSWER])
    release(tmp_path / "s", tmp_path / "e")
    target = tmp_path / "e" / "a.ipynb"
    solved = target.read_text().replace("raise NotImplementedError", "return 2 * x #")
    target.write_text(solved)
    assert "has been written in" in check_release(tmp_path / "s", tmp_path / "e")[0]
    assert release(tmp_path / "s", tmp_path / "e").kept == (target,)
    assert target.read_text() == solved
    assert release(tmp_path / "s", tmp_path / "e", overwrite=True).written == (target,)
    assert check_release(tmp_path / "s", tmp_path / "e") == []
    notebook(source, [ANSWER, "x = 1"])  # the solution moved on, nobody touched the exercise
    assert "not what its solution gives now" in check_release(tmp_path / "s", tmp_path / "e")[0]
    assert release(tmp_path / "s", tmp_path / "e").written == (target,)


def test_running_and_saving_is_not_editing(tmp_path: Path) -> None:
    notebook(tmp_path / "s" / "a.ipynb", [ANSWER])
    release(tmp_path / "s", tmp_path / "e")
    target = tmp_path / "e" / "a.ipynb"
    book = json.loads(target.read_text())
    book["cells"][0].update(execution_count=3, outputs=[
        {"output_type": "stream", "name": "stdout", "text": "hello"}])
    book["metadata"]["language_info"] = {"name": "python", "version": "3.13"}
    target.write_text(json.dumps(book))
    notebook(tmp_path / "s" / "a.ipynb", [ANSWER, "y = 2"])
    assert release(tmp_path / "s", tmp_path / "e").written == (target,)


def test_what_is_out_of_step_is_named(tmp_path: Path) -> None:
    notebook(tmp_path / "s" / "a.ipynb", [ANSWER])
    (tmp_path / "e").mkdir()
    assert "a.ipynb is missing" in check_release(tmp_path / "s", tmp_path / "e")[0]
    release(tmp_path / "s", tmp_path / "e")
    notebook(tmp_path / "e" / "old.ipynb", ["x"])
    assert "old.ipynb has no solution" in check_release(tmp_path / "s", tmp_path / "e")[0]


@pytest.mark.parametrize(("source", "words"), [
    ("x = 1\n### BEGIN SOLUTION\ny = 2", r"a.ipynb, cell 2, line 2: BEGIN .* without an END"),
    ("### END SOLUTION", "cell 2, line 1: END SOLUTION without a BEGIN"),
    ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "line 2: BEGIN SOLUTION inside"),
])
def test_markers_without_a_partner_are_refused(tmp_path: Path, source: str, words: str) -> None:
    notebook(tmp_path / "s" / "a.ipynb", ["ok = 1", source])
    with pytest.raises(ReleaseError, match=words):
        release(tmp_path / "s", tmp_path / "e")
    assert not list((tmp_path / "e").glob("*")), "nothing is written"


def test_no_solutions_and_broken_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no solved notebook"):
        release(tmp_path, tmp_path / "e")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "b.ipynb").write_text("{")
    with pytest.raises(ReleaseError, match=r"b\.ipynb is not a notebook"):
        release(tmp_path / "s", tmp_path / "e")
