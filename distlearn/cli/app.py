"""The command line, put together: every command in one place."""

from __future__ import annotations

from typing import Annotated

import typer

from distlearn import __version__
from distlearn.cli import doctor, grading, mpi, schedule
from distlearn.cli.errors import Group

app = typer.Typer(
    cls=Group,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"distlearn {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog="Exit codes: 0 done, 1 something was found "
              "wrong, 2 bad usage or input. Errors are one line on stderr.")
def distlearn(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.",
                                          callback=_version, is_eager=True)] = False,
) -> None:
    """Distributed deep-learning training: look at schedules, check and grade exercises.

    Start with [bold]distlearn schedule 1f1b -p 4 -m 8[/bold].
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command("schedule", cls=schedule.ScheduleCommand, rich_help_panel="Pipelines",
            epilog=schedule.EXAMPLES)(schedule.schedule)
app.command("schedules", rich_help_panel="Pipelines")(schedule.schedules)
app.command("validate", rich_help_panel="Pipelines",
            epilog=schedule.VALIDATE_EXAMPLES)(schedule.validate)
app.command("check", rich_help_panel="Exercises",
            epilog=grading.CHECK_EXAMPLES)(grading.check)
app.command("grade", rich_help_panel="Exercises",
            epilog=grading.GRADE_EXAMPLES)(grading.grade)
app.command("release", rich_help_panel="Exercises")(grading.release)
app.command("handout", rich_help_panel="Exercises",
            epilog=grading.HANDOUT_EXAMPLES)(grading.handout)
app.command("mpirun", rich_help_panel="This machine", epilog=mpi.EXAMPLES,
            context_settings={"allow_interspersed_args": False})(mpi.mpirun)
app.command("doctor", rich_help_panel="This machine")(doctor.doctor)
