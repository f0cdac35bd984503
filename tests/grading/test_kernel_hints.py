"""What a learner is told to try next, for faults that people make in kernels."""

from __future__ import annotations

import pytest

from distlearn.grading import check
from distlearn.grading.array_answer import Array
from distlearn.grading.outcome import Outcome
from distlearn.grading.question import find
from distlearn.grading.reasons import explain
from tests.grading.test_kernel_programs import kernel, names

ONE_THREAD = "A kernel is the work of one thread"


@pytest.mark.parametrize(("question", "head", "lines", "words"), [
    ("map", "scale_and_shift(out, a, n)", ["out[:] = 3 * a + 1"], [ONE_THREAD, "whole array"]),
    ("map", "scale_and_shift(out, a, n)", ["i = cuda.grid(1) / 1", "out[i] = a[i]"], ["with `//`"]),
    ("map", "scale_and_shift(out, a, n)", ["i = cuda.threadIdx + 1"], ["have the parts `.x`"]),
    ("map", "scale_and_shift(out, a, n)", ["i = cuda.Grid(1)"], ["spelt as in the question"]),
    ("map", "scale_and_shift(out, a, n)",
     ["i = cuda.grid(1)", "raise NotImplementedError"], ["Take out the line with `raise`"]),
    ("window", "window_max(out, a, n)", ["out[cuda.grid(1)] = a[cuda.grid(1) - 1]"],
     ["no counting from the end"]),
    ("conv", "convolve(out, a, w, n, m)",
     ["s = cuda.shared.array(8, float32)", "s[cuda.threadIdx.x] = 0"], ["largest index that a"]),
    ("registers", "four_rows(C, A, B)",
     ["s = cuda.local.array(4, float32)", "C[0, 0] = s[0]"], ["A local array starts with"]),
    ("stride", "relu(out, a, n)",
     ["for i in range(cuda.grid(1), n, cuda.gridsize(1)):", "    out[i] = (a[i] + abs(a[i])) / 2"],
     ["The result is right.", "read each once, into a variable"]),
    ("stride", "relu(out, a, n)",  # a piece of its own for each thread
     ["k = (n - 1) // cuda.gridsize(1) + 1", "first = cuda.grid(1) * k",
      "for i in range(first, min(n, first + k)):", "    out[i] = max(a[i], float32(0))"],
     ["The result is right.", "neighbouring"]),
    ("mean_square", "mean_square(out, x)",
     ["v, r, t = float32(0), cuda.blockIdx.x, cuda.threadIdx.x",
      "for j in range(t, x.shape[1], 32):",
      "    v += x[r, j] ** 2", "d = 16", "while d > 0:", "    if t < d:",
      "        v += cuda.shfl_down_sync(0xffffffff, v, d)", "    d //= 2", "if t == 0:",
      "    out[r] = v / x.shape[1]"], ["all 32 lanes call it"]),
    ("dot", "dot(out, a, b, n)",  # alone it is right, but for a read: the race of two blocks counts
     ["s, i, t = cuda.shared.array(64, float32), cuda.grid(1), cuda.threadIdx.x",
      "s[t] = a[i] * b[i] if i < n else 0", "cuda.syncthreads()", "if t == 0:",
      "    v = float32(0)", "    for k in range(64):", "        v += s[k]", "    out[0] += v"],
     ["race", "or use an atomic"]),
    ("scan", "running_sum(out, a, n)",
     ["s = cuda.shared.array(64, np.int32)", "t = cuda.threadIdx.x", "s[t] = a[t] if t < n else 0",
      "cuda.syncthreads()", "if t < n:", "    v = float32(0)", "    for k in range(t + 1):",
      "        v += s[k]", "    out[t] = v"], ["These are whole numbers"]),
])
def test_the_hint_names_the_next_step(
        question: str, head: str, lines: list[str], words: list[str],
        capsys: pytest.CaptureFixture[str]) -> None:
    assert not check(f"gpu/{question}", names(kernel(*lines, head=head)))
    out = " ".join(capsys.readouterr().out.split())
    for word in words:
        assert word in out


def test_a_plain_function_needs_no_decorator(capsys: pytest.CaptureFixture[str]) -> None:
    assert not check("gpu/sectors", names(kernel("pass", head="sectors_of_warp(start, stride, b)")))
    assert "Take out `@cuda.jit`" in capsys.readouterr().out


def test_sizes_of_lists_are_said_in_numbers() -> None:
    assert Array().hint([1.0] * 4, [1.0] * 3) == "It has 4 numbers; 3 are asked for."
    assert Array().hint(4, [1.0, 2.0]) == "It has 1 number; 2 are asked for."
    assert "shape is (2, 1); (2,)" in Array().hint([[1.0], [2.0]], [1.0, 2.0])


def test_who_prints_without_end_is_told_of_printing() -> None:
    stopped = Outcome("time", message="10 s", printed="x" * 400)
    assert "It prints a lot" in explain(find("gpu/banks"), stopped, (), "notebook").hint


def test_a_collective_as_an_argument_is_missing_its_await() -> None:
    raised = Outcome("raised", message="TypeError: only arrays of plain numbers can be sent, got "
                                       "dtype object: <distlearn.comm.operation.Collective obj")
    assert "Write `await`" in explain(find("ranks/halves"), raised, (), "notebook").hint


def test_quotes_are_advised_against_only_where_one_number_is_asked_for() -> None:
    for name, quotes in (("pipeline/choose", False), ("gpu/banks", True), ("gpu/waves", True)):
        assert ("leave out the quotes" in find(name).answer.misfit("1f1b")) is quotes
