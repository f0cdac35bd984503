"""The list of a class: who has to hand something in, and who of them did."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from distlearn.grading.collect import Entry
from distlearn.grading.files import read_text
from distlearn.grading.submission import printable

ABSENT = "Nothing was handed in."


def read_roster(path: Path) -> tuple[str, ...]:
    """The students of a class, in the order of the file.

    Parameters
    ----------
    path : Path
        Text with one name a line; or CSV, of which the column ``student`` counts, else the first.
        Empty lines and those that begin with ``#`` do not.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, is empty, or has a name twice.
    """
    lines = [line for line in read_text(path).splitlines()
             if line.strip() and not line.lstrip().startswith("#")]
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    heads = [cell.casefold() for cell in rows[0]] if rows else []
    column = heads.index("student") if "student" in heads else 0
    body = rows[1:] if "student" in heads else rows
    names = [printable(row[column]) for row in body if len(row) > column and row[column]]
    if not names:
        raise ValueError(f"roster {path} names no student: one name a line, or CSV with a column "
                         "`student`")
    seen: dict[str, str] = {}
    for name in names:
        if _key(name) in seen:
            raise ValueError(f"roster {path} has {seen[_key(name)]!r} twice")
        seen[_key(name)] = name
    return tuple(names)


def call_roll(found: Sequence[Entry], roster: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """The entries by the roster's names, with one for everybody who is absent; and remarks.

    A name counts as the same where only capital letters differ.
    """
    known = {_key(name): name for name in roster}
    listed: dict[str, Entry] = {}
    others: list[Entry] = []
    for one in found:
        name = known.get(_key(one.student))
        if name is None and one.loose:  # the wrong file, such as ann.docx
            name = known.get(_key(Path(one.student).stem))
        if name is not None and name not in listed:
            listed[name] = replace(one, student=name, loose=False)
        else:
            others.append(one)
    absent = [name for name in roster if name not in listed]
    notes = []
    if absent:
        notes.append(f"{len(absent)} of {len(roster)} on the roster handed in nothing: "
                     f"{', '.join(absent)}.")
    strangers = [one for one in others if not one.loose]
    if strangers:
        notes.append("Not on the roster, but graded: "
                     f"{', '.join(_maybe(one.student, absent) for one in strangers)}.")
    entries = [listed.get(name, Entry(name, (), ABSENT)) for name in roster]
    return sorted([*entries, *others], key=lambda one: one.student), notes


def _maybe(name: str, absent: Iterable[str]) -> str:
    near = get_close_matches(_key(name), {_key(x): x for x in absent}, n=1, cutoff=0.7)
    found = next((x for x in absent if near and _key(x) == near[0]), None)
    return name if found is None else f"{name} (is it {found}?)"


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
