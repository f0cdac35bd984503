"""pytest plugin: ``pytest --submission PATH`` grades one submission, one test item per question.

Loaded in every run of pytest, so it imports only pytest; without the option it does nothing.
"""

from __future__ import annotations

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
def pytest_collection(session: pytest.Session) -> bool | None:
    """With ``--submission``, collect its questions and nothing else."""
    config = session.config
    path = config.getoption("submission")
    if path is None:
        return None
    source = Path(path).resolve()
    if not source.exists():
        raise pytest.UsageError(f"--submission: {path} does not exist")
    _refuse_foreign_configuration(config, source)
    collector = Submission.from_parent(session, name=source.name, path=source)
    report = config.hook.pytest_make_collect_report(collector=collector)
    config.hook.pytest_collectreport(report=report)
    session.items = list(report.result)
    config.hook.pytest_collection_modifyitems(session=session, config=config, items=session.items)
    config.hook.pytest_collection_finish(session=session)
    session.testscollected = len(session.items)
    return True


def _refuse_foreign_configuration(config: pytest.Config, source: Path) -> None:
    """Stop if pytest has read settings or a conftest.py that came with the submission."""
    loaded = [getattr(plugin, "__file__", None) for plugin in config.pluginmanager.get_plugins()]
    files = [Path(file).resolve() for file in (config.inipath, *loaded) if file]
    folder = source if source.is_dir() else source.parent
    home = Path(__file__).resolve().parents[2]
    for file in files:
        if file.is_relative_to(folder) and not file.is_relative_to(home):
            raise pytest.UsageError(
                f"the submission brings its own {file.name}, which pytest has read. Take it away, "
                f"or use `distlearn grade`, which reads no such files.")


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
