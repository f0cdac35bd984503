"""A pipeline schedule as data: what each rank does, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from distlearn.pipeline.action import Action

Ranks = tuple[tuple[Action, ...], ...]
Table = tuple[tuple[int, ...], ...]

LARGEST = 20_000_000  # forward passes of a schedule; some gigabytes of actions


@dataclass(frozen=True)
class Schedule:
    """The order of actions on every rank, made by a pure function and consumed as it is.

    Attributes
    ----------
    name : str
        Name of the schedule, one of ``distlearn.pipeline.NAMES`` or your own.
    p, m, v : int
        Pipeline ranks, microbatches, virtual stages per rank. There are ``p * v`` stages.
    placement : tuple of int
        ``placement[stage]`` is the rank that holds the stage (of the first copy of the model).
    ranks : tuple of tuple of Action
        ``ranks[r][k]`` is the k-th action of rank r.
    versions : tuple of tuple of int, optional
        For asynchronous schedules: ``versions[r][k]`` is the weight version that action k of rank
        r reads (version n has seen n updates). A version that does not exist yet is a predicted
        one. Empty for synchronous schedules.
    steps : tuple of tuple of int, optional
        For asynchronous schedules: ``steps[r][t]`` is how many of its actions rank r has done
        when its optimizer makes version t + 1. Empty: one step, after the last action.
    slices : int
        Into how many slices each microbatch is cut; 1 if sequences are whole.
    copies : tuple of tuple of int, optional
        For schedules with several copies of the model: ``copies[c][stage]`` is the rank that holds
        the stage of copy c; ``copies[0]`` is ``placement``. Empty for one copy.
    direction : tuple of int, optional
        ``direction[i]`` is the copy through which microbatch i travels. Empty for one copy.
    batches : int
        Batches run without a flush; m counts the microbatches of all of them.
    partner : tuple of int, optional
        ``partner[r]`` is the rank to which rank r evicts activations. Empty if nobody does.

    Raises
    ------
    ValueError
        If sizes, tables and lists do not fit each other; `validate` looks at the actions.

    Examples
    --------
    >>> from distlearn.pipeline import build
    >>> schedule = build("1f1b", p=2, m=3)
    >>> print(schedule.to_text())
    schedule 1f1b p=2 m=3 v=1
    placement 0 1
    rank 0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2
    rank 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
    >>> Schedule.from_text(schedule.to_text()) == schedule
    True
    """

    name: str
    p: int
    m: int
    v: int
    placement: tuple[int, ...]
    ranks: Ranks = field(repr=False)
    versions: Table = field(default=(), repr=False)
    steps: Table = field(default=(), repr=False)
    slices: int = 1
    copies: Table = field(default=(), repr=False)
    direction: tuple[int, ...] = field(default=(), repr=False)
    partner: tuple[int, ...] = field(default=(), repr=False)
    batches: int = 1

    def __post_init__(self) -> None:
        if (not isinstance(self.name, str) or self.name.split() != [self.name]
                or not self.name.isprintable()):
            raise ValueError(f"a schedule needs a name without spaces; got {self.name!r}")
        for size in _SIZES:
            value = getattr(self, size)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"a schedule needs {size} to be an integer >= 1; "
                                 f"got {size}={value!r}")
        if self.stages * self.m * self.slices > LARGEST:
            raise ValueError(f"a schedule of p*v={self.stages} stages, m={self.m} microbatches and "
                             f"slices={self.slices} has more than {LARGEST:,} forward passes, too "
                             "many to list")
        p, rank = self.p, f"is not a rank of p={self.p}"
        _check("ranks", self.ranks, p)
        _check("placement", self.placement, self.stages, p, rank)
        for c, copy in enumerate(self.copies):
            _check(f"copies[{c}]", copy, self.stages, p, rank)
        if self.direction:
            _check("direction", self.direction, self.m, len(self.copies), "is not one of the "
                   f"{len(self.copies)} copies")
        if self.partner:
            _check("partner", self.partner, p, p, rank)
        for name in ("versions", "steps"):
            if getattr(self, name):
                _check(name, getattr(self, name), p)
        for r, row in enumerate(self.versions):
            _check(f"versions[{r}]", row, len(self.ranks[r]))

    @property
    def stages(self) -> int:
        """Number of stages of the whole pipeline, ``p * v``."""
        return self.p * self.v

    @property
    def placements(self) -> tuple[tuple[int, ...], ...]:
        """``[copy][stage]``: the rank of each stage, in every copy of the model."""
        return self.copies or (self.placement,)

    def home(self, stage: int, microbatch: int) -> int:
        """The rank that does ``stage`` of ``microbatch``."""
        if not self.direction:
            return self.placement[stage]
        return self.copies[self.direction[microbatch]][stage]

    def held(self, rank: int) -> tuple[int, ...]:
        """The stages whose weights ``rank`` holds, one entry per copy held."""
        return tuple(stage for copy in self.placements
                     for stage, home in enumerate(copy) if home == rank)

    def to_text(self) -> str:
        """Write the schedule as text, one line per rank; `from_text` reads it back."""
        lines = [
            f"schedule {self.name} p={self.p} m={self.m} v={self.v}"
            + (f" slices={self.slices}" if self.slices != 1 else "")
            + (f" batches={self.batches}" if self.batches != 1 else ""),
            "placement " + " ".join(map(str, self.placement)),
        ]
        for word in ("direction", "partner"):
            if getattr(self, word):
                lines.append(f"{word} " + " ".join(map(str, getattr(self, word))))
        for plural, word in _TABLES.items():
            for r, row in enumerate(getattr(self, plural)):
                lines.append(f"{word} {r}: " + " ".join(map(str, row)))
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str) -> Schedule:
        """Read a schedule written by `to_text`.

        Raises
        ------
        ValueError
            Naming the line that is not understood, or the part that is missing.
        """
        if not isinstance(text, str):
            raise ValueError(f"schedule text must be text; got {text!r}")
        header: dict[str, int] = {}
        name = ""
        lists: dict[str, tuple[int, ...]] = {}
        tables: dict[str, list[tuple[object, ...]]] = {word: [] for word in _TABLES.values()}
        for number, raw in enumerate(text.strip().splitlines(), start=1):
            line = raw.strip()
            try:
                word, _, rest = line.partition(" ")
                if word in lists or (word == "schedule" and name):
                    raise ValueError(f"a second line with {word!r}")
                if word == "schedule":
                    name, *sizes = rest.split() or [""]
                    for size in sizes:
                        key, _, value = size.partition("=")
                        if key not in _SIZES or key in header:
                            raise ValueError(f"expected each of {', '.join(_SIZES)} once; "
                                             f"got {size!r}")
                        header[key] = int(value)
                elif word in ("placement", "direction", "partner"):
                    lists[word] = tuple(map(int, rest.split()))
                elif word in tables:
                    index, _, body = rest.partition(":")
                    read = Action.parse if word == "rank" else int
                    tables[word].append(tuple(map(read, body.split())))
                    if int(index) != len(tables[word]) - 1:
                        raise ValueError(f"expected {word} {len(tables[word]) - 1}")
                elif line:
                    raise ValueError("expected 'schedule', 'placement', 'rank', 'versions', "
                                     "'steps', 'copy', 'direction' or 'partner'")
            except ValueError as error:
                raise ValueError(f"schedule text, line {number}: {line[:200]!r}: {error}") from None
        ranks = tables["rank"]
        if not name or {"p", "m", "v"} - header.keys() or "placement" not in lists or not ranks:
            raise ValueError(
                "schedule text needs a 'schedule NAME p= m= v=' line, a 'placement' line and one "
                f"'rank R:' line per rank; got {len(ranks)} rank lines, header {header}"
            )
        p, m, v, slices, batches = (header.get(key, 1) for key in _SIZES)
        if len(ranks) != p or len(lists["placement"]) != p * v:
            raise ValueError(
                f"schedule text says p={p} v={v} but has {len(ranks)} rank lines "
                f"and {len(lists['placement'])} placed stages"
            )
        rows: dict[str, object] = {
            plural: tuple(tables[word]) for plural, word in _TABLES.items()}
        return cls(name, p, m, v, slices=slices, batches=batches,
                   **lists, **rows)  # type: ignore[arg-type]


def _check(name: str, items: Sequence[object], length: int, below: int | None = None,
           else_: str = "") -> None:
    """Whether a list is as long as it has to be, and its entries are integers below a limit."""
    if not isinstance(items, list | tuple) or len(items) != length:
        got = len(items) if isinstance(items, list | tuple) else repr(items)
        raise ValueError(f"a schedule needs {length} entries in {name}; got {got}")
    for index, item in enumerate(items if below is not None else ()):
        if not isinstance(item, int) or not 0 <= item < (below or 0):
            raise ValueError(f"{name}[{index}] = {item!r} {else_}")


_SIZES = ("p", "m", "v", "slices", "batches")
_TABLES = {"ranks": "rank", "versions": "versions", "steps": "steps", "copies": "copy"}
