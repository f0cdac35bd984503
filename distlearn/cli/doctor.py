"""`distlearn doctor`: what is installed and available, and how to get what is missing."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from distlearn.cli.errors import Found

if TYPE_CHECKING:
    from distlearn.cli.machine import Finding

_TITLES = {"system": "This machine", "packages": "Packages", "engines": "Engines",
           "sandbox": "Sandbox for grading"}


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say what is installed, which engines and sandbox features there are, and how to get more.

    Exit code 0 unless something required is missing.
    """
    from distlearn import __version__
    from distlearn.cli.machine import report, to_dict

    sections = report()
    result = to_dict(sections)
    if json:
        typer.echo(json_module.dumps({"distlearn": __version__, **result}, indent=1))
    else:
        _show(sections, __version__)
    if not result["ok"]:
        missing = [f.name for part in sections.values() for f in part if f.required and not f.ok]
        raise Found(f"required and missing: {', '.join(missing)}")


def _show(sections: dict[str, list[Finding]], version: str) -> None:
    from rich.table import Table

    from distlearn.cli.terminal import console

    screen = console()
    screen.print(f"[bold]distlearn[/bold] {version}", highlight=False)
    for section, findings in sections.items():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for finding in findings:
            mark = ("[green]yes[/green]" if finding.ok else
                    "[bold red]MISSING[/bold red]" if finding.required else "[yellow]no[/yellow]")
            detail = finding.detail + (f"\n{finding.remedy}" if finding.remedy else "")
            table.add_row(mark, finding.name, _escape(detail))
        screen.print(f"\n[bold]{_TITLES[section]}[/bold]")
        screen.print(table)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
