"""Play a learner's program of a cube core; say what is in C, and how many clocks it took."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from distlearn.grading.calling import Perform, Trouble
from distlearn.kernels.ascend import AscendError, CubeCore


def performer(function: str, parameters: Sequence[str], device: str) -> Perform:
    """How to play a program: ``perform(program, [A, B])``.

    Returns
    -------
    callable
        It returns a dict as `kernel_program.performer` does; its counters are ``clocks``, until the
        last pipe is done, and ``L1_bytes`` and the like, what the program has allocated.
    """
    def perform(program: Any, args: list[Any]) -> dict[str, Any]:
        A, B = (np.array(rows, np.float16) for rows in args)
        C = np.full((A.shape[0], B.shape[1]), np.nan, np.float32)
        core = CubeCore(device)
        try:
            program(core, A, B, C)
            timeline = core.run()
        except AscendError as error:
            code = getattr(program, "__code__", None)
            frames = [frame for frame in traceback.extract_tb(error.__traceback__)
                      if code is not None and frame.filename == code.co_filename]
            place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
            raise Trouble("kernel", f"{error.kind}: {error}", place) from None
        fill = {f"{name}_bytes": size for name, size in timeline.fill.items() if size}
        return {"out": C, "counters": {"clocks": timeline.makespan, **fill}, "lines": []}

    return perform
