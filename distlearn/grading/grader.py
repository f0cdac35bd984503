"""Grade: every question of every submission, each in a child process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

from distlearn.grading import hidden as hidden_cases
from distlearn.grading.collect import Choice, Entry, Readable, choose, entries, entry, readable
from distlearn.grading.judge import QuestionResult, judge
from distlearn.grading.outcome import Outcome, Run
from distlearn.grading.question import SETS, Case, Question, find, notebooks, questions
from distlearn.grading.report import NOT_HANDED_IN, Report, StudentResult
from distlearn.grading.roster import call_roll, read_roster
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import printable
from distlearn.grading.writing import prepare, write


def grade(
    submissions_dir: str | Path,
    out_dir: str | Path,
    *,
    sets: Sequence[str] | None = None,
    hidden: str | Path | None = None,
    roster: str | Path | None = None,
    time_limit: float = 10.0,
    memory_limit: int = 2**30,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Report:
    """Grade a folder of submissions and write gradebook, class summary and feedback.

    Parameters
    ----------
    submissions_dir : path
        ``DIR/student/file.ipynb``, ``DIR/student.ipynb`` or ``DIR/student.py``.
    out_dir : path
        Gets ``gradebook.csv``, ``questions.csv``, ``results.json`` and ``feedback/``. Made if it
        is not there; an older result in it is replaced.
    sets : sequence of str, optional
        Exercise sets, or notebooks such as ``"pipeline_2"``, to grade. Default: the notebooks that
        any submission answers something of, else all.
    hidden : path, optional
        File or folder with hidden cases. Default: those of the repository this runs from.
    roster : path, optional
        Names of the class, see `read_roster`. Who is on it and handed in nothing gets a row.
    time_limit : float
        Seconds of computing time for one question.
    memory_limit : int
        Bytes for one question.
    jobs : int, optional
        Questions graded at once. Default: the number of CPU cores.
    progress : bool, optional
        Show a progress bar. Default: if standard error is a terminal.

    Returns
    -------
    Report

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no folder of submissions, or the hidden cases are not there.
    ValueError
        For an unknown set, limits or jobs out of range, or ``out_dir`` inside ``submissions_dir``.
    """
    source, target = Path(submissions_dir), Path(out_dir)
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"out_dir {target} is inside submissions_dir {source}: the next run would "
                         "take the results for a submission")
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"out_dir {target} exists and is not a folder")
    limits = Limits(time_limit, memory_limit)
    closed = [path.resolve() for path in (source, target, *([Path(hidden)] if hidden else []))]
    found, remarks = entries(source), list[str]()
    if roster is not None:
        closed.append(Path(roster).resolve())
        found, remarks = call_roll(found, read_roster(Path(roster)))
    extra = _hidden(hidden)
    prepare(target)
    report = _grade(found, sets, extra, limits, jobs, progress, closed)
    report = replace(report, notes=(*remarks, *report.notes))
    write(report, target)
    return report


def grade_file(
    path: str | Path,
    *,
    sets: Sequence[str] | None = None,
    hidden: str | Path | None = None,
    time_limit: float = 10.0,
    memory_limit: int = 2**30,
    jobs: int | None = None,
) -> Report:
    """Grade one submission, a file or a learner's folder, with the hidden cases; write nothing.

    Parameters and errors as `grade`; the report has one student.
    """
    one = _one(Path(path))
    closed = [Path(hidden).resolve()] if hidden else []
    limits = Limits(time_limit, memory_limit)
    return _grade([one], sets, _hidden(hidden), limits, jobs, False, closed)


def check_file(
    path: str | Path,
    question: str | None = None,
    *,
    time_limit: float = 10.0,
    memory_limit: int = 2**30,
    jobs: int | None = None,
) -> Report:
    """Run the visible cases on a learner's notebook or Python file, as `check` does in a notebook.

    Parameters
    ----------
    path : path
        A file, or a folder with one learner's files.
    question : str, optional
        Such as ``"pipeline/bubble"``, or a set or notebook. Default: everything the file answers.
    time_limit, memory_limit, jobs
        As `grade`.

    Returns
    -------
    Report
        With one student; ``report.to_text(details=True)`` is what to show.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If there is no such question, or the file is neither a notebook nor Python.
    """
    one = _one(Path(path))
    if Path(path).is_file() and not (found := readable(one)).programs:
        raise ValueError(f"{found.notes[-1].rstrip('.')}: check takes the notebook (.ipynb) or "
                         "Python file (.py) with your answers")
    asked: tuple[Question, ...] | None = None
    if question is not None:
        named = (*SETS, *notebooks())
        asked = questions(question) if question in named else (find(question),)
    limits = Limits(time_limit, memory_limit)
    return _grade([one], None, {}, limits, jobs, False, (), asked, graded=False)


def _one(path: Path) -> Entry:
    if not path.exists() and not path.is_symlink():
        raise FileNotFoundError(f"submission {path} does not exist")
    return entry(path.name if path.is_dir() else path.stem, [path])


def _hidden(path: str | Path | None) -> dict[str, tuple[Case, ...]]:
    return hidden_cases.load(path if path is not None else hidden_cases.default_path())


def _grade(
    found: Sequence[Entry], sets: Sequence[str] | None, extra: dict[str, tuple[Case, ...]],
    limits: Limits, jobs: int | None, progress: bool | None, closed: Sequence[Path],
    asked: tuple[Question, ...] | None = None, graded: bool = True,
) -> Report:
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be >= 1; got {jobs}")
    files = {one.student: readable(one) for one in found}
    strays = [one for one in found if one.loose and not files[one.student].programs]
    found = [one for one in found if one not in strays]
    if asked is None:
        asked = questions(*sets) if sets else _answered(files.values())
    if not found:
        raise ValueError("there are no submissions: their folder "
                         + (f"holds only {printable(strays[0].files[0].name)} and the like"
                            if strays else "is empty"))
    choices = {student: _choices(read, asked) for student, read in files.items()}
    absent = {student: _absent(files[student], choices[student], asked) for student in choices}
    tasks = [(one.student, question) for one in found for question in asked]
    cancel = Event()

    def work(task: tuple[str, Question]) -> QuestionResult:
        student, question = task
        cases = (*question.cases, *extra.get(question.id, ()))
        choice = choices[student][question.notebook]
        if question.notebook in absent[student]:
            return QuestionResult(question, 0, NOT_HANDED_IN,
                                  reason=f"{question.notebook} was not handed in.")
        return _question(choice, question, cases, limits, closed, cancel)

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            results = list(_progress(pool.map(work, tasks), len(tasks), progress))
        except BaseException:  # Ctrl-C: leave no child behind
            cancel.set()
            pool.shutdown(cancel_futures=True)
            raise
    table: dict[str, list[QuestionResult]] = {one.student: [] for one in found}
    for (student, _), result in zip(tasks, results, strict=True):
        table[student].append(result)
    students = tuple(
        StudentResult(one.student, _file(one, choices[one.student]), tuple(table[one.student]),
                      _notes(choices[one.student]))
        for one in found)
    missing = [question.id for question in asked if question.id not in extra]
    notes = () if not missing or not graded else (
        f"Only the visible cases were used for {', '.join(missing)}: no hidden ones were given.",)
    left_out = tuple((printable(one.files[0].name), files[one.student].notes[-1]) for one in strays)
    return Report(asked, students, notes, graded, left_out)


def _question(choice: Choice, question: Question, cases: Sequence[Case], limits: Limits,
              closed: Sequence[Path], cancel: Event) -> QuestionResult:
    if choice.program is None:
        reason = " ".join(choice.notes) or "There is no file that can be graded."
        return QuestionResult(question, 0, "no submission", reason=reason)
    submission = choice.program.submission
    defined = choice.program.functions
    part = choice.program.slice(question.function)
    if part.problem is not None:
        outcome = part.problem
        result = Run(stopped=outcome, notes=part.notes)
        if outcome.kind == "missing" and f"def {question.function}" in submission.prose:
            note = (f"`{question.function}` stands in a cell that is not code: change the type of "
                    "the cell to Code.")
            result = Run(stopped=outcome, notes=(*part.notes, note))
    else:
        result = run(
            part.cells, question.function, [case.args for case in cases],
            module="__main__" if submission.notebook else "submission",
            without=question.without, program=question.how, limits=limits,
            closed=closed, cancel=cancel)
        result = Run(result.outcomes, result.stopped, result.called, part.notes)
    if result.stopped is None and len(result.outcomes) < len(cases):
        result = Run(result.outcomes, Outcome("silent", message="it was cancelled"), True)
    return judge(question, cases, result, defined=defined, kind=submission.kind)


def _answered(found: Iterable[Readable]) -> tuple[Question, ...]:
    """The questions of the notebooks that any of the submissions has something of."""
    known = questions()
    defined = {name for files in found for program in files.programs for name in program.defined}
    touched = {question.notebook for question in known if question.function in defined}
    return tuple(q for q in known if not touched or q.notebook in touched)


def _choices(files: Readable, asked: Sequence[Question]) -> dict[str, Choice]:
    """The file that counts for each notebook: a learner may hand in one for each."""
    names = dict.fromkeys(question.notebook for question in asked)
    return {name: choose(files, [q for q in asked if q.notebook == name]) for name in names}


def _absent(files: Readable, choices: dict[str, Choice], asked: Sequence[Question]) -> set[str]:
    """Notebooks of which a learner has handed in nothing, though something of another one."""
    touched = {question.notebook for question in asked
               if (program := choices[question.notebook].program) is not None
               and question.function in program.defined}
    named = " ".join(program.submission.name for program in files.programs)
    return {name for name in choices if touched and name not in touched and name not in named}


def _file(one: Entry, choices: dict[str, Choice]) -> str:
    names = [choice.program.submission.name for choice in choices.values()
             if choice.program is not None]
    return ", ".join(dict.fromkeys(names)) or (printable(one.files[0].name) if one.files else "")


def _notes(choices: dict[str, Choice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for choice in choices.values() for note in choice.notes))


def _progress(results: Iterable[QuestionResult], total: int, show: bool | None,
              ) -> Iterable[QuestionResult]:
    if show is False:
        return results
    from tqdm import tqdm  # type: ignore[import-untyped]

    bar: Iterable[QuestionResult] = tqdm(
        results, total=total, unit="question", disable=None if show is None else not show)
    return bar
