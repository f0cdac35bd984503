"""Commands about exercises: check one's own work, grade a folder, make what is handed out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from distlearn.cli.values import count, seconds

CHECK_EXAMPLES = """[bold]Examples[/bold]

distlearn check exercises/pipeline_1.ipynb

distlearn check exercises/pipeline_1.ipynb pipeline/bubble
"""

GRADE_EXAMPLES = """[bold]Example[/bold]

distlearn grade submissions -o graded

DIR holds STUDENT/*.ipynb, STUDENT.ipynb or STUDENT.py. Of several files with answers to one \
notebook, the one with most answers counts, a notebook before a Python file, the last by name. OUT \
gets gradebook.csv, questions.csv, results.json and a feedback page for each student.
"""

HANDOUT_EXAMPLES = """[bold]Examples[/bold]

distlearn handout -o ../course

distlearn handout -o course.zip --book
"""

_MIB = 2**20
_LIMITS = "Limits of each question"
_Time = Annotated[Any, typer.Option("--time", parser=seconds, metavar="SECONDS",
                                    rich_help_panel=_LIMITS, help="Computing time.")]
_Memory = Annotated[Any, typer.Option("--memory", parser=count, metavar="MIB",
                                      rich_help_panel=_LIMITS, help="Memory in MiB.")]
_Jobs = Annotated[Any, typer.Option("--jobs", "-j", parser=count, metavar="N", show_default=False,
                                    help="Questions at once; default one per core.")]


def _complete(incomplete: str) -> list[str]:
    from distlearn.grading import questions

    return [question.id for question in questions() if question.id.startswith(incomplete)]


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False,
                                         help="Your notebook or Python file.")],
    question: Annotated[str | None, typer.Argument(
        metavar="QUESTION", autocompletion=_complete, show_default=False,
        help="Such as pipeline/bubble, or a whole set. Default: all that the file answers.")]
    = None,
    time: _Time = 10.0,
    memory: _Memory = 1024,
    jobs: _Jobs = None,
) -> None:
    """Check your answers as check() does in the notebook: got, wanted, and a hint.

    Exit code 0 if all of them pass, 1 if not.
    """
    from distlearn.grading import check_file

    report = check_file(file, question, time_limit=time, memory_limit=memory * _MIB, jobs=jobs)
    typer.echo(report.to_text(details=True))
    if not report.ok:
        raise typer.Exit(1)


def grade(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False,
                                              help="The folder of submissions.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", show_default=False,
                                      help="Where gradebook and feedback go.")],
    sets: Annotated[list[str] | None, typer.Option(
        "--set", metavar="NAME", show_default=False,
        help="A set (pipeline) or one of its notebooks (pipeline_1); may be repeated. "
        "Default: the notebooks that are answered.")] = None,
    hidden: Annotated[Path | None, typer.Option(
        "--hidden", metavar="PATH", show_default=False,
        help="Hidden cases; default tests/exercises of this repository.")] = None,
    roster: Annotated[Path | None, typer.Option(
        "--roster", metavar="FILE", show_default=False,
        help="Names of the class, one a line or CSV with a column student; shows who is absent."),
    ] = None,
    time: _Time = 10.0,
    memory: _Memory = 1024,
    jobs: _Jobs = None,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Exit with 1 unless everybody has full points.")] = False,
) -> None:
    """Grade every submission in a folder, each question in a process of its own.

    An endless loop, exit() or a syntax error in one cell costs its own question only.
    """
    from distlearn.grading import grade as run

    report = run(directory, out, sets=sets or None, hidden=hidden, roster=roster, time_limit=time,
                 memory_limit=memory * _MIB, jobs=jobs)
    typer.echo(report.to_text())
    typer.echo(f"Gradebook and feedback: {out}", err=True)
    if strict and not report.ok:
        raise typer.Exit(1)


def release(
    solutions: Annotated[Path, typer.Argument(metavar="SOLUTIONS", show_default=False,
                                              help="Solved notebooks; default solutions."),
                         ] = Path("solutions"),
    exercises: Annotated[Path, typer.Argument(metavar="EXERCISES", show_default=False,
                                              help="What is handed out; default exercises."),
                         ] = Path("exercises"),
    only_check: Annotated[bool, typer.Option(
        "--check", help="Write nothing; exit with 1 if they are out of step.")] = False,
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Replace exercises that somebody has written in, too.")] = False,
) -> None:
    """Make the exercises from the solved notebooks, with stubs where the solutions were."""
    from distlearn.grading import check_release
    from distlearn.grading import release as make

    if only_check:
        problems = check_release(solutions, exercises)
        for problem in problems:
            typer.echo(problem)
        if problems:
            raise typer.Exit(1)
        typer.echo(f"{exercises} is in step with {solutions}")
        return
    done = make(solutions, exercises, overwrite=overwrite)
    for path in done.written:
        typer.echo(f"written: {path}")
    for path in done.kept:
        typer.echo(f"kept: {path} has been edited since it was made (--overwrite replaces it)")
    if done.unchanged:
        typer.echo(f"unchanged: {len(done.unchanged)}")


def handout(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", show_default=False,
                                      help="The folder to make, or a file that ends with .zip.")],
    book: Annotated[bool, typer.Option(
        "--book", help="With the pages of the book as `make book` has built them.")] = False,
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Replace an older handout.")] = False,
) -> None:
    """Make what learners get: exercises, book and package, without solutions and hidden cases."""
    from distlearn.grading import hand_out

    done = hand_out(out, book=book, overwrite=overwrite)
    typer.echo(f"written: {done.path}, {done.files} files, exercises {', '.join(done.exercises)}")
