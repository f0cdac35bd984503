"""Commands about pipeline schedules: look at one, list them, check one written by hand."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distlearn.cli.errors import Found
from distlearn.cli.values import OptionalValues, count, named_times, setting, times
from distlearn.grading.files import read_text, write_text

if TYPE_CHECKING:
    from distlearn.pipeline import Timeline

EXAMPLES = """[bold]Examples[/bold]

distlearn schedule 1f1b -p 4 -m 8

distlearn schedule interleaved_1f1b -p 4 -m 8 -v 2 --svg timeline.svg

distlearn schedule zb_h1 -p 4 -m 8 -I 1.2 -W 0.8 --comm 0.1 --json

distlearn schedule zb_auto -p 4 -m 8 -o mem_limit=3 -F 1 -B 5/2 -W 1

distlearn schedule mario -p 4 -m 8 -o base=zb_h1 -o prepose=false --text
"""

VALIDATE_EXAMPLES = """[bold]Example[/bold]

distlearn schedule 1f1b -p 4 -m 8 --text | distlearn validate -
"""


class ScheduleCommand(OptionalValues):
    """`schedule`, with ``--json`` and ``--svg`` that write to stdout when no FILE follows."""

    def words(self) -> Collection[str]:
        """Names of schedules."""
        return _names()


def _names() -> tuple[str, ...]:
    from distlearn.pipeline import NAMES

    return NAMES


def _complete(incomplete: str) -> list[str]:
    return [name for name in _names() if name.startswith(incomplete)]


_Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_complete, show_default=False,
                                      help="A schedule; `distlearn schedules` lists them.")]
_Time = float | tuple[float, ...]
_COSTS = "Times (any unit)"
_OUTPUT = "Output"


def _time(letter: str, help_text: str) -> Any:
    return typer.Option(letter, parser=times, metavar="TIME", help=help_text, show_default=False,
                        rich_help_panel=_COSTS)


def schedule(
    name: _Name,
    p: Annotated[int, typer.Option("-p", parser=count, metavar="N", show_default=False,
                                   help="Pipeline ranks.")],
    m: Annotated[int, typer.Option("-m", parser=count, metavar="N", show_default=False,
                                   help="Microbatches.")],
    v: Annotated[int | None, typer.Option(
        "-v", parser=count, metavar="N", show_default=False,
        help="Stages per rank; default 1, or 2 where the schedule is made for 2.")] = None,
    group: Annotated[int | None, typer.Option(
        "--group", parser=count, metavar="N", show_default=False,
        help="The same as -o group=N: microbatches that take a turn on one chunk.")] = None,
    option: Annotated[list[Any] | None, typer.Option(
        "--option", "-o", parser=setting, metavar="NAME=VALUE", show_default=False,
        help="An option of this schedule, as [bold]distlearn schedules[/bold] lists them, such as "
             "-o slices=2 or -o overlap=true. May be given several times.")] = None,
    F: Annotated[Any, _time(
        "-F", "Forward; default 1. One number (or a fraction, 1/3), or one per stage: 1,2,1,1")]
    = None,
    B: Annotated[Any, _time("-B", "Full backward; default I + W, or 2.")] = None,
    I: Annotated[Any, _time("-I", "Input-gradient half of the backward.")] = None,
    W: Annotated[Any, _time("-W", "Weight-gradient half of the backward.")] = None,
    comm: Annotated[Any, _time("--comm", "Transfer to another rank; default 0.")] = None,
    made_for: Annotated[Any, typer.Option(
        "--made-for", parser=named_times, metavar="NAME=TIME,...", show_default=False,
        rich_help_panel=_COSTS,
        help="Times for which a schedule that searches (zb_auto, v_auto, mario, ...) makes its "
             "order; default those above. What if it had been made for F=1,I=1,W=1?")] = None,
    svg: Annotated[str | None, typer.Option(
        "--svg", metavar="[FILE]", rich_help_panel=_OUTPUT,
        help="Write the figure as SVG; without FILE to stdout, instead of the drawing.")] = None,
    json: Annotated[str | None, typer.Option(
        "--json", metavar="[FILE]", rich_help_panel=_OUTPUT,
        help="Write events and numbers as JSON; without FILE to stdout, instead of the "
             "drawing.")] = None,
    text: Annotated[bool, typer.Option(
        "--text", rich_help_panel=_OUTPUT,
        help="Print the order of actions as text, instead of the drawing.")] = False,
    width: Annotated[int | None, typer.Option(
        "--width", parser=count, metavar="N", rich_help_panel=_OUTPUT, show_default=False,
        help="Columns to draw in; default the terminal's, or 80.")] = None,
    wrap: Annotated[bool | None, typer.Option(
        "--wrap/--no-wrap", rich_help_panel=_OUTPUT, show_default=False,
        help="Continue the drawing below however long it gets, or never; default up to 60 "
             "lines.")] = None,
) -> None:
    """Draw a pipeline schedule to scale, with its bubble and memory, and the formulas beside."""
    from distlearn.cli.numbers import Formula
    from distlearn.pipeline import Costs, build, definition, simulate

    options: dict[str, Any] = {} if group is None else {"group": group}
    for key, value in option or ():
        if key in options:
            raise ValueError(f"option {key} is given twice")
        if key in ("p", "m", "v", "costs"):
            raise ValueError(f"option {key} has a flag of its own: -p, -m, -v; times are -F, -B, "
                             "-I, -W, --comm, and --made-for for those of a search")
        options[key] = value
    given = {"F": F, "B": B, "I": I, "W": W, "comm": comm}
    costs = Costs(**{key: value for key, value in given.items() if value is not None})
    if made_for is None:
        made = build(name, p, m, v, costs=costs, **options)
    else:
        if "costs" not in inspect.signature(definition(name)).parameters:
            raise ValueError(f"--made-for is for a search; the order of {name} does not depend on "
                             "times")
        made = build(name, p, m, v, costs=Costs(**made_for), **options)
    timeline = simulate(made, costs)
    formula = Formula.of(timeline, options) if made_for is None else Formula(
        None, None, "the order was made for other times")
    if made_for is not None:
        options["costs"] = made_for
    to_stdout = [flag for flag, on in (("--svg", svg == "-"), ("--json", json == "-"),
                                       ("--text", text)) if on]
    if len(to_stdout) > 1:
        raise ValueError(f"{' and '.join(to_stdout)} cannot both go to stdout; give one a FILE")
    if svg is not None:
        from distlearn.plots import timeline_svg

        _write("SVG", svg, timeline_svg(timeline) + "\n")
    if json is not None:
        from distlearn.cli.timeline_json import to_json

        _write("JSON", json, to_json(timeline, formula, options))
    if text:
        typer.echo(made.to_text())
    if not to_stdout:
        _show(timeline, formula, width, wrap)


def _write(what: str, file: str, content: str) -> None:
    if file == "-":
        sys.stdout.write(content)
    else:
        write_text(Path(file), content)
        typer.echo(f"{what} written to {file}", err=True)


def _show(timeline: Timeline, formula: Any, width: int | None, wrap: bool | None) -> None:
    from distlearn.cli.numbers import peaks, table
    from distlearn.cli.terminal import console as terminal
    from distlearn.cli.terminal import draw, legend

    made = timeline.schedule
    console = terminal(width)
    idle = "·" if "utf" in console.encoding else "."
    drawing = draw(timeline, console.width, wrap, idle)
    sizes = f"p={made.p} m={made.m}" + (f" v={made.v}" if made.v > 1 else "")
    console.print(f"[bold]{made.name}[/bold] {sizes}", highlight=False)
    for band in drawing.bands:
        console.print()
        console.print(band, soft_wrap=True)
    console.print()
    console.print(legend(timeline, drawing, idle))
    console.print()
    console.print(table(timeline, formula, console.width))
    console.print()
    console.print(peaks(timeline, formula), highlight=False)
    note = "Formula" if formula.idle is not None else "No formula for the idle time here"
    console.print(f"{note}: {formula.text}.", style="dim", highlight=False, markup=False)


def schedules() -> None:
    """List the schedules: what each does, and which sizes and options it takes."""
    from rich.table import Table

    from distlearn.cli.numbers import first_line
    from distlearn.cli.terminal import console
    from distlearn.pipeline import definition

    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold")
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it does")
    table.add_column("sizes and options")
    for name in _names():
        function = definition(name)
        what = first_line(sys.modules[function.__module__])
        table.add_row(name, what.partition(": ")[2] or what, _parameters(function))
    console().print(table)


def _parameters(function: Any) -> str:
    """The Parameters section of a numpydoc docstring, one parameter a line, as the flags say it."""
    lines = (inspect.getdoc(function) or "").splitlines()
    lines = lines[lines.index("Parameters") + 2 :]
    end = next((k for k, line in enumerate(lines) if line and not line.strip("-")), len(lines) + 1)
    entries: list[str] = []
    given = inspect.signature(function).parameters
    for line in lines[: end - 1]:  # the title of the next section is above its dashes
        if line.strip() and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            names = names.replace("costs", "times").replace("**options", "others")
            choices = re.match("{(.*?)}", kind.replace('"', ""))  # the first is the default
            entries.append(f"{names}: " + (
                choices[1].replace(",", " (default),", 1) + "." if choices else ""))
            default = given[names].default if names in given and names != "v" else None
            if default not in (None, inspect.Parameter.empty) and not choices:
                entries[-1] += f"default {str(default).lower()}."
        elif line.strip():
            entries[-1] += (" " if entries[-1][-1] != " " else "") + line.strip()
    return "\n".join(entries).replace("``", "")


def validate(
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False,
                                        help="A schedule as text; - reads stdin.")],
) -> None:
    """Check a schedule written as text: complete, each action once, no deadlock.

    The text is what [bold]distlearn schedule NAME --text[/bold] prints.

    Of an invalid one, a line says what is missing, there twice, or who waits for whom.
    """
    from distlearn.pipeline import Schedule, ScheduleError
    from distlearn.pipeline import validate as check

    text = sys.stdin.read() if file == "-" else read_text(Path(file))
    made = Schedule.from_text(text)
    try:
        check(made)
    except ScheduleError as error:
        raise Found(f"{made.name} is not valid: {error}") from None
    actions = sum(map(len, made.ranks))
    typer.echo(f"valid: {made.name}, {made.p} ranks, {made.stages} stages, {made.m} microbatches, "
               f"{actions} actions")
