"""Kernels and cube programs: run by the executor, judged by what they wrote and by counters."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from distlearn.grading import check, find, grade_file, questions
from distlearn.grading.faces import html, text
from distlearn.grading.kernel_answer import KernelAnswer
from distlearn.grading.notebook import evaluate
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import Cell
from tests.grading.answers import SOLUTIONS, notebook, script

IMPORTS = "import numpy as np\nfrom distlearn.kernels import cuda, float32"
MAP = find("gpu/map")


def kernel(*lines: str, head: str = "scale_and_shift(out, a, n)", above: str = "@cuda.jit") -> str:
    return "\n".join([above, f"def {head}:", *(f"    {line}" for line in lines)])


def names(*cells: str, file: str = "answer.py") -> dict[str, Any]:
    source = "\n".join([IMPORTS, *cells])
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, file, "exec"), namespace)
    return namespace


def see(source: str, capsys: pytest.CaptureFixture[str], question: str = "gpu/map") -> str:
    check(question, names(source))
    return " ".join(capsys.readouterr().out.split())


def solution(function: str) -> str:
    for path in SOLUTIONS.glob("gpu_*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["id"].endswith("-answer") and f"def {function}(" in source:
                return source
    raise AssertionError(function)


@pytest.mark.parametrize(("lines", "words"), [
    (["i = cuda.grid(1)", "out[i] = 3 * a[i] + 1"],
     ["answer.py, line 6: out of bounds: index 20 on axis 0 of a", "in `out[i] = 3 * a[i] + 1`.",
      "beyond the end must do nothing"]),
    (["out[0] = 3 * a[0] + 1"], ["line 5: race: threads 0", "out[0]", "Give each element one"]),
    (["i = cuda.grid(1)", "if i < n:", "    cuda.syncthreads()", "    out[i] = 3 * a[i] + 1"],
     ["line 7: barrier divergence", "take it out of the `if`"]),
    (["s = cuda.shared.array(4, float32)", "out[cuda.grid(1)] = s[0]"],
     ["uninitialised memory: thread 0 of block 0 reads a shared element", "Which thread should"]),
    (["while True:", "    i = 0"], ["line 5: endless loop", "but at barriers"]),
    (["print(n)"], ["not for kernels", "no printing"]),
    (["out[cuda.grid(1)] = [1, 2]"], ["not for kernels"]),
    (["out[cuda.grid(1) % n] = m"], ["line 5: scale_and_shift() uses 'm'", "spelt right"]),
    (["x = n // (cuda.grid(1) * 0)"], ["division by zero"]),
    (["raise NotImplementedError('write it')"], ["is not written yet", "`def scale_and_shift("]),
    (["pass"], ["part out got nan", "out[0] is nan, as it was before: no thread has written it"]),
    (["i = cuda.grid(1)", "if i < n:", "    out[i] = 3 * a[i] + 1 + 0 * a[i]"],
     ["32-byte sectors read from global memory; wanted: at most got 2 wanted 1",
      "lines 2 7: out[i] = 3", "The result is right. Each element of `a` has to be read once"]),
])
def test_what_is_wrong_with_a_kernel_is_said_in_plain_words(
        lines: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = see(kernel(*lines), capsys)
    for word in words:
        assert word in out
    assert "Traceback" not in out
    assert "distlearn/" not in out


@pytest.mark.parametrize(("source", "words"), [
    (kernel("pass", above=""), "has `@cuda.jit` on the line above its `def`"),
    (kernel("pass", head="scale_and_shift(out, a)"), "it has the parameters (out, a)"),
    ("scale_and_shift = 3", "is a value of type int"),
    (kernel("pass", head="scale_shift(out, a, n)"), "defines `scale_shift`"),
])
def test_wrong_kinds_of_kernels(
        source: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in see(source, capsys)


@pytest.mark.parametrize(("body", "words"), [
    ("return 3", "it returned a int, and the text of a CUDA C kernel is asked for"),
    ("return ''", "the text needs a kernel `bias_relu`; it has none"),
    ("return '__global__ void bias_relu(float *out) { x = ; }'", "error: line 1 of the text"),
    ("return '__global__ void bias_relu(float *out) { out[0] = 1; }'", "bad launch"),
    ("return 1 / 0", "ZeroDivisionError"),
])
def test_what_is_wrong_with_a_text_in_c_is_said(
        body: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in see(f"def bias_relu_source():\n    {body}", capsys, "gpu/cuda_c")


def test_a_program_of_the_cube_core_is_told_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = see("def multiply(core, A, B, C):\n"
              "    core.tensor('A2', (4096, 64), 'float16')", capsys, "gpu/flags")
    assert "answer.py, line 4: buffer overflow: L0A overflows by 458,752 bytes" in out


def test_endless_kernels_end_and_cost_their_question_only(tmp_path: Path) -> None:
    """The grader's child reads sources from a notebook's cells; other questions keep points."""
    endless = kernel("i = cuda.grid(1)", "while i < n:", "    i -= 1",
                     head="relu(out, a, n)")
    path = notebook(tmp_path / "ann.ipynb", [
        IMPORTS, solution("scale_and_shift"), endless,
        "@cuda.jit\ndef outer_sum(out, col, row):\n    if x\n"])
    report = grade_file(path, sets=["gpu_1"], time_limit=1.0)
    results = {r.question.id: r for r in report.students[0].results}
    assert results["gpu/map"].status == "full points"
    assert results["gpu/stride"].status == "time limit"
    assert results["gpu/outer"].status == "syntax error"
    assert results["gpu/rotate"].status == "missing"


def test_runs_come_back_from_the_child_as_plain_data(tmp_path: Path) -> None:
    """Also from a Python file, of which all cells have one name."""
    cells = [Cell("a.py", IMPORTS), Cell("a.py", "\n\n\n\n" + kernel("out[n] = a[0]"))]
    (right, wrong) = run(
        [cells[0], Cell("a.py", "\n\n\n\n" + kernel("i = cuda.grid(1)", "out[i] = a[i]"))],
        "scale_and_shift", [(1, 8, 8, [1.0] * 8, 8), (2, 8, 8, [1.0] * 8, 8)], program=MAP.how,
        limits=Limits(5.0, 2**29)).outcomes
    assert right.value["out"] == [1.0] * 8
    assert right.value["counters"]["global_load_sectors"] == 1
    assert [8, "    out[i] = a[i]"] in [line[:2] for line in right.value["lines"]]
    assert wrong.kind == "kernel"
    assert wrong.where == "a.py, line 8"
    assert wrong.code == "out[i] = a[i]"
    assert script(tmp_path / "b.py", [cell.source for cell in cells]).exists()


@pytest.mark.parametrize("forged", [
    None, 3, [], {}, {"out": [1.0]}, {"out": [1.0], "counters": 1, "lines": []},
    {"out": [1.0], "counters": {"barriers": "9"}, "lines": []},
    {"out": [1.0], "counters": {}, "lines": [[1, 2, 3]]},
    {"out": [1.0], "counters": {}, "lines": [["1", "x", {}]]},
    {"out": ["<b>"], "counters": {}, "lines": []}, {"out": None, "counters": {}, "lines": []},
    {"out": [2.0], "counters": {"barriers": 9}, "lines": [[1, "<b>", {"barriers": 9}]]},
])
def test_a_forged_run_is_wrong_and_breaks_nothing(forged: Any) -> None:
    answer, wanted = KernelAnswer(), {"out": [2.0], "most": {"barriers": 7}}
    if not answer.misfit(forged):
        assert not answer.same(forged, wanted)
        assert answer.hint(forged, wanted)
        assert answer.view(forged, wanted).wanted in (7, [2.0])


def test_the_source_is_shown_coloured_and_escaped() -> None:
    namespace = names(kernel(
        "i = cuda.grid(1)", "if i < n and 1 < 2:", "    out[i] = 3 * a[i] + 1 + 0 * a[i]"))
    card = html(evaluate(MAP, namespace))
    assert "1 &lt; 2" in card
    assert "linear-gradient" in card
    assert "<th>count</th>" in card


@pytest.mark.parametrize("question", [q.id for q in questions("gpu")])
def test_every_card_of_the_set_is_short_and_safe(question: str) -> None:
    asked = find(question)
    for value in ("<b>&amp;</b>", ["<i>"] * 500, float("nan"), None, [[1.0]] * 99):
        result = evaluate(asked, {asked.function: lambda *_, value=value: value,
                                  "__name__": "__main__"})
        assert not result.ok
        card = html(result)
        assert "<b>&" not in card
        assert "<i>" not in card
        assert len(card) < 20_000
        assert len(text(result).splitlines()) < 15
        assert max(map(len, text(result).splitlines())) <= 130
