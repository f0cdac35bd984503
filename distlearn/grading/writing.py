"""Write a report: gradebook, class summary, feedback per student, and everything as JSON."""

from __future__ import annotations

import csv
import errno
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from distlearn.grading.faces import html, text
from distlearn.grading.files import write_texts
from distlearn.grading.judge import CaseResult, QuestionResult, short
from distlearn.grading.report import NOT_HANDED_IN, Report, StudentResult

MAX_FEEDBACK = 60 * 1024
MAX_NAME = 120  # bytes; a file system takes 255, with everything


def prepare(folder: Path) -> None:
    """Make the folder and try it, so that a result that cannot be kept is not worked out first.

    Raises
    ------
    OSError
        If the folder cannot be written, or something in it has the place of a result.
    """
    (folder / "feedback").mkdir(parents=True, exist_ok=True)
    for name in ("gradebook.csv", "questions.csv", "results.json"):
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder, not a result", str(folder / name))
    write_texts({folder / ".distlearn": "", folder / "feedback" / ".distlearn": ""})
    for place in (folder, folder / "feedback"):
        (place / ".distlearn").unlink()


def write(report: Report, folder: Path) -> None:
    """Write the report's files: all of them, or, if that fails, none.

    Feedback of an earlier run is removed if `results.json` lists it; what else is in the folder
    stays.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    feedback = folder / "feedback"
    feedback.mkdir(parents=True, exist_ok=True)
    names = file_names([one.student for one in report.students])
    before = _feedback_of(folder / "results.json")
    files: dict[Path, str] = {}
    for one in report.students:
        files[feedback / f"{names[one.student]}.md"] = markdown(one)
        files[feedback / f"{names[one.student]}.html"] = page(one)
    files[folder / "questions.csv"] = _csv(_summary_rows(report))
    files[folder / "results.json"] = json.dumps(
        _json(report, names), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    files[folder / "gradebook.csv"] = _csv(_gradebook_rows(report))
    write_texts(files)
    for name in before - set(names.values()):
        for suffix in (".md", ".html"):
            (feedback / f"{name}{suffix}").unlink(missing_ok=True)


def file_names(students: Sequence[str]) -> dict[str, str]:
    """A safe and different file name for each student, also where case does not count."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        name = re.sub(r"[^\w.@+-]+", "_", unicodedata.normalize("NFC", student)).strip("._ ")
        name = name.encode()[:MAX_NAME].decode("utf-8", "ignore") or "student"
        base, number = name, 2
        while name.casefold() in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name.casefold())
        names[student] = name
    return names


def _feedback_of(results: Path) -> set[str]:
    """File names, without suffix, of the feedback of an earlier run."""
    try:
        students = json.loads(results.read_text("utf-8"))["students"]
        paths = [PurePosixPath(one["feedback"]) for one in students]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {path.stem for path in paths if path.parts[:-1] == ("feedback",)}


def markdown(one: StudentResult) -> str:
    """The feedback of one student as Markdown, readable as it is."""
    file = f" for `{one.file}`" if one.file else ""
    head = [f"# Feedback for {one.student}", "", f"{one.total} of {one.maximum} points{file}."]
    head += ["", *(f"- {note}" for note in one.notes)] if one.notes else []
    head += ["", "| question | points | result |", "|---|---|---|"]
    head += [f"| {name} | {points} | {status} |" for _, name, points, status in _table(one)]
    blocks = [f"## {r.question.title}\n\n```text\n{text(r).replace('```', chr(39) * 3)}\n```"
              for r in one.failed]
    return _fit("\n".join(head) + "\n", [f"\n{block}\n" for block in blocks],
                "\n(The rest is left out: it would be too long.)\n")


def _table(one: StudentResult) -> Iterator[tuple[str, str, str, str]]:
    """A row a question, and one for each notebook that is missing: in HTML, in text, points."""
    for r in one.results:
        if r.question.notebook not in one.not_handed_in:
            yield (f"{escape(r.question.title)} <code>{r.question.id}</code>",
                   f"{r.question.id}: {r.question.title}",
                   f"{r.points} of {r.question.points}", r.status)
    for name, results in one.not_handed_in.items():
        yield (f"<code>{name}</code>", name,
               f"0 of {sum(r.question.points for r in results)}", NOT_HANDED_IN)


