"""A pipeline schedule as data: what each rank does, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from distlearn.pipeline.action import Action

Ranks = tuple[tuple[Action, ...], ...]
Table = tuple[tuple[int, ...], ...]


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

    @property
    def stages(self) -> int:
        """Number of stages of the whole pipeline, ``p * v``."""
        return self.p * self.v

    def home(self, stage: int, microbatch: int) -> int:
        """The rank that does ``stage`` of ``microbatch``."""
        if not self.direction:
            return self.placement[stage]
        return self.copies[self.direction[microbatch]][stage]

    def held(self, rank: int) -> tuple[int, ...]:
        """The stages whose weights ``rank`` holds, one entry per copy held."""
        return tuple(stage for copy in self.copies or (self.placement,)
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
        header: dict[str, str] = {}
        lists: dict[str, tuple[int, ...]] = {}
        tables: dict[str, list[tuple[object, ...]]] = {word: [] for word in _TABLES.values()}
        for number, raw in enumerate(text.strip().splitlines(), start=1):
            line = raw.strip()
            try:
                word, _, rest = line.partition(" ")
                if word == "schedule":
                    name, *sizes = rest.split()
                    pairs = (size.partition("=") for size in sizes)
                    header = {"name": name, **{key: value for key, _, value in pairs}}
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
                raise ValueError(f"schedule text, line {number}: {line!r}: {error}") from None
        missing = {"name", "p", "m", "v"} - header.keys()
        ranks = tables["rank"]
        if missing or "placement" not in lists or not ranks:
            raise ValueError(
                "schedule text needs a 'schedule NAME p= m= v=' line, a 'placement' line and one "
                f"'rank R:' line per rank; got {len(ranks)} rank lines, header {header}"
            )
        p, m, v, slices, batches = (
            int(header.get(key, 1)) for key in ("p", "m", "v", "slices", "batches"))
        if len(ranks) != p or len(lists["placement"]) != p * v:
            raise ValueError(
                f"schedule text says p={p} v={v} but has {len(ranks)} rank lines "
                f"and {len(lists['placement'])} placed stages"
            )
        rows: dict[str, object] = {
            plural: tuple(tables[word]) for plural, word in _TABLES.items()}
        return cls(header["name"], p, m, v, slices=slices, batches=batches,
                   **lists, **rows)  # type: ignore[arg-type]


_TABLES = {"ranks": "rank", "versions": "versions", "steps": "steps", "copies": "copy"}
