"""A table of computed values, for the pages of the book and for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"[-+−]?\d")  # how a cell begins that is set to the right
_NOTHING = ("", "–")  # cells that say nothing about their column


@dataclass(frozen=True)
class Table:
    """A Markdown table. A notebook shows it rendered; printed, it is readable as it is."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __str__(self) -> str:
        return self.markdown


def table(header: str, rows: Iterable[Sequence[object]]) -> Table:
    """Set rows of values as a table.

    Columns of numbers are aligned to the right, all others and the first to the left.

    Parameters
    ----------
    header : str
        The headings, with `` | `` between them. Headings and cells may hold Markdown.
    rows : iterable of sequences
        A row has one cell for each heading. Floats are written with four significant digits, all
        else by ``str``.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If a row has more or fewer cells than there are headings.

    Examples
    --------
    >>> print(table("schedule | idle", [["1f1b", 3.0], ["zb_h1", 1 / 3]]))
    | schedule | idle |
    | :-- | --: |
    | 1f1b | 3 |
    | zb_h1 | 0.3333 |
    """
    headings = header.split(" | ")
    cells = [[_text(value) for value in row] for row in rows]
    for number, row in enumerate(cells):
        if len(row) != len(headings):
            raise ValueError(f"table needs one cell for each of its {len(headings)} headings; "
                             f"rows[{number}] has {len(row)}: {row}")
    lines = [headings, [_rule(k, [row[k] for row in cells]) for k in range(len(headings))], *cells]
    return Table("\n".join("| " + " | ".join(line) + " |" for line in lines))


def _text(value: object) -> str:
    """A cell; a bar inside it would end it."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", r"\|")


def _rule(k: int, column: list[str]) -> str:
    """What the line below the headings says of column ``k``."""
    said = [text for text in column if text not in _NOTHING]
    return "--:" if k and said and all(map(_NUMBER.match, said)) else ":--"