def page(one: StudentResult) -> str:
    """The same as one HTML page, with pictures of the differences."""
    rows = "".join(
        f"<tr><td>{title}</td><td>{points}</td><td>{escape(status)}</td></tr>"
        for title, _, points, status in _table(one))
    notes = "".join(f"<li>{escape(note)}</li>" for note in one.notes)
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Feedback for '
        f'{escape(one.student)}</title><meta name="viewport" content="width=device-width">'
        f"<style>{_PAGE}</style></head>"
        f'<body class="dl-auto"><main><h1>Feedback for {escape(one.student)}</h1>'
        f"<p><b>{one.total} of {one.maximum} points</b>"
        f"{f' for <code>{escape(one.file)}</code>' if one.file else ''}</p>"
        f"{f'<ul>{notes}</ul>' if notes else ''}"
        f'<table class="t"><thead><tr><th>question</th><th>points</th><th>result</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>")
    blocks = [f"<h2>{escape(r.question.title)}</h2>{html(r)}" for r in one.failed]
    return _fit(head, blocks, "<p>(The rest is left out: it would be too long.)</p>",
                "</main></body></html>\n")


def _fit(head: str, blocks: Iterable[str], omitted: str, tail: str = "") -> str:
    """Join what fits into the size that feedback may have."""
    result = _cut(head, MAX_FEEDBACK // 2)
    for block in blocks:
        if len((result + block).encode()) > MAX_FEEDBACK:
            return result + omitted + tail
        result += block
    return result + tail


def _cut(value: str, limit: int) -> str:
    data = value.encode()
    return value if len(data) <= limit else data[:limit].decode("utf-8", "ignore") + "…"


def _gradebook_rows(report: Report) -> list[list[Any]]:
    names = [question.id for question in report.questions]
    rows: list[list[Any]] = [["student", *names, "total", "max", "file", "note"]]
    for one in report.students:
        rows.append([one.student, *(result.points for result in one.results), one.total,
                     one.maximum, one.file, " ".join(one.notes)[:300]])
    blank = [""] * (len(names) + 2)
    rows += [[name, *blank, name, f"No submission, left out: {why}"] for name, why in report.strays]
    return rows


def _summary_rows(report: Report) -> list[list[Any]]:
    rows: list[list[Any]] = [
        ["question", "title", "points", "submissions", "mean", "share_full", "common_failure"]]
    for item in report.summary():
        rows.append([item.question.id, item.question.title, item.question.points,
                     len(report.students), f"{item.mean:.2f}", f"{item.share_full:.2f}",
                     item.common_failure])
    return rows


def _csv(rows: list[list[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(
        [[_harmless(cell) for cell in row] for row in rows])
    return stream.getvalue()


def _harmless(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets a quote in front of it."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("=", "+", "-", "@", "\t", "|", "%"):
        return f"'{cell}"
    return cell


def _json(report: Report, names: dict[str, str]) -> dict[str, Any]:
    return {
        "questions": [
            {"id": q.id, "title": q.title, "function": q.function, "points": q.points}
            for q in report.questions],
        "notes": list(report.notes),
        "strays": [{"file": name, "why": why} for name, why in report.strays],
        "students": [
            {"student": one.student, "file": one.file, "total": one.total, "max": one.maximum,
             "notes": list(one.notes), "feedback": f"feedback/{names[one.student]}.md",
             "results": [_result(result) for result in one.results]}
            for one in report.students],
    }


def _result(result: QuestionResult) -> dict[str, Any]:
    shown: CaseResult | None = result.shown
    return {
        "question": result.question.id, "points": result.points, "max": result.question.points,
        "status": result.status, "passed": result.passed, "cases": len(result.cases),
        "call": shown.call if shown else "",
        "got": short(shown.got, 300) if shown and shown.comparable else result.reason,
        "wanted": short(shown.wanted, 300) if shown else "",
        "hint": result.hint, "notes": list(result.notes),
    }


_PAGE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;"
    "max-width:60em;padding:0 1em}code{font-size:.92em}.t{border-collapse:collapse;margin:1em 0}"
    ".t th,.t td{border:1px solid #8886;padding:.3em .6em;text-align:left}"
    ".t code{overflow-wrap:anywhere}"
)
