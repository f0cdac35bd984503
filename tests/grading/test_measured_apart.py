"""What answers cost is measured where no learner's code has been."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from distlearn.grading import check, grade_file
from distlearn.grading.kernel_data import from_data, to_data
from distlearn.grading.plain import decode, encode
from tests.grading.answers import notebook
from tests.grading.test_kernel_programs import IMPORTS, kernel, names

KERNEL = """
import math
TABLE, PAIR, WIDE, SIZE = np.array([1.0, 2.0], np.float32), (2, 0.5), np.int64(3), np.dtype("f4")
HALF, thread, root, number = np.float32(0.5), cuda.threadIdx, math.sqrt, np.float32

@cuda.jit(device=True)
def twice(x):
    return HALF * x * PAIR[0] * PAIR[0]

def closed(step):
    @cuda.jit
    def run(out, a):
        part = cuda.shared.array(8, number)
        i = thread.x
        part[i] = twice(a[i]) + number(WIDE) + max(step, 1) + root(float32(4)) + TABLE[1]
        cuda.syncthreads()
        out[i] = part[7 - i] + math.pi * 0
    return run

run = closed(5)
"""


def test_a_kernel_made_again_of_data_does_and_counts_the_same() -> None:
    one = names(KERNEL)["run"]
    again = from_data(decode(encode(to_data(one))))
    a = np.arange(8, dtype=np.float32)
    outs = np.zeros((2, 8), np.float32)
    first, second = one[1, 8](outs[0], a), again[1, 8](outs[1], a)
    np.testing.assert_array_equal(outs, [(2 * a + 12)[::-1]] * 2)
    assert first.counters.by_line == second.counters.by_line
    assert (again.filename, again.first_line) == (one.filename, one.first_line)


LAUNCH = """
import distlearn.grading.kernel_program as program
from distlearn.kernels.counters import Counters
from distlearn.kernels.report import LaunchReport

def launch(kernel, grid, block, *arrays):
    arrays[0][:] = 3 * arrays[1] + 1 if len(arrays) == 3 else 0
    return LaunchReport("", (1, 1, 1), (1, 1, 1), Counters({}), kernel.source, 1)

program.launch = launch
program._launch = lambda kernel, grid, block, arrays: launch(kernel, grid, block, *arrays)
"""
LIAR = """
import ast
from distlearn.kernels.kernel import Kernel

class Liar(Kernel):
    source = "def relu(out, a, n):\\n    i = 0"
    name, filename, first_line, tree = "relu", "x", 1, ast.parse(source).body[0]
    def __init__(self): pass
    def lookup(self, name): raise SystemExit
    def __eq__(self, other): return True

relu = Liar()
"""
WRITES = """
import json, os
value = ["d", ["kernel", ["l"]]]
for to in range(3, 256):
    try: os.write(to, b"x" + json.dumps({"kind": "value", "phase": "call", "value": value}).encode()
                  + b"\\n")
    except OSError: pass
"""


def test_patched_counters_lying_objects_and_forged_messages_are_worth_nothing(
        tmp_path: Path) -> None:
    """Where the answer is right all the same, it has its points."""
    path = notebook(tmp_path / "ann.ipynb", [
        IMPORTS, LAUNCH + kernel("i = program"), LIAR,
        WRITES + kernel("out[0] = to", head="outer_sum(out, col, row)"),
        "import numpy as np2\nnp2.full = np2.float32 = None\nnumber = float\n"
        + kernel("i = cuda.grid(1)", "if i < n:", "    j = i ^ 1", "    sign = 2 * (i % 2) - 1",
                 "    out[i] = c * a[i] + sign * s * a[j]", head="rotate_pairs(out, a, n, c, s)")])
    results = grade_file(path, sets=["gpu_1"], time_limit=3.0).students[0].results
    assert {r.question.id: r.points for r in results if r.status != "missing"} == {
        "gpu/map": 0, "gpu/stride": 0, "gpu/outer": 0, "gpu/rotate": 4}


@pytest.mark.parametrize(("lines", "words"), [
    (["C[:] = A.astype(np.float32) @ B.astype(np.float32)"], "the program itself changes C"),
    (["A[:] = 0"], "the program itself changes A"),
    (["core.run()"], "the program calls core.run(), which the check does after it"),
    (["c = core.tensor('CO1', C.shape, 'float32')", "c.write(A.astype('f4') @ B.astype('f4'))",
      "core.fixpipe(C, c)"], "are read and were never written"),
    (["c = core.tensor('A1', A.shape, 'float16')", "core.data_copy(c, A * 2)"],
     "global memory is A, B and C and their parts"),
])
def test_only_the_core_computes(
        lines: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = "\n    ".join(["def multiply(core, A, B, C):", *lines])
    assert not check("gpu/flags", names(source))
    assert words in " ".join(capsys.readouterr().out.split())
