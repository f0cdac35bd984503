"""The cube core's timeline: four pipes, their buffers, and flags that may be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from distlearn.hardware.ai_core import ai_core
from distlearn.plots.numbers import percent
from distlearn.widgets.cube_records import (
    CHUNK,
    CORE,
    DEPTH,
    FORGOTTEN,
    PIPES,
    STEPS,
    TILES,
    record,
    records,
)
from distlearn.widgets.panel import Panel, View, choice, one_of, switch, whole


class CubeTimeline(Panel):
    """Two tiles of a matrix product on one cube core: when each pipe works, and whether it may.

    Parameters
    ----------
    tile : str
        Rows x columns of a tile of C: one of ``64 x 64``, ``128 x 128``, ``128 x 256``,
        ``256 x 256``.
    step : int
        Depth of a step from L0: 64 or 128.
    l1_double, l0_double : bool
        Whether L1 and L0 have two buffers each, so that a pipe fills one while the next empties
        the other.
    forget : str
        The flags that the program lacks, one of ``distlearn.widgets.cube_records.FORGOTTEN``.
    event : int
        The instruction that is chosen at first, in order of start.

    Raises
    ------
    ValueError
        For a value that is none of these.

    Examples
    --------
    >>> [CubeTimeline(l0_double=double).view().numbers[0][1] for double in (False, True)]
    ['8,254', '7,078']
    >>> CubeTimeline(forget="M for FIXP: tile is done").status[:39]
    'race: L0C bytes 0 to 65,536: fixpipe, i'
    """

    label = "Pipes of a cube core over time"
    scripts: ClassVar[Sequence[str]] = ("numbers.js", "player.js", "panel.js", "cube_timeline.js")
    mount = "mountCubeTimeline"
    picture = "Pipes over time, a box an instruction; left and right choose an instruction"
    hint = ("Click an instruction, or use ← → to go through them; Home and End go to the ends. "
            "Where a flag is missing, this is what the pipes would do all the same.")

    def __init__(self, tile: str = "128 x 128", step: int = 64, l1_double: bool = True,
                 l0_double: bool = True, forget: str = "no flag", event: int = 0) -> None:
        super().__init__(tile=one_of("tile", tile, TILES), step=one_of("step", step, STEPS),
                         l1=bool(l1_double), l0=bool(l0_double),
                         forget=one_of("forget", forget, FORGOTTEN), event=event)
        whole("event", event, 0, max(0, len(self._events()) - 1))

    def controls(self) -> Sequence[str]:
        """Tile, step, buffers, flags."""
        s = self.setting
        return (choice("tile", s["tile"], TILES, "of C"), choice("step", s["step"], STEPS, "depth"),
                switch("l1", s["l1"], "two buffers"), switch("l0", s["l0"], "two buffers"),
                choice("forget", s["forget"], list(FORGOTTEN)))

    def _record(self) -> dict[str, Any]:
        s = self.setting
        return record(s["tile"], s["step"], s["l1"], s["l0"], s["forget"])

    def _events(self) -> list[tuple[int, int, int]]:
        """Start, number of the pipe, end; by start."""
        found = []
        for number, pipe in enumerate(PIPES):
            at, row = 0, self._record()["rows"][pipe]
            for idle, busy in zip(row[::2], row[1::2], strict=True):
                found.append((at + idle, number, at + idle + busy))
                at += idle + busy
        return sorted(found)

    def view(self) -> View:
        """The timeline in numbers."""
        one, events, s = self._record(), self._events(), self.setting
        span = max((end for *_, end in events), default=0)
        busy = {pipe: sum(row[1::2]) for pipe, row in one["rows"].items()}
        most = max(busy, key=lambda pipe: busy[pipe])
        share = percent(busy["M"] / span) if span else "none"
        core = ai_core(CORE)
        fill = ", ".join(f"{name} {size // 1024} of {core.buffers[name] // 1024}"
                         for name, size in one["fill"].items())
        chosen = "nothing runs."
        if events:
            start, number, end = events[s["event"]]
            pipe = list(PIPES)[number]
            chosen = (f"instruction {s['event'] + 1} of {len(events)}, {PIPES[pipe]} on {pipe}, "
                      f"clocks {start:,} to {end:,}.")
        return View(
            (("clocks", f"{span:,}", f"two tiles, k = {DEPTH}, {CHUNK} of it in L1 at a time"),
             ("cube busy", share, f"{busy['M']:,} clocks on M"),
             ("busiest pipe", most if span else "none", f"{busy[most]:,} clocks"),
             ("KiB in use", str(sum(one["fill"].values()) // 1024), fill)),
            f"Tiles of {s['tile']} in steps of {s['step']}: {span:,} clocks, cube busy {share}. "
            f"Chosen: {chosen}", one["message"])

    def static_data(self) -> dict[str, Any]:
        """Also the recorded timelines of all settings, and the capacities."""
        return {**super().static_data(), "pipes": PIPES, "records": records(), "depth": DEPTH,
                "chunk": CHUNK, "capacity": {**ai_core(CORE).buffers}}


