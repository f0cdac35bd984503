"""Timelines of two tiles on a cube core: tile sizes, buffers, and a flag that is forgotten."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from functools import cache
from typing import Any

import numpy as np

from distlearn.kernels.ascend import AscendError, CubeCore, Tiling
from distlearn.kernels.ascend.gemm import gemm_program
from distlearn.kernels.ascend.timeline import Flag

CORE = "Ascend-910B2"
DEPTH, CHUNK = 512, 256
"""k of the product, and of a chunk in L1."""
TILES = ("64 x 64", "128 x 128", "128 x 256", "256 x 256")
STEPS = (64, 128)
PIPES = {"MTE2": "data_copy", "MTE1": "load_data", "M": "mmad", "FIXP": "fixpipe"}
FORGOTTEN = {
    "no flag": "", "MTE2 for MTE1: chunk is in L1": "MTE2 MTE1",
    "MTE1 for MTE2: chunk is used": "MTE1 MTE2", "MTE1 for M: step is in L0": "MTE1 M",
    "M for MTE1: step is used": "M MTE1", "M for FIXP: tile is done": "M FIXP",
    "FIXP for M: tile has left": "FIXP M", "only to set MTE1 for M": "MTE1 M set",
}
"""What can be forgotten: a pair of pipes, both the set and the wait, or only the set."""


class _Forgetful(CubeCore):
    """A core whose program lacks the flags between two pipes."""

    def __init__(self, forgotten: str) -> None:
        super().__init__(CORE)
        self.forgotten = forgotten.split()

    def _flag(self, name: str, pipe: str, source: str, target: str, event: int) -> None:
        only_set = self.forgotten[2:] and name != "set_flag"
        if [source, target] != self.forgotten[:2] or only_set:
            super()._flag(name, pipe, source, target, event)

    def unchecked(self) -> list[tuple[str, int, int]]:
        """Pipe, start and end of what the pipes would do, whether they may or not.

        It ends where all of them wait for flags.
        """
        queues = {pipe: deque(i for i in self._program if i.pipe == pipe) for pipe in PIPES}
        flags: defaultdict[Flag | None, deque[int]] = defaultdict(deque)
        ends, done, moved = dict.fromkeys(PIPES, 0), [], True
        while moved:
            moved = False
            for pipe, queue in queues.items():
                while queue and (queue[0].name != "wait_flag" or flags[queue[0].flag]):
                    now, moved = queue.popleft(), True
                    if now.name == "wait_flag":
                        ends[pipe] = max(ends[pipe], flags[now.flag].popleft())
                    elif now.name == "set_flag":
                        flags[now.flag].append(ends[pipe])
                    else:
                        done.append((pipe, ends[pipe], ends[pipe] + now.clocks))
                        ends[pipe] += now.clocks
        return done


def key_of(tile: str, step: int, l1: bool, l0: bool, forget: str) -> str:
    """A setting as a page looks it up."""
    return f"{tile}|{step}|{int(l1)}|{int(l0)}|{forget}"


@cache
def record(tile: str, step: int, l1: bool, l0: bool, forget: str) -> dict[str, Any]:
    """Events of each pipe as (clocks idle before, clocks busy), the buffers, and what is wrong."""
    m, n = map(int, tile.split(" x "))
    tiling = Tiling(m, n, step, CHUNK, l1_depth=1 + l1, l0_depth=1 + l0)
    core, message = _Forgetful(FORGOTTEN[forget]), ""
    A, B = np.zeros((2 * m, DEPTH), np.float16), np.zeros((DEPTH, n), np.float16)
    rows: dict[str, list[int]] = {pipe: [] for pipe in PIPES}
    try:
        tiling.check(core.core, "float16")
        gemm_program(core, A, B, np.zeros((2 * m, n), np.float32), tiling, [(0, 0), (m, 0)])
        core.run(compute=False)
    except AscendError as error:
        message = f"{error.kind.replace('_', ' ')}: {error}"
    ends = dict.fromkeys(PIPES, 0)
    for pipe, start, end in core.unchecked():
        rows[pipe] += (start - ends[pipe], end - start)
        ends[pipe] = end
    return {"rows": rows, "fill": tiling.fill("float16"), "message": message}


@cache
def records() -> dict[str, dict[str, Any]]:
    """All settings."""
    return {key_of(*setting): record(*setting) for setting in itertools.product(
        TILES, STEPS, (False, True), (False, True), FORGOTTEN)}
