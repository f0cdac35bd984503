"""What learners' code can see and reach, where the kernel lets the grader shut it in."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from distlearn.cli.machine import sandbox
from distlearn.grading import grade, hidden
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import Cell
from tests.grading.answers import cells, notebook
from tests.grading.test_sandbox import processes

ROOT = Path(__file__).parents[2]
LIMITS = Limits(seconds=5.0, memory=2**29)


@pytest.fixture(scope="module", autouse=True)
def _shut_in() -> None:
    for finding in sandbox():
        if finding.name in ("namespaces", "private disk") and not finding.ok:
            pytest.skip(f"{finding.name}: {finding.detail}")


def seen(*lines: str, closed: tuple[Path, ...] = ()) -> Any:
    source = "\n    ".join(["import os, sys, time, pathlib, threading\ndef f(x):", *lines])
    result = run([Cell("cell", source)], "f", [(1,)], limits=LIMITS, closed=closed)
    assert result.stopped is None, result
    assert result.outcomes[0].kind == "value", result
    return result.outcomes[0].value


def test_hidden_cases_solutions_and_history_are_out_of_sight() -> None:
    assert (ROOT / "solutions").is_dir()
    assert hidden.default_path() is not None
    names = seen(f"return sorted(os.listdir({str(ROOT)!r}))")
    assert "distlearn" in names
    assert not {"tests", "solutions", "exercises", ".git"} & set(names)
    search = f"return [str(p) for p in pathlib.Path({str(ROOT)!r}).rglob('hidden_*.py')]"
    assert seen(search) == []


@pytest.mark.parametrize("folder", ["~", "/tmp", "/var", "/home", "/root", "/dev/shm"])
def test_private_folders_hold_nothing_but_what_python_needs(folder: str) -> None:
    files = seen("found = []",
                 f"for top, dirs, files in os.walk(os.path.expanduser({folder!r})):",
                 "    dirs[:] = [d for d in dirs if not os.path.ismount(os.path.join(top, d))]",
                 "    found += files", "return found")
    assert files == []


def test_submissions_results_and_given_cases_are_hidden(tmp_path: Path) -> None:
    look = ("import pathlib\ndef bubble_fraction(p, m):\n    text = ''\n"
            f"    for path in pathlib.Path({str(tmp_path)!r}).rglob('*'):\n"
            "        if path.is_file() and path.stat().st_size:\n"
            "            text += f' {path.name}'\n"
            "    raise ValueError(f'saw{text}')")
    notebook(tmp_path / "in" / "ann.ipynb", cells(bubble_fraction=look))
    notebook(tmp_path / "in" / "bob.ipynb", cells())
    (tmp_path / "cases.py").write_text("def cases():\n    return {}\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gradebook.csv").write_text("old")
    report = grade(tmp_path / "in", tmp_path / "out", hidden=tmp_path / "cases.py", progress=False)
    assert report.students[0].results[0].reason.endswith("ValueError: saw in `raise ValueError("
                                                         "f'saw{text}')`.")
    assert report.students[1].total == 20


def test_one_hidden_file_is_empty_and_a_folder_elsewhere_too() -> None:
    file, folder = Path(os.__file__).with_name("this.py"), Path(os.__file__).parent / "wsgiref"
    sizes = seen(f"return [os.path.getsize({str(file)!r}), os.listdir({str(folder)!r})]",
                 closed=(file, folder))
    assert sizes == [0, []]
    assert seen(f"return os.path.getsize({str(file)!r})") == file.stat().st_size


def test_nothing_on_the_disk_can_be_written(tmp_path: Path) -> None:
    package = Path(hidden.__file__).parent
    places = [ROOT / "x", package / "x", Path(os.__file__).with_name("x.py"), tmp_path / "x",
              Path("/x"), Path("/usr/x"), Path("/tmp/x-of-a-learner"), Path("/sys/fs/cgroup/x")]
    seen(f"for place in {[str(place) for place in places]!r}:", "    try:",
         "        pathlib.Path(place).write_text('x')", "    except OSError: pass", "return 1")
    assert not [place for place in places if place.exists()]
    assert seen("pathlib.Path('mine').write_text('x')", "return os.listdir('.')") == ["mine"]


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                                  "/proc/self/uid_map"])
def test_the_kernel_cannot_be_set(path: str) -> None:
    assert seen("try:", f"    open({path!r}, 'r+b')", "    return 'opened'",
                "except OSError: return 'refused'") == "refused"


def test_devices_other_than_the_harmless_are_gone() -> None:
    assert set(seen("return os.listdir('/dev')")) <= {
        "full", "null", "random", "urandom", "zero", "shm"}
    assert seen("return len(os.urandom(4)) + open('/dev/null', 'w').write('abc')") == 7


def test_what_was_hidden_stays_hidden() -> None:
    """No right is left, not even in yet another namespace, to take the covers away."""
    source = [
        "import ctypes", "c = ctypes.CDLL(None)", "done = []",
        "for flags in (0, 0x10000000 | 0x20000):",
        "    done.append(c.unshare(flags) if flags else 0)",
        f"    for path in ({str(ROOT)!r}, '/tmp', '/etc', '/'):",
        "        done.append(c.umount2(path.encode(), 2))",
        "        c.mount(None, path.encode(), None, ctypes.c_ulong(32 | 4096), None)",
        f"    done.append(os.path.exists({str(ROOT / 'tests')!r}))",
        "    done.append(os.access('/usr', os.W_OK))",
        f"done.append(os.path.exists({str('/proc/1/root' + str(ROOT / 'tests'))!r}))",
        f"done.append(os.path.exists({str(f'/proc/{os.getpid()}/root' + str(ROOT / 'tests'))!r}))",
        "status = pathlib.Path('/proc/self/status').read_text()",
        "return [done, [l for l in status.splitlines() if l.startswith(('CapEff', 'CapBnd'))]]",
    ]
    done, _ = seen(*source)
    assert True not in [value for value in done if isinstance(value, bool)]
    assert [value for value in done if not isinstance(value, bool) and value == 0] in ([0], [0, 0])
    rights = seen("s = pathlib.Path('/proc/self/status').read_text()",
                  "return [l.split()[1] for l in s.splitlines() if l[:3] == 'Cap']")
    assert rights == ["0" * 16] * 5


def test_the_parent_folder_is_not_a_way_out() -> None:
    assert seen("return os.path.exists('../' * 9 + 'etc/shadow')") is False
    above = Path(tempfile.gettempdir()).resolve()  # the checkout may lie there as well
    parts = {path.relative_to(above).parts[0] for path in (ROOT, *map(Path, sys.path))
             if path.is_relative_to(above)}
    assert len(set(seen("return os.listdir('..')")) - parts) == 1


def test_libraries_still_load() -> None:
    assert seen("import numpy, decimal, sqlite3, zoneinfo, tempfile, ssl, locale",
                "with tempfile.TemporaryFile() as f: f.write(b'a')",
                "import distlearn.pipeline as p",
                "return float(numpy.linalg.det(numpy.eye(3))) + p.build('1f1b', 2, 2).p") == 3.0


CROWD = """
import os, threading, time
def f(x):
    for _ in range(200):
        if x == "threads":
            threading.Thread(target=time.sleep, args=(600,)).start()
        elif not os.fork():
            time.sleep(600)
    time.sleep(600)
