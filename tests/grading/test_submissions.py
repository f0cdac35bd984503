"""Reading what was handed in, and cutting out what a question needs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from distlearn.grading import grade, grade_file
from distlearn.grading.collect import choose, entries, readable
from distlearn.grading.question import questions
from distlearn.grading.slicing import Program
from distlearn.grading.submission import SubmissionError, read
from tests.grading.answers import FULL, cells, expected, notebook, right, script

BUBBLE = "def bubble_fraction(p, m):\n    return (p - 1) / (m + p - 1)"


def scores(path: Path, **options: float) -> dict[str, int]:
    return grade_file(path, time_limit=1.0, **options).scores[path.stem]  # type: ignore[arg-type]


def sliced(tmp_path: Path, *sources: str, name: str = "f") -> str:
    part = Program(read(notebook(tmp_path / "n.ipynb", sources))).slice(name)
    assert part.problem is None, part.problem
    return "\n".join(cell.source for cell in part.cells)


@pytest.mark.parametrize(("content", "words"), [
    (b"", "is empty"), (b" \n\n", "is empty"),
    (bytes(range(256)) * 40, "not text"), (b"abc\0def", "null bytes"),
    (b"{\"cells\": 3}", "not a notebook"), (b"{", "not a notebook"),
    (b"[" * 100_000, "not a notebook"), (b"PK\x03\x04\xff\xfe", "not text"),
])
def test_files_that_are_no_notebook_are_refused_in_words(
        tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=words):
        read(path)
    got = scores(path)
    assert set(got.values()) == {0}
    assert FULL.keys() <= got.keys()


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name in ("essay.txt", "data.csv"):
        (tmp_path / name).write_text("Dear teacher, the dog ate it.")
        with pytest.raises(SubmissionError, match="neither a notebook"):
            read(tmp_path / name)


def test_links_and_huge_files_are_refused(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook(tmp_path / "real.ipynb", cells())
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "real.ipynb")
    with pytest.raises(SubmissionError, match="symbolic link"):
        read(tmp_path / "link.ipynb")
    monkeypatch.setattr("distlearn.grading.submission.MAX_CODE", 1000)
    with pytest.raises(SubmissionError, match="characters of code"):
        read(tmp_path / "real.ipynb")
    monkeypatch.setattr("distlearn.grading.submission.MAX_BYTES", 100)
    with pytest.raises(SubmissionError, match="MiB, over the"):
        read(tmp_path / "real.ipynb")


def test_old_and_odd_notebooks_are_read(tmp_path: Path) -> None:
    old = {"nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "code", "input": BUBBLE.splitlines(True)}, "junk", {"cell_type": "code"}]}]}
    (tmp_path / "old.ipynb").write_text(json.dumps(old), encoding="utf-8-sig")
    assert read(tmp_path / "old.ipynb").cells[0].source == BUBBLE
    (tmp_path / "crlf.py").write_bytes(BUBBLE.replace("\n", "\r\n").encode())
    assert read(tmp_path / "crlf.py").cells[0].source == BUBBLE + "\n" or \
        read(tmp_path / "crlf.py").cells[0].source == BUBBLE


def test_python_in_another_encoding_is_read_if_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ann.py"
    path.write_bytes(("# -*- coding: latin-1 -*-\nx = 'é'\n\n" + BUBBLE).encode("latin-1"))
    assert "x = 'é'" in read(path).cells[0].source
    for claim in (b"no-such-thing", b"punycode", b"ascii", b"hex"):
        path.write_bytes(b"# coding: " + claim + b"\nx = '\xe9'\n")
        with pytest.raises(SubmissionError, match="not text"):
            read(path)


def test_names_and_text_that_are_no_unicode_harm_nobody(tmp_path: Path) -> None:
    script(tmp_path / "in" / os.fsdecode(b"b\xff\xfeb.py"), [BUBBLE, "def order_1f1b(p) 'x'"])
    notebook(tmp_path / "in" / "cut.ipynb", [BUBBLE, "def order_1f1b(p, m, r): '\ud800' x"])
    notebook(tmp_path / "in" / "late.ipynb", ["def bubble_fraction(p, m): raise OSError('\udc80')"])
    report = grade(tmp_path / "in", tmp_path / "out", progress=False)
    assert [one.total for one in report.students] == [2, 2, 0]
    assert report.to_text(details=True).encode()
    assert "b??b.py" in (tmp_path / "out" / "gradebook.csv").read_text()


def test_a_cell_may_await(tmp_path: Path) -> None:
    source = "import asyncio\nk = await asyncio.sleep(0, 1)\n" + BUBBLE.replace("1", "k")
    path = notebook(tmp_path / "ann.ipynb", [source])
    assert scores(path)["pipeline/bubble"] == FULL["pipeline/bubble"]


def test_files_far_down_are_found_or_asked_for(tmp_path: Path) -> None:
    down = tmp_path / "ann" / Path(*"123456789")
    notebook(down / "x.ipynb", cells())
    notebook(tmp_path / "bob" / Path(*"123456789ab") / "x.ipynb", cells())
    ann, bob = entries(tmp_path)
    assert [path.name for path in ann.files] == ["x.ipynb"]
    assert (bob.files, "more than 10 folders deep" in bob.trouble) == ((), True)


def test_magics_are_ignored_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    source = ("%matplotlib inline\n!pip install x\nbuild?\nfiles = !ls\nx = (7\n % 4)\n"
              "if x:\n    %time pass\ndef f(a):\n    return a % x / 0")
    path = notebook(tmp_path / "n.ipynb", ["%%bash\nrm -rf /", source])
    (empty, cell) = read(path).cells
    assert empty.source == ""
    assert cell.parse()
    assert cell.source.splitlines()[9] == "    return a % x / 0"


@pytest.mark.parametrize("header", ["# %%\n", "#%%\n", "# %% [code]\n", ""])
def test_python_files_have_cells_too(tmp_path: Path, header: str) -> None:
    sources = [header + source for source in cells(
        order_1f1b="def order_1f1b(p, m, r)\n    return []")]
    if header:
        sources.insert(1, "# %% [markdown]\n# Some *text* with an apostrophe: don't")
    path = script(tmp_path / "ann.py", sources)
    assert scores(path) == expected("order_1f1b")


def test_docstrings_with_empty_lines_stay_whole(tmp_path: Path) -> None:
    source = "def f(x):\n    '''One.\n\nTwo at the margin.\n'''\n\n    return x\n\n\ny = [\n\n1]\n"
    path = tmp_path / "a.py"
    path.write_text(source)
    assert len(read(path).cells) == 2


def test_trouble_in_other_cells_costs_nothing(tmp_path: Path) -> None:
    trouble = [
        "while True: pass", "import sys; sys.exit()", "input()", "def broken(:", "1 / 0",
        "import not_there", "import os\nos._exit(1)", "raise KeyboardInterrupt",
        "for i in [1: pass", "x = [0] * 10**12", "%%html\n<b>", "\x00",
        "import os\nos.kill(os.getppid(), 9)", "p = m = r = i = 0\nwhile True: i += 1",
    ]
    sources = [piece for source in cells() for piece in (*trouble, source)]
    assert scores(notebook(tmp_path / "ann.ipynb", [*sources, *trouble])) == expected()


@pytest.mark.parametrize("troubles", [
    {"while True: pass": "time limit", "import sys; sys.exit()": "stopped Python",
     "n = input()": "asks for input", "1 / 0": "exception", "import not_there": "exception"},
    {"import os\nos._exit(1)": "stopped Python", "def broken(:": "syntax error",
     "raise KeyboardInterrupt": "interrupted", "x = [0] * 10**12": "memory limit",
     "raise NotImplementedError": "exception"},
])
def test_trouble_in_its_own_cell_costs_the_question(
        tmp_path: Path, troubles: dict[str, str]) -> None:
    sources = [f"{trouble}\n{source}" for trouble, source in
               zip(troubles, right().values(), strict=True)]
    results = grade_file(notebook(tmp_path / "ann.ipynb", sources), time_limit=1.0).students[0]
    assert [result.status for result in results.results] == list(troubles.values())
    assert results.total == 0
    for result in results.results:
        assert result.hint or result.status == "exception"
        assert "code cell" in result.reason or result.status in ("time limit", "stopped Python")


def test_only_what_a_function_uses_is_run(tmp_path: Path) -> None:
    text = sliced(
        tmp_path, "import sys, os\nsys.exit()", "k = 3\nother = 1", "def g(x): return x + k",
        "i = 0\nwhile True: i += 1", "def f(x):\n    return [g(i) for i in range(os.getpid())]",
        "print(f(1))")
    assert "k = 3" in text
    assert "def g" in text
    assert "import sys, os" in text
    for absent in ("sys.exit", "while True", "print"):
        assert absent not in text


def test_changes_after_the_definition_are_run(tmp_path: Path) -> None:
    text = sliced(
        tmp_path, "table = {}\ntotal = 0", "table['a'] = 1", "total += 2", "table.update(b=2)",
        "unrelated = 1", "table = table | {'c': 3}", "def f(): return table, total")
    for present in ("table['a']", "total += 2", "table.update", "| {'c'"):
        assert present in text
    assert "unrelated" not in text


def test_the_last_definition_counts(tmp_path: Path) -> None:
    text = sliced(tmp_path, "def f(): return 1", "while True: pass", "def f(): return 2", "f()")
    assert text == "def f(): return 2"
    assert sliced(tmp_path, "f = lambda: 1", "import functools", "f = functools.cache(f)"
                  ).count("\n") == 2


def test_a_broken_second_try_does_not_spoil_the_first(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", [*cells(), "def bubble_fraction(p, m)\n    return 1"])
    report = grade_file(path)
    assert report.scores["ann"] == expected()
    assert "syntax error" in report.students[0].results[0].notes[0]


def test_a_broken_try_after_the_stub_is_the_syntax_error(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", [
        "def bubble_fraction(p, m):\n    raise NotImplementedError",
        "def bubble_fraction(p, m)\n    return 1"])
    assert grade_file(path).students[0].results[0].status == "syntax error"


def test_only_functions_are_taken_for_a_misspelt_one(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", [
        "text = 'x'\ntry: 1 / 0\nexcept ZeroDivisionError as error: pass",
        BUBBLE.replace("bubble_fraction", "bubble")])
    reason = grade_file(path, sets=["pipeline_1"]).students[0].results[0].reason
    assert reason.endswith("needs a function `bubble_fraction`; your notebook defines `bubble`.")


def test_an_answer_in_a_text_cell_is_noticed(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", [BUBBLE])
    book = json.loads(path.read_text())
    book["cells"][0]["cell_type"] = "markdown"
    path.write_text(json.dumps(book))
    assert "not code" in grade_file(path).students[0].results[0].notes[0]


def test_layouts_and_which_file_counts(tmp_path: Path) -> None:
    notebook(tmp_path / "ann" / "deep" / "down" / "x.ipynb", cells())
    notebook(tmp_path / "bob.ipynb.txt", cells())
    script(tmp_path / "cem.py", cells())
    notebook(tmp_path / "dee" / "answers_1.ipynb", [right()["bubble_fraction"]])
    notebook(tmp_path / "dee" / "answers_2.ipynb", cells())
    notebook(tmp_path / "dee" / ".ipynb_checkpoints" / "answers_3.ipynb", cells())
    (tmp_path / "dee" / "notes.txt").write_text("hello")
    (tmp_path / "eve").mkdir()
    (tmp_path / ".DS_Store").write_text("x")
    (tmp_path / "fay").symlink_to(tmp_path / "ann", target_is_directory=True)
    found = entries(tmp_path)
    assert [one.student for one in found] == ["ann", "bob", "cem", "dee", "eve", "fay"]
    choices = {one.student: choose(readable(one), questions()) for one in found}
    names = {s: c.program.submission.path.name if c.program else "" for s, c in choices.items()}
    assert names == {"ann": "x.ipynb", "bob": "bob.ipynb.txt", "cem": "cem.py",
                     "dee": "answers_2.ipynb", "eve": "", "fay": ""}
    assert "`answers_2.ipynb` counted, `answers_1.ipynb` did not" in choices["dee"].notes[0]
    assert "empty" in choices["eve"].notes[0]
    assert "symbolic link" in choices["fay"].notes[0]


def test_the_stub_beside_the_answers_does_not_win(tmp_path: Path) -> None:
    stub = "def {}(*args):\n    raise NotImplementedError"
    notebook(tmp_path / "ann" / "z_stub.ipynb", [stub.format(name) for name in right()])
    script(tmp_path / "ann" / "answers.py", cells())
    assert grade_file(tmp_path / "ann").students[0].file == "answers.py"


@pytest.mark.parametrize("junk", [
    "(\n" + " " * 200_000 + "=", "(\n" + "a " * 50_000 + "=", "x=" + "-" * 50_000 + "1",
    "x=a" + ".b" * 20_000, "x=" + "(" * 10_000, "x = '\0'",
])
def test_a_cell_made_to_be_slow_or_deep_is_read_like_any(tmp_path: Path, junk: str) -> None:
    """The first took minutes; there is no assertion on time, a hang would be seen."""
    program = Program(read(notebook(tmp_path / "n.ipynb", [junk, BUBBLE])))
    assert "bubble_fraction" in program.defined
    assert program.slice("bubble_fraction").problem is None


def test_a_thousand_open_brackets_in_a_file(tmp_path: Path) -> None:
    path = script(tmp_path / "a.py", [*(f"x{k} = (" for k in range(1000)), BUBBLE])
    assert "bubble_fraction" in Program(read(path)).defined
    assert Program(read(path)).slice("x5").problem.where.endswith("line 16")  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32"])
def test_encodings_of_other_editors(tmp_path: Path, encoding: str) -> None:
    for name in ("a.py", "a.ipynb"):
        (tmp_path / name).write_text(
            BUBBLE if name == "a.py" else json.dumps(
                {"cells": [{"cell_type": "code", "source": BUBBLE}]}), encoding=encoding)
        if encoding == "utf-8-sig":
            assert "bubble_fraction" in Program(read(tmp_path / name)).defined
        else:
            with pytest.raises(SubmissionError, match=r"not text \(UTF-8\)"):
                read(tmp_path / name)
