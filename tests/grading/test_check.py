"""`check`: what a learner sees in a notebook, a script and at the prompt."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from distlearn.grading import check, check_file, find, questions
from distlearn.grading.faces import html, text
from distlearn.grading.notebook import evaluate
from tests.grading.answers import FUNCTIONS, notebook, right, script


def see(question: str, source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `check` writes for this code; the code's own output comes first."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "answer.py", "exec"), namespace)
    check(question, namespace)
    return capsys.readouterr().out


def test_right_answers_pass_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    for name, source in right().items():
        out = see(FUNCTIONS[name], source, capsys)
        assert out.startswith(f"{FUNCTIONS[name]}: PASS, ")


def test_it_finds_the_function_among_the_callers_names(capsys: pytest.CaptureFixture[str]) -> None:
    source = right()["bubble_fraction"] + "\nresult = check('pipeline/bubble')"
    namespace: dict[str, Any] = {"check": check, "__name__": "__main__"}
    exec(source, namespace)
    assert namespace["result"]
    assert "PASS" in capsys.readouterr().out


def test_a_failure_names_case_call_got_wanted_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    out = see("pipeline/bubble", "def bubble_fraction(p, m): return p / (m + p)", capsys)
    for words in ("FAIL, 0 of 4 visible cases pass", "call    bubble_fraction(p=4, m=8)",
                  "got     0.333", "wanted  0.2727", "hint    Off by one"):
        assert words in out


def test_an_order_is_shown_in_two_rows_with_the_first_difference_below(
        capsys: pytest.CaptureFixture[str]) -> None:
    source = ("def order_1f1b(p, m, r):\n"
              "    return [f'{k}{r}.{i}' for k in 'FB' for i in range(m)]")
    lines = see("pipeline/order", source, capsys).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("  got"))
    got, wanted, mark = lines[at : at + 3]
    column = mark.index("^")
    assert got[column : column + 4] == "F2.2"
    assert wanted[column : column + 4] == "B2.0"
    assert got[:column].split()[1:] == wanted[:column].split()[1:]


@pytest.mark.parametrize(("source", "words"), [
    ("def bubble_fraction(p, m): raise NotImplementedError('write it')", "is not written yet"),
    ("def bubble_frac(p, m): return 0", "`bubble_fraction`; your notebook defines `bubble_frac`"),
    ("x = 1", "your notebook defines no function for it"),
    ("bubble_fraction = 0.5", "is a value of type float"),
    ("def bubble_fraction(p, m): print(p / m)", "It printed '0.5': print only shows a value"),
    ("def bubble_fraction(p, m): return '0.5'", "returned text, '0.5'; a number is asked for"),
    ("def bubble_fraction(p, m): return [0.5]", "a list with one item, [0.5]"),
    ("def bubble_fraction(p, m): return True", "returned True; a number"),
    ("def bubble_fraction(p, m): yield 1", "a generator; a number is asked for: `return` one"),
    ("def bubble_fraction(p): return 1", "takes 1 positional argument but 2 were given"),
    ("async def bubble_fraction(p, m): return 1", "write a plain `def`"),
    ("def bubble_fraction(p, m): return lambda: 1", "a function, not its result"),
    ("def bubble_fraction(p, m):\n    return 1 / 0", "answer.py, line 2: ZeroDivisionError"),
    ("def bubble_fraction(p, m): return float('nan')", "nan is no number"),
    ("def bubble_fraction(p, m): return 1e400", "infinite"),
    ("def bubble_fraction(p, m): return 10 ** 400", "a whole number of 401 digits"),
    ("def bubble_fraction(p, m): raise SystemExit(2)", "ends the whole Python process"),
    ("def bubble_fraction(p, m): return bubble_fraction(p, m)", "calls itself without end"),
    ("def bubble_fraction(p, m): raise KeyboardInterrupt", "you interrupted it"),
    ("def bubble_fraction(p, m): return round((p - 1) / (m + p - 1), 3)", "Close, but rounded"),
    ("def bubble_fraction(p, m): return 100 * (p - 1) / (m + p - 1)", "a percentage"),
    ("def bubble_fraction(p, m): return (p - 1) // (m + p - 1)", "`//`"),
])
def test_what_is_wrong_is_said_in_plain_words(
        source: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns() if "async" in source else contextlib.nullcontext():
        out = see("pipeline/bubble", source, capsys)
    joined = " ".join(out.split())
    assert words in joined
    assert "Traceback" not in out
    assert "distlearn/" not in out
    assert len(out.splitlines()) < 15


@pytest.mark.parametrize(("value", "words"), [
    ("(a for a in [])", "returned a generator; a list of actions"),
    ("'F0.0 B0.0'", "returned one text, 'F0.0 B0.0'; a list with one text per action"),
    ("[('F', 0, 0)]", "Item 0 of the list is ('F', 0, 0)"),
    ("[__import__('distlearn.pipeline').pipeline.Action('F', 0, 0)]", "str(action)"),
    ("['f2.0 '] * 8", ""),
    ("None", "ended without `return`"),
    ("{}", "returned a dict, {}"),
    ("[]", "8 missing, the first of them F2.0"),
])
def test_wrong_kinds_of_lists(value: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = see("pipeline/order", f"def order_1f1b(p, m, r): return {value}", capsys)
    assert words in " ".join(out.split())
    assert len(out.splitlines()) < 15


@pytest.mark.parametrize("wrap", ["tuple({})", "__import__('numpy').array({}).tolist()",
                                  "__import__('numpy').array({})"])
def test_tuples_and_arrays_are_as_good_as_lists(
        wrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = right()["order_1f1b"].replace("return actions", f"return {wrap.format('actions')}")
    assert "PASS" in see("pipeline/order", source, capsys)


def test_numpy_numbers_are_as_good_as_plain_ones(capsys: pytest.CaptureFixture[str]) -> None:
    source = "import numpy\ndef bubble_fraction(p, m): return numpy.float64((p-1) / (m+p-1))"
    assert "PASS" in see("pipeline/bubble", source, capsys)
    source = right()["peak_activations"].replace("return peak", "return float(peak)")
    assert "PASS" in see("pipeline/peak", source, capsys)


def test_the_library_shortcut_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    source = ("from distlearn.pipeline import build\ndef order_1f1b(p, m, r):\n"
              "    return [str(a) for a in build('1f1b', p, m).ranks[r]]")
    assert "calls distlearn's own `build`" in see("pipeline/order", source, capsys)


def test_arguments_may_be_changed_by_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    source = ("def peak_activations(actions):\n"
              "    kept = peak = 0\n"
              "    while actions:\n"
              "        kind = actions.pop(0)[0]\n"
              "        kept += (kind == 'F') - (kind in 'BW')\n"
              "        peak = max(peak, kept)\n"
              "    return peak")
    for _ in range(2):
        assert "PASS" in see("pipeline/peak", source, capsys)


def test_unknown_question_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'pipeline/bubble'"):
        check("pipeline/buble")


@pytest.mark.parametrize("question", [q.id for q in questions()])
def test_every_card_is_short_and_safe(question: str) -> None:
    asked = find(question)
    values = ["<b>&amp;</b>", ["<i>"] * 500, float("nan"), -1e300, {"a": [1]}, None, ["F0.0"] * 99]
    for value in values:
        namespace = {asked.function: lambda *_, value=value: value, "__name__": "__main__"}
        result = evaluate(asked, namespace)
        assert not result.ok
        card = html(result)
        assert "<b>&" not in card
        assert "<i>" not in card
        assert len(card) < 20_000
        assert len(text(result).splitlines()) < 15
        assert max(map(len, text(result).splitlines())) <= 130


def test_in_a_terminal_ipython_it_prints_text_once(tmp_path: Path) -> None:
    code = ("from distlearn.grading import check\n"
            "def bubble_fraction(p, m): return 1\n"
            "check('pipeline/bubble')\n")
    path = script(tmp_path / "a.ipy", [code])
    for command in ([sys.executable, "-m", "IPython", "--no-banner", str(path)],
                    [sys.executable, str(path)]):
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path,
                              env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
                                   "IPYTHONDIR": str(tmp_path)})
        assert done.stdout.count("pipeline/bubble: FAIL, 0 of 4 visible cases pass") == 1


def test_every_stub_handed_out_says_that_it_is_not_written_yet() -> None:
    exercises = Path(__file__).parents[2] / "exercises"
    for path in exercises.glob("*.ipynb"):
        report = check_file(path)
        assert {r.status for one in report.students for r in one.results} == {"not written yet"}
        for result in report.students[0].results:
            assert f"`{result.question.function}` is not written yet" in text(result)


def test_check_file_runs_one_question_or_all(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", [*right().values()][:2])
    report = check_file(path, "pipeline/bubble")
    assert [r.status for r in report.students[0].results] == ["full points"]
    assert "4 of 4 visible cases pass" in report.to_text(details=True)
    assert "points" not in report.to_text(details=True)
    statuses = [r.status for r in check_file(path).students[0].results]
    assert statuses == ["full points"] * 2 + ["missing"] * 3
    with pytest.raises(FileNotFoundError, match="nowhere"):
        check_file(tmp_path / "nowhere.ipynb")
    with pytest.raises(ValueError, match="no question"):
        check_file(path, "pipeline/nothing")
