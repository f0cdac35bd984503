"""The real process: exit codes, pipes, signals, colours, widths, start-up."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distlearn import __version__

MAIN = [sys.executable, "-c", "from distlearn.cli import main; main()"]
ESCAPE = "\x1b["


def test_version_and_help(program):
    assert program("--version").stdout == f"distlearn {__version__}\n"
    bare, long, short = program(), program("--help"), program("-h")
    assert bare.returncode == long.returncode == short.returncode == 0
    assert long.stdout == short.stdout
    for command in ("schedule", "schedules", "validate", "check", "grade", "release", "doctor"):
        assert re.search(rf"^│ {command} ", long.stdout, re.M)
        assert command in bare.stdout


@pytest.mark.parametrize("command", ["schedule", "schedules", "validate", "check", "grade",
                                     "release", "doctor"])
def test_help_of_each_command_shows_all_of_its_text(cli, command):
    result = cli(command, "--help")
    assert result.exit_code == 0
    assert "[default: ]" not in result.output and "…" not in result.output
    assert not re.search(r" \.( |$)", result.output, re.M)  # text lost to markup


def test_installed_entry_point():
    (script,) = [entry for entry in __import__("importlib.metadata").metadata.entry_points(
        group="console_scripts") if entry.name == "distlearn"]
    assert script.value == "distlearn.cli:main"


def test_exit_codes(program):
    assert program("schedule", "1f1b", "-p", 2, "-m", 2).returncode == 0
    bad = program("validate", "-", stdin="schedule a p=1 m=1 v=1\nplacement 0\nrank 0: F0.0\n")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "error: a is not valid: rank 0: B0.0 is missing\n"
    usage = program("schedule", "1f1b", "-p", 0, "-m", 2)
    assert (usage.returncode, usage.stdout) == (2, "")
    assert "Traceback" not in usage.stderr and usage.stderr.count("\n") == 1


def test_no_colour_in_a_pipe_or_on_request(program):
    run = ("schedule", "1f1b", "-p", 2, "-m", 2)
    assert ESCAPE not in program(*run).stdout
    assert ESCAPE in program(*run, FORCE_COLOR="1", TERM="xterm-256color").stdout
    no_colour = program(*run, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color").stdout
    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|38|48)[0-9;]*m", no_colour)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_columns_are_heeded(program, columns):
    out = program("schedule", "interleaved_1f1b", "-p", 4, "-m", 8, "-v", 2, COLUMNS=str(columns))
    assert out.returncode == 0
    assert all(len(line) <= columns for line in out.stdout.splitlines())


def test_ascii_terminals_get_ascii_drawings(program):
    out = program("schedule", "1f1b", "-p", 2, "-m", 2, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert out.returncode == 0 and out.stdout.isascii()
    assert "rank 0 F0" in out.stdout and "..." in out.stdout


def test_closed_pipe_is_quiet():
    command = [*MAIN, "schedule", "gpipe", "-p", "32", "-m", "64", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # nobody reads: the first write breaks
        error = process.stderr.read()
        assert process.wait(60) == 141
    assert error == b""


@pytest.mark.parametrize("command", [["--help"], ["schedule", "--help"], ["schedules"], ["doctor"]])
def test_closed_pipe_is_quiet_whoever_writes(command):
    with subprocess.Popen([*MAIN, *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(60) == 141
    assert error == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full to write to")
@pytest.mark.parametrize("command", [["--help"], ["schedule", "--help"], ["schedules"],
                                     ["schedule", "1f1b", "-p", "2", "-m", "2", "--json"]])
def test_output_that_cannot_be_written_is_one_line(command):
    with Path("/dev/full").open("wb") as full:
        out = subprocess.run([*MAIN, *command], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (out.returncode, out.stderr) == (2, b"error: No space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="POSIX file descriptors")
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("command", [["schedule", "1f1b", "-p", "2", "-m", "2"], ["doctor"]])
def test_closed_streams_are_no_error(command, closed):
    out = subprocess.run([*MAIN, *command], capture_output=True, check=False,
                         preexec_fn=lambda: [os.close(number) for number in closed])
    assert (out.returncode, out.stderr) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="POSIX file descriptors")
def test_a_closed_input_holds_no_schedule():
    nothing = subprocess.run([*MAIN, "validate", "-"], capture_output=True, check=False,
                             preexec_fn=lambda: os.close(0))
    assert nothing.returncode == 2 and b"Traceback" not in nothing.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_is_quiet():
    code = ("import signal, sys\n"
            "from distlearn.cli import main\n"
            "class Keyboard:\n"
            "    def read(self):\n"
            "        print('ready', flush=True)\n"
            "        signal.pause()\n"
            "sys.stdin = Keyboard()\n"
            "main()\n")
    with subprocess.Popen(
        [sys.executable, "-c", code, "validate", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # even if nohup ignores it
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stdout.read() + process.stderr.read() == b""


def test_an_error_of_our_own_says_so(program):
    code = ("import distlearn.pipeline as p; p.build = lambda *a, **k: 1 / 0; "
            "from distlearn.cli import main; main()")
    out = subprocess.run([sys.executable, "-c", code, "schedule", "1f1b", "-p", "2", "-m", "2"],
                         capture_output=True, text=True, check=False)
    assert out.returncode == 70
    assert out.stderr == ("error: distlearn failed: ZeroDivisionError: division by zero "
                          "(DISTLEARN_TRACEBACK=1 shows where)\n")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["schedules"],
                                       ["schedule", "1f1b", "-p", "2", "-m", "2"]])
def test_heavy_packages_are_not_imported(arguments):
    code = ("import sys, atexit\n"
            "heavy = ('numpy', 'matplotlib', 'ipywidgets', 'IPython', 'nbformat', 'jupytext')\n"
            "atexit.register(lambda: print([m for m in heavy if m in sys.modules], "
            "file=sys.stderr))\n"
            "from distlearn.cli import main\nmain()\n")
    out = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True,
                         check=True)
    assert out.stderr.splitlines()[-1] == "[]"


def test_completion_offers_schedules(program):
    out = program(_DISTLEARN_COMPLETE="complete_bash", COMP_WORDS="distlearn schedule 1",
                  COMP_CWORD="2")
    assert out.stdout.split() == ["1f1b", "1f1b_v"]
