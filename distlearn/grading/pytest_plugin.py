"""pytest plugin: ``pytest --submission PATH`` grades one submission, one test item per question.

Loaded in every run of pytest, so it imports only pytest; without the option it does nothing.

No conftest.py is run. But before any plugin has a say, pytest reads the settings (pytest.ini and
the like) of the folder it is started in, and with ``--submission PATH`` (not with
``--submission=PATH``) those beside PATH; settings can name plugins. Such a file stops the run here,
after it has been read. For submissions by people you do not know use ``distlearn grade``, which
reads none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distlearn.grading.judge import QuestionResult


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--submission``, ``--hidden`` and the limits."""
    group = parser.getgroup("distlearn", "grading (distlearn)")
    group.addoption("--submission", metavar="PATH", default=None,
                    help="grade this notebook, Python file or folder of one learner; "
                         "only its questions are collected")
    group.addoption("--hidden", metavar="PATH", default=None,
                    help="hidden cases: a file, or a folder of hidden_*.py")
    group.addoption("--time-limit", metavar="SECONDS", type=float, default=10.0,
                    help="computing time per question (default: 10)")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """With ``--submission``, run no conftest.py: whoever wrote it could decide about points."""
    option = early_config.known_args_namespace
    if option.submission is not None:
        option.noconftest = True
        _refuse_foreign_files(early_config, Path(option.submission).resolve())


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool | None:
    """With ``--submission``, collect its questions and nothing else."""
    config = session.config
    path = config.getoption("submission")
    if path is None:
        return None
    source = Path(path).resolve()
    if not source.exists():
        raise pytest.UsageError(f"--submission: {path} does not exist")
    collector = Submission.from_parent(session, name=source.name, path=source)
    report = config.hook.pytest_make_collect_report(collector=collector)
    config.hook.pytest_collectreport(report=report)
    session.items = list(report.result)
    config.hook.pytest_collection_modifyitems(session=session, config=config, items=session.items)
    config.hook.pytest_collection_finish(session=session)
    session.testscollected = len(session.items)
    return True


def _refuse_foreign_files(config: pytest.Config, source: Path) -> None:
    """Stop before the tests if pytest uses settings or modules that came with the submission."""
    folder = source if source.is_dir() else source.parent
    home = Path(__file__).resolve().parents[2]
    modules = [getattr(plugin, "__file__", None) for plugin in config.pluginmanager.get_plugins()]
    for file in (config.inipath, *modules):
        path = Path(file).resolve() if file else home
        if path.is_relative_to(folder) and not path.is_relative_to(home):
            raise pytest.UsageError(
                f"the submission brings its own {path.name}, which pytest has read. Take it away, "
                f"or use `distlearn grade`, which reads no such files.")
    if folder in (Path(entry).resolve() for entry in sys.path) and folder != home:
        raise pytest.UsageError(
            "Python looks for modules in the folder of the submission, which could replace those "
            "of pytest: start `pytest` from another folder, or without `python -m`.")


class Submission(pytest.Collector):
    """One learner's file or folder, graded when it is collected."""

    def __init__(self, path: Path, **arguments: Any) -> None:
        super().__init__(path=path, nodeid=path.name, **arguments)

    def collect(self) -> Iterator[pytest.Item]:
        """One item per question, with the grader's verdict."""
        from distlearn.grading.grader import grade_file

        option = self.config.getoption
        try:
            report = grade_file(self.path, hidden=option("hidden"), time_limit=option("time_limit"))
        except (ValueError, FileNotFoundError) as error:
            raise pytest.UsageError(str(error)) from None
        for student in report.students:
            for result in student.results:
                yield QuestionItem.from_parent(self, name=result.question.id, result=result)


class QuestionItem(pytest.Item):
    """One question: passes with full points, otherwise fails with the feedback as its text."""

    def __init__(self, result: QuestionResult, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.result = result

    def runtest(self) -> None:
        """Pass or fail by the verdict."""
        if not self.result.ok:
            raise NotRightError(self.result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The feedback, instead of a traceback."""
        from distlearn.grading.faces import text

        if isinstance(excinfo.value, NotRightError):
            return text(self.result)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """What the heading of a failure says."""
        return self.path, None, f"{self.result.question.id}: {self.result.question.title}"


class NotRightError(Exception):
    """A question without full points."""
