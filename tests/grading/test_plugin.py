"""``pytest --submission PATH``, run as people run it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.grading.answers import cells, notebook

ROOT = Path(__file__).parents[2]


def pytest_run(*arguments: str, cwd: Path = ROOT, safe: bool = True,
               ) -> subprocess.CompletedProcess[str]:
    """Run pytest with our plugin and no other: loading them all takes seconds."""
    command = [sys.executable, *(["-P"] if safe else []), "-m", "pytest", "-p", "no:cacheprovider",
               "-p", "distlearn.grading.pytest_plugin", *arguments]
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False,
                          env=environment)


def test_one_item_per_question_and_nothing_else(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann" / "pipeline_1.ipynb",
                    cells(bubble_fraction="def bubble_fraction(p, m): return p / (m + p)"))
    done = pytest_run("--submission", str(path), "-v")
    assert done.returncode == 1
    assert "4 passed" in done.stdout
    assert "1 failed" in done.stdout
    for words in ("pipeline/bubble: The bubble", "call    bubble_fraction(p=4, m=8)",
                  "hint    Off by one"):
        assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "NotRightError" not in done.stdout


def test_everything_right_is_exit_status_0(tmp_path: Path) -> None:
    path = notebook(tmp_path / "ann.ipynb", cells())
    assert pytest_run("--submission", str(path), "-k", "bubble").returncode == 0


def test_missing_submission_or_hidden_cases_is_a_usage_error(tmp_path: Path) -> None:
    done = pytest_run("--submission", str(tmp_path / "nowhere"))
    assert done.returncode == 4
    assert "does not exist" in done.stderr
    path = notebook(tmp_path / "ann.ipynb", cells())
    done = pytest_run("--submission", str(path), "--hidden", str(tmp_path / "nothing"))
    assert done.returncode != 0
    assert "no hidden cases" in done.stdout + done.stderr


def test_settings_that_came_with_the_submission_are_refused(tmp_path: Path) -> None:
    notebook(tmp_path / "ann" / "x.ipynb", cells())
    (tmp_path / "ann" / "pytest.ini").write_text("[pytest]\naddopts = -k nothing\n")
    done = pytest_run("--submission", str(tmp_path / "ann"), cwd=tmp_path)
    assert done.returncode == 4
    assert "brings its own pytest.ini" in done.stderr


EVIL = ("import pathlib\npathlib.Path(__file__).with_name('ran').write_text('')\n"
        "from distlearn.grading.judge import QuestionResult\nQuestionResult.ok = True\n")


@pytest.mark.parametrize(("spelling", "inside"), [
    (["--submission", "{}"], True), (["{}", "--submission={}"], False),
    (["--submission", "{}/x.ipynb", "--confcutdir", "/"], False), (["--submission={}"], False),
])
def test_no_conftest_is_run(tmp_path: Path, spelling: list[str], inside: bool) -> None:
    folder = tmp_path / "ann"
    notebook(folder / "x.ipynb", cells(bubble_fraction="def bubble_fraction(p, m): return 7"))
    for place in (tmp_path, folder, folder / "tests"):
        place.mkdir(exist_ok=True)
        (place / "conftest.py").write_text(EVIL)
    done = pytest_run(*(word.format(folder) for word in spelling), "-k", "bubble",
                      cwd=folder if inside else tmp_path)
    assert not list(tmp_path.rglob("ran"))
    assert done.returncode == 1, done.stderr
    assert "got     7" in done.stdout


def test_settings_beside_the_submission_are_not_read_from_elsewhere(tmp_path: Path) -> None:
    notebook(tmp_path / "ann" / "x.ipynb", cells(bubble_fraction="def bubble_fraction(p, m): 1"))
    (tmp_path / "ann" / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = -p evil\n")
    (tmp_path / "ann" / "evil.py").write_text(EVIL)
    done = pytest_run(f"--submission={tmp_path / 'ann'}", "-k", "bubble", cwd=tmp_path)
    assert not (tmp_path / "ann" / "ran").exists()
    assert done.returncode == 1, done.stderr


def test_modules_beside_the_submission_are_refused(tmp_path: Path) -> None:
    notebook(tmp_path / "ann" / "x.ipynb", cells())
    done = pytest_run("--submission", "x.ipynb", cwd=tmp_path / "ann", safe=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "start `pytest` from another folder" in done.stderr


def test_pytest_finds_the_plugin_by_itself() -> None:
    (entry,) = [point for point in entry_points(group="pytest11") if point.name == "distlearn"]
    assert entry.value == "distlearn.grading.pytest_plugin"


def test_without_the_option_nothing_heavy_is_imported() -> None:
    code = ("import sys, distlearn.grading.pytest_plugin\n"
            "print([m for m in ('numpy', 'matplotlib', 'nbformat', 'distlearn.pipeline', "
            "'distlearn.grading.grader', 'tqdm') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
