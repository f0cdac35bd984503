"""``python -m benchmarks [TOPIC ...] [--json FILE]``: measure, print a table, keep the numbers."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import TOPICS
from benchmarks.measure import Result


def main() -> int:
    """Run the topics; 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC",
                        help=f"any of {', '.join(TOPICS)}; default all")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), metavar="FILE",
                        help="where the numbers go (default: %(default)s)")
    arguments = parser.parse_args()
    unknown = set(arguments.topics) - set(TOPICS)
    if unknown:
        parser.error(f"no topic is called {', '.join(sorted(unknown))}; topics are "
                     f"{', '.join(TOPICS)}")
    screen = Console()
    found = {name: _run(name, screen) for name in arguments.topics or TOPICS}
    _write(arguments.json, found)
    screen.print(f"Numbers: {arguments.json}")
    return 0 if all(result.ok for results in found.values() for result in results) else 1


def _run(name: str, screen: Console) -> list[Result]:
    topic = importlib.import_module(f"benchmarks.{name}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=topic.TITLE,
                  title_justify="left", title_style="bold")
    for column in ("what", "measured", "ratio", "to", "target"):
        table.add_column(column, justify="right" if column in ("measured", "ratio") else "left")
    found: list[Result] = []
    progress = Console(stderr=True)
    with progress.status(f"{topic.TITLE}: measuring") as status:
        for result in topic.results():
            found.append(result)
            status.update(f"{topic.TITLE}: {len(found)} measured, last {result.name}")
    for result in found:
        what = escape(result.name) + (f"\n[dim]{escape(result.note)}[/dim]" if result.note else "")
        ratio = "" if result.ratio is None else f"{result.ratio:.3g}"
        to = "" if result.reference_value is None else (
            f"{_value(result.reference_value, result)}, {result.reference}")
        target = "" if result.limit is None else (
            f"<= {result.limit:g} {'met' if result.ok else '[bold red]missed[/bold red]'}")
        table.add_row(what, _value(result.value, result), ratio, to, target)
    screen.print(table)
    return found


def _value(value: float, result: Result) -> str:
    return f"{value:.3g} {result.unit}".rstrip()


def _write(path: Path, found: dict[str, list[Result]]) -> None:
    data = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "topics": {name: [asdict(r) | {"ratio": r.ratio, "ok": r.ok} for r in results]
                   for name, results in found.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
