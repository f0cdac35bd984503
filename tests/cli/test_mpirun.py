"""``distlearn mpirun``: a real job, its arguments, its exit code."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = """
import sys
from distlearn.comm import run

async def program(comm):
    total = await comm.all_reduce(comm.rank + 1.0)
    if comm.rank == 0:
        print("total", float(total), sys.argv[1:], flush=True)

run(program, engine="mpi")
if "--fail" in sys.argv:
    raise SystemExit(7)
"""


def mpirun(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from distlearn.cli import main; main()", "mpirun", *arguments],
        capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(find_spec("mpi4py") is None,
                    reason="mpi4py is not installed: pip install 'distlearn[mpi]'")
def test_script_gets_its_arguments_and_gives_the_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "sum.py"
    script.write_text(SCRIPT)
    done = mpirun("-n", "3", str(script), "--steps", "5", "--fail")
    assert "total 6.0 ['--steps', '5', '--fail']" in done.stdout
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nothing.py"], "nothing.py"), (["-n", "0", "x.py"], "0"), ([], "SCRIPT")],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = mpirun(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr
