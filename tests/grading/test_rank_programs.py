"""Rank programs: run on virtual ranks, judged by what came out and what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from distlearn.grading import check, check_file, find, grade_file, questions
from distlearn.grading.array_answer import Array
from distlearn.grading.faces import html, text
from distlearn.grading.notebook import evaluate
from distlearn.grading.ranks_answer import OnRanks
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import Cell
from tests.grading.answers import cells, notebook

RING = find("ranks/ring")
RIGHT, LEFT = "(comm.rank + 1) % comm.size", "(comm.rank - 1) % comm.size"


def program(*lines: str, name: str = "ring_all_reduce", parameters: str = "comm, x") -> str:
    return "\n    ".join([f"import numpy as np\nasync def {name}({parameters}):", *lines])


def see(question: str, source: str, capsys: pytest.CaptureFixture[str]) -> str:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "answer.py", "exec"), namespace)
    check(question, namespace)
    return " ".join(capsys.readouterr().out.split())


def in_child(source: str, *calls: tuple[Any, ...], question: str = "ranks/ring") -> Any:
    asked = find(question)
    return run([Cell("code cell 1", source)], asked.function, calls or [([[1.0], [2.0]],)],
               program=asked.how, limits=Limits(2.0, 2**28))


@pytest.mark.parametrize(("lines", "words"), [
    ([f"await comm.send(x, {RIGHT})", f"return x + await comm.recv({LEFT})"],
     ["answer.py, line 3: no rank can go on: rank 0 waits until rank 1 receives its message,",
      "rank 1 waits until rank 0", "Start with `isend`"]),
    ([f"y = await comm.recv({LEFT})", f"await comm.send(x, {RIGHT})", "return x + y"],
     ["no rank can go on: rank 0 waits for a message from rank 1, rank 1 waits for a message",
      "Who has to go first?"]),
    (["if comm.rank == 1:", "    x = x + await comm.recv(0)", "return x"],
     ["answer.py, line 4: rank 1 waits for a message from rank 0 that never comes",
      "count them"]),
    (["if comm.rank == 0:", "    await comm.send(x, 1)", "return x"],
     ["rank 0 sends a message to rank 1 that rank 1 never receives"]),
    ([f"comm.isend(x, {RIGHT})", "return x"], ["sends a message to rank", "never receives"]),
    (["if comm.rank == 0:", "    await comm.send(x, 1, tag=3)",
      "if comm.rank == 1:", "    await comm.recv(0, tag=4)", "return x"],
     ["have different tags: 3 and 4", "same tag at both ends"]),
    ([f"comm.send(x, {RIGHT})", "return x"],
     ["rank 0 calls `send` without `await`, so it does not happen", "Write `await`"]),
    ([f"y = comm.irecv({LEFT})", f"comm.isend(x, {RIGHT})", "return x + y"],
     ["TypeError", "(on rank 0)", "Write `await` before"]),
    (["return await comm.all_reduce(x)"],
     ["`ring_all_reduce` uses `comm.all_reduce`", "with `send`, `recv`, `isend`, `irecv` only"]),
    (["group = await comm.split(0)", "return x"], ["uses `comm.split`"]),
    (["await comm.send(x, comm.size)"], ["dest = 2 is not a rank", "(on rank 0)"]),
    (["return x if comm.rank == 0 else 1 / 0"], ["line 3: ZeroDivisionError", "(on rank 1)"]),
    (["return x if comm.rank else None"], ["Rank 0: it returned None, so it ended without"]),
    (["return list(x) + ['a']"], ["Rank 0: it returned text, 'a', at index [2]"]),
    (["import sys", "sys.exit(3)"], ["ends the whole Python process (SystemExit 3)"]),
    (["import asyncio", "await asyncio.sleep(0)"], ["only await the operations of its comm"]),
    (["raise NotImplementedError('write it')"], ["is not written yet", "in `async def ring"]),
])
def test_what_went_wrong_between_ranks_is_said_in_plain_words(
        lines: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = see("ranks/ring", program(*lines), capsys)
    for word in words:
        assert word in out
    assert "Traceback" not in out
    assert "distlearn/" not in out


@pytest.mark.parametrize(("source", "words"), [
    ("def ring_all_reduce(comm, x): return x", "written `async def ring_all_reduce(comm, x):`"),
    ("async def ring_all_reduce(x): return x", "takes 1 positional argument but 2 were given"),
    ("ring_all_reduce = 3", "is a value of type int"),
    ("async def ring_allreduce(comm, x): return x", "your notebook defines `ring_allreduce`"),
])
def test_wrong_kinds_of_functions(
        source: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in see("ranks/ring", source, capsys)


@pytest.mark.parametrize(("lines", "words"), [
    (["await across.all_reduce(await node.all_reduce(x))", "return await comm.all_reduce(x)"],
     "bytes sent between nodes; wanted: at most"),
    (["if comm.rank: await node.all_reduce(x)", "return x"],
     "in group (0, 1) waits for rank 0, which has finished without calling it"),
    (["if comm.rank == 0: await node.all_gather(x)", "else: await node.all_reduce(x)", "return x"],
     "the same collective: operation differs: all_gather on rank 0; all_reduce on rank 1"),
    (["await node.all_reduce(x[: comm.rank + 1])", "return x"], "shape differs: (1,) on rank 0"),
    (["for group in (node, across) if comm.rank % 3 else (across, node):",
      "    await group.all_reduce(x)", "return x"],
     "no rank can go on: rank 0 waits in `all_reduce` for rank 2, rank 2 waits in `all_reduce`"),
])
def test_collectives_that_do_not_fit_together(
        lines: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = program("node = await comm.split(comm.rank // per_node)",
                     "across = await comm.split(comm.rank % per_node)", *lines,
                     name="two_level_all_reduce", parameters="comm, x, per_node")
    assert words in see("ranks/groups", source, capsys)


def test_the_first_wrong_rank_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    source = program("total = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
                     "new = w - lr * total[:-1] / total[-1]",
                     "return new + (comm.rank == 1)",
                     name="training_step", parameters="comm, w, x, y, lr")
    out = see("ranks/step", source, capsys)
    assert "part the result of rank 1 got 3.0 wanted 2.0" in out
    assert "Right on rank 0, wrong on rank 1." in out


def test_ranks_have_memory_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    source = program("w += comm.rank", "x *= 0", "y *= 0", "return w",
                     name="training_step", parameters="comm, w, x, y, lr")
    out = see("ranks/step", source, capsys)
    assert "part the result of rank 0 got 0.0 wanted 2.0" in out


def test_runs_come_back_from_the_child_as_plain_data() -> None:
    source = program(f"sending = comm.isend(x, {RIGHT})", f"y = await comm.recv({LEFT})",
                     "await sending", "return x + y")
    (outcome,) = in_child(source).outcomes
    assert outcome.value == {"results": [[3.0], [3.0]], "sent": [8, 8], "to": [[1], [0]],
                             "groups": []}
    (stuck,) = in_child(program("return await comm.recv(1 - comm.rank)")).outcomes
    assert stuck.kind == "stuck"
    assert stuck.where == "code cell 1, line 3"
    assert stuck.code == "return await comm.recv(1 - comm.rank)"


def test_groups_and_their_bytes_come_back() -> None:
    source = program("node = await comm.split(comm.rank // per_node)",
                     "return await node.all_reduce(x)",
                     name="two_level_all_reduce", parameters="comm, x, per_node")
    (outcome,) = in_child(source, ([[1.0]] * 4, 2), question="ranks/groups").outcomes
    assert outcome.value["groups"] == [[[0, 1], 16], [[0, 1, 2, 3], 0], [[2, 3], 16]]


def test_endless_programs_are_stopped_in_the_child() -> None:
    source = program("while True:", f"    sending = comm.isend(x, {RIGHT})",
                     f"    await comm.recv({LEFT})", "    await sending")
    result = run([Cell("c", source)], "ring_all_reduce", [([[1.0], [2.0]],)],
                 program=RING.how, limits=Limits(0.5, 2**28))
    assert result.stopped is not None
    assert result.stopped.kind == "time"


def test_the_harness_is_there_before_the_learners_code() -> None:
    source = ("import sys, types\n"
              "sys.modules['distlearn.comm.virtual'] = types.ModuleType('x')\n"
              "sys.modules['distlearn.grading.rank_program'] = types.ModuleType('x')\n"
              + program("return x"))
    assert in_child(source).outcomes[0].value["results"] == [[1.0], [2.0]]


@pytest.mark.parametrize("forged", [
    None, 3, [], {}, {"results": []}, {"results": 1, "sent": 1, "to": 1, "groups": 1},
    {"results": [[4.0, 6.0]], "sent": [32], "to": [[]], "groups": []},
    {"results": [[4.0, 6.0]] * 2, "sent": ["32", 0], "to": [[1], [0]], "groups": []},
    {"results": [[4.0, 6.0]] * 2, "sent": [16], "to": [[1], [0]], "groups": []},
    {"results": [[4.0, 6.0]] * 2, "sent": [16, 16], "to": [1, 0], "groups": []},
    {"results": [[4.0, 6.0]] * 2, "sent": [16, 16], "to": [[1], [0]], "groups": [[[0], 1.5]]},
    {"results": [], "sent": [], "to": [], "groups": []},
])
def test_a_forged_run_is_wrong_and_breaks_nothing(forged: Any) -> None:
    answer, wanted = RING.answer, RING.cases[0].wanted
    if not answer.misfit(forged):
        assert not answer.same(forged, wanted)
        assert answer.hint(forged, wanted)
        assert answer.view(forged, wanted).wanted


def test_rules_of_traffic_are_checked_one_by_one() -> None:
    got = {"results": [1.0, 1.0], "sent": [8, 24], "to": [[1], [0, 1]],
           "groups": [[[0], 7], [[0, 1], 20]]}
    answer = OnRanks()

    def view(**rules: Any) -> Any:
        wanted = {"results": [1.0, 1.0], **rules}
        return None if answer.same(got, wanted) else answer.view(got, wanted)[:2]

    assert view() is None
    assert view(total=32, most=24, to=[[1], [0, 1]], between=[1, 20]) is None
    assert view(total=40) == (32, 40)
    assert view(most=23) == (24, 23)
    assert view(to=[[1], [0]]) == ([0, 1], [0])
    assert view(between=[1, 19]) == (20, 19)
    assert view(between=[2, 0]) is None


def test_arrays_are_compared_by_shape_and_within_rounding() -> None:
    answer = Array()
    assert answer.same([0.1 + 0.2, 1e9], [0.3, 1e9])
    assert answer.same(((1, 2), (3, 4)), [[1.0, 2.0], [3.0, 4.0]])
    assert answer.same([1e-30], [0.0])
    assert not answer.same([1.0, 2.001], [1.0, 2.0])
    assert not answer.same([[1.0, 2.0]], [1.0, 2.0])
    assert not answer.same([float("nan")], [1.0])
    assert not answer.same([], [0.0])
    assert not answer.same([10**300], [1.0])
    assert "Its shape is (1, 2); (2,) is asked for." in answer.hint([[1.0, 2.0]], [1.0, 2.0])
    assert answer.hint([2.0, 4.0], [1.0, 2.0]) == "Every number is 2 times what is wanted."
    assert answer.hint([-1.0, -2.0], [1.0, 2.0]) == "The sign is the other way round."
    assert answer.hint([1.0, 5.0], [1.0, 2.0]) == "1 of 2 numbers are right."
    assert "nan" in answer.hint([float("nan")], [1.0])
    assert "infinite" in answer.hint([float("inf")], [1.0])
    assert answer.view([[1, 2], [3, 5]], [[1, 2], [3, 4]])[:3] == ([3, 5], [3, 4], "row [1]")
    got, wanted, *_ = answer.view([0.1 + 0.2, 1.00000001], [0.3, 1.0])
    assert got[0] == wanted[0]
    assert got[1] != wanted[1], "a wrong number must not look right"


@pytest.mark.parametrize(("got", "words"), [
    ([[1.0], [1.0, 2.0]], "different lengths"), (["1"], "text, '1',"), ([None], "None at index"),
    ([True], "True at index [0]"), ([[1, [2]]], "no array"), ("12", "returned text"),
    (10**400, "401 digits"), ([10**400], "401 digits"), (None, "without `return`"),
])
def test_what_is_no_array_is_named(got: Any, words: str) -> None:
    assert words in Array().misfit(got)


@pytest.mark.parametrize("question", [q.id for q in questions("ranks")])
def test_every_card_of_a_program_is_short_and_safe(question: str) -> None:
    asked = find(question)
    for value in ("<b>&amp;</b>", ["<i>"] * 500, float("nan"), None, [[1.0]] * 99):
        async def answer(*_: Any, value: Any = value) -> Any:
            return value

        function = answer if asked.program else (lambda *_, value=value: value)
        result = evaluate(asked, {asked.function: function, "__name__": "__main__"})
        assert not result.ok
        card = html(result)
        assert "<b>&" not in card
        assert "<i>" not in card
        assert len(card) < 20_000
        assert len(text(result).splitlines()) < 15
        assert max(map(len, text(result).splitlines())) <= 130


def ranks_cells(**changed: str) -> list[str]:
    """Code cells of a submission of the ranks set that answers two of its questions."""
    right = {
        "crossover_bytes": "def crossover_bytes(p, alpha, beta):\n"
                           "    k = (p - 1).bit_length()\n"
                           "    return alpha * (p - 1 - k) / (beta * (k - (p - 1) / p))",
        "training_step": program(
            "t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
            "return w - lr * t[:-1] / t[-1]", name="training_step",
            parameters="comm, w, x, y, lr"),
    }
    return [*(right | changed).values()]


def test_a_folder_with_both_sets_gets_points_for_both(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    notebook(folder / "pipeline_1.ipynb", cells())
    notebook(folder / "z.ipynb", ranks_cells())
    report = grade_file(folder)
    scores = report.scores["ann"]
    assert sum(points for name, points in scores.items() if name.startswith("pipeline/")) == 20
    assert {name for name, points in scores.items() if points and name.startswith("ranks/")} == {
        "ranks/crossover", "ranks/step"}
    assert report.students[0].file == "pipeline_1.ipynb, z.ipynb"
    assert report.students[0].notes == ()


def test_only_the_sets_that_somebody_answers_are_graded(tmp_path: Path) -> None:
    path = notebook(tmp_path / "bob.ipynb", ranks_cells(
        training_step="async def training_step(comm, w, x, y, lr):\n"
                      "    raise NotImplementedError('write it')"))
    results = {r.question.id: r.status for r in check_file(path).students[0].results}
    assert list(results) == [question.id for question in questions("ranks")]
    assert results["ranks/crossover"] == "full points"
    assert results["ranks/step"] == "not written yet"
    assert results["ranks/ring"] == "missing"


def test_an_async_stub_is_no_answer(tmp_path: Path) -> None:
    """So of two files the one with the answer counts."""
    folder = tmp_path / "eve"
    notebook(folder / "a.ipynb", ranks_cells())
    notebook(folder / "b.ipynb", ranks_cells(
        training_step="async def training_step(comm, w, x, y, lr):\n"
                      "    raise NotImplementedError('write it')"))
    report = check_file(folder)
    assert report.students[0].file == "a.ipynb"