"""
BOMB = """
import os
def f(x):
    while True:
        try: os.fork()
        except OSError: pass
"""


@pytest.mark.parametrize(("source", "what"), [
    (CROWD, "processes"), (CROWD, "threads"), (BOMB, "a process that doubles"),
])
def test_too_many_processes_are_ended_and_named(source: str, what: str) -> None:
    before = started()
    result = run([Cell("cell", source)], "f", [(what,)], limits=Limits(20.0, 2**31))
    found = f"{result}; {started() - before} processes started meanwhile; {limits_here()}"
    last = result.stopped or result.outcomes[-1]  # the machine's own limit may be the nearer one
    assert last.kind == "processes", found


@pytest.mark.parametrize("error", [
    "RuntimeError(\"can't start new thread\")", "BlockingIOError(11, 'try again')",
])
def test_a_machine_without_room_for_more_is_named_alike(error: str) -> None:
    result = run([Cell("cell", f"def f():\n    raise {error}")], "f", [()], limits=LIMITS)
    assert result.outcomes[0].kind == "processes"
    assert result.outcomes[0].where == "cell, line 2"


def started() -> int:
    return int(Path("/proc/loadavg").read_text().split()[-1])


def limits_here() -> str:
    """What else could keep processes from starting: for the reader of a failure."""
    groups = {str(path): path.read_text().strip()
              for path in Path("/sys/fs/cgroup").rglob("pids.max")}
    return f"uid {os.getuid()}, {resource.getrlimit(resource.RLIMIT_NPROC)=}, {groups}"


def test_many_short_threads_one_after_another_are_fine() -> None:
    assert seen("for _ in range(500):", "    t = threading.Thread(target=int)", "    t.start()",
                "    t.join()", "return 1") == 1


def test_the_home_folder_cannot_fill_the_disk() -> None:
    written = seen("total = 0", "try:", "    for k in range(20):",
                   "        total += pathlib.Path(str(k)).write_bytes(bytes(8 * 2**20))",
                   "except OSError: pass", "return total")
    assert written <= 64 * 2**20


WITHOUT = """
import ctypes, os, sys, tempfile
from pathlib import Path
from distlearn.grading import confine
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import Cell

user, group = os.getuid(), os.getgid()
assert ctypes.CDLL(None).unshare(confine.CLONE_NEWUSER) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
    Path(f"/proc/self/{name}").write_text(text)
Path("/proc/sys/user/max_user_namespaces").write_text("0")
tempfile.tempdir = sys.argv[1]
source = '''import os, subprocess, time
def f(x):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    if x == 2: os.kill(os.getpid(), 9)
    if x == 3: os.fork() or os.setsid() or time.sleep(600)
    while x == 4: pass
    return os.readlink("/proc/self/ns/pid")'''
for x in (1, 2, 3, 4):
    done = run([Cell("cell", source)], "f", [(x,)], limits=Limits(0.3, 2**28))
    same = done.outcomes and done.outcomes[0].value == os.readlink("/proc/self/ns/pid")
    print(x, same or done.stopped.kind)
"""


def test_without_namespaces_it_is_ended_and_swept_up_all_the_same(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True,
                          text=True, check=True)
    assert done.stdout.splitlines() == ["1 True", "2 exit", "3 True", "4 time"], done.stderr
    assert not processes(tmp_path)
