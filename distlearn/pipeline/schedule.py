"""A pipeline schedule as data: what each rank does, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from distlearn.pipeline.action import Action

Ranks = tuple[tuple[Action, ...], ...]


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
        ``placement[stage]`` is the rank that holds the stage.
    ranks : tuple of tuple of Action
        ``ranks[r][k]`` is the k-th action of rank r.
    versions : tuple of tuple of int, optional
        For asynchronous schedules: ``versions[r][k]`` is the weight version that action k of rank
        r reads (version n has seen n updates). Empty for synchronous schedules.

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
    versions: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def stages(self) -> int:
        """Number of stages of the whole pipeline, ``p * v``."""
        return self.p * self.v

    def to_text(self) -> str:
        """Write the schedule as text, one line per rank; `from_text` reads it back."""
        lines = [
            f"schedule {self.name} p={self.p} m={self.m} v={self.v}",
            "placement " + " ".join(map(str, self.placement)),
        ]
        for r, actions in enumerate(self.ranks):
            lines.append(f"rank {r}: " + " ".join(map(str, actions)))
        for r, versions in enumerate(self.versions):
            lines.append(f"versions {r}: " + " ".join(map(str, versions)))
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
        placement: tuple[int, ...] | None = None
        ranks: list[tuple[Action, ...]] = []
        versions: list[tuple[int, ...]] = []
        for number, raw in enumerate(text.strip().splitlines(), start=1):
            line = raw.strip()
            try:
                word, _, rest = line.partition(" ")
                if word == "schedule":
                    name, *sizes = rest.split()
                    pairs = (size.partition("=") for size in sizes)
                    header = {"name": name, **{key: value for key, _, value in pairs}}
                elif word == "placement":
                    placement = tuple(map(int, rest.split()))
                elif word in ("rank", "versions"):
                    index, _, body = rest.partition(":")
                    rows: list[tuple[Action, ...]] | list[tuple[int, ...]]
                    if word == "rank":
                        rows = ranks
                        ranks.append(tuple(map(Action.parse, body.split())))
                    else:
                        rows = versions
                        versions.append(tuple(map(int, body.split())))
                    if int(index) != len(rows) - 1:
                        raise ValueError(f"expected {word} {len(rows) - 1}")
                elif line:
                    raise ValueError("expected 'schedule', 'placement', 'rank' or 'versions'")
            except ValueError as error:
                raise ValueError(f"schedule text, line {number}: {line!r}: {error}") from None
        missing = {"name", "p", "m", "v"} - header.keys()
        if missing or placement is None or not ranks:
            raise ValueError(
                "schedule text needs a 'schedule NAME p= m= v=' line, a 'placement' line and one "
                f"'rank R:' line per rank; got {len(ranks)} rank lines, header {header}"
            )
        p, m, v = (int(header[key]) for key in ("p", "m", "v"))
        if len(ranks) != p or len(placement) != p * v:
            raise ValueError(
                f"schedule text says p={p} v={v} but has {len(ranks)} rank lines "
                f"and {len(placement)} placed stages"
            )
        return cls(header["name"], p, m, v, placement, tuple(ranks), tuple(versions))
