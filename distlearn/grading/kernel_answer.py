"""The answer of a kernel: what it wrote, and rules about what the launch is counted in.

A run, as `kernel_program` describes it, is a dict with ``out``, ``counters`` and ``lines``. What a
case wants is a dict too: ``out``, and ``most``, a dict of counters and what they may not exceed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distlearn.grading.answer import Answer, View
from distlearn.grading.array_answer import Array

WORDS = {
    "global_load_sectors": "32-byte sectors read from global memory",
    "global_store_sectors": "32-byte sectors written to global memory",
    "global_sectors": "32-byte sectors read from and written to global memory",
    "global_load_requests": "requests of warps that read global memory",
    "global_store_requests": "requests of warps that write global memory",
    "shared_requests": "requests of warps to shared memory",
    "shared_load_requests": "requests of warps that read shared memory",
    "bank_conflicts": "bank conflicts (wavefronts beyond one a request)",
    "barriers": "barriers at which each block waits",
    "divergent_branches": "branches at which the threads of a warp part",
    "atomic_requests": "requests of warps that are atomics",
    "atomic_conflicts": "conflicts of atomics",
    "clocks": "clocks until the last pipe is done",
}

APART = 5  # sectors of a request of 32 lanes side by side, with 4 bytes each: 4, or 5 if shifted
SCATTERED = ("The threads of a warp use elements far apart, each in a sector of its own: "
             "neighbours in `threadIdx.x` have to use neighbours in memory.")


@dataclass(frozen=True)
class KernelAnswer(Answer):
    """One array, and counters that are not too high.

    Attributes
    ----------
    advice : mapping of str to str
        What to try if a counter is too high.
    scattered : str
        What to try if it is one of sectors, and a request has too many of them.
    """

    advice: Mapping[str, str] = field(default_factory=dict, hash=False)
    scattered: str = SCATTERED
    array: Array = field(default_factory=lambda: Array(tolerance=1e-5))
    noun: str = "a kernel that writes the right numbers"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if not _is_run(got):
            return "What the kernel wrote could not be read."
        return self.array.misfit(got["out"])

    def same(self, got: Any, wanted: Any) -> bool:
        """Whether the array is right and no rule is broken; ``wanted`` may be another run."""
        return (self.array.same(_marked(got["out"]), _marked(wanted["out"]))
                and self._breach(got, wanted) is None)

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if self.array.same(got["out"], wanted["out"]):
            name = self._breach(got, wanted)
            return f"The result is right. {self._advice(got, name or '')}".strip()
        missing = _missing(got["out"])
        if missing and self.array.hint(got["out"], wanted["out"]).startswith("nan"):
            return (f"out[{missing[0]}] is nan, as it was before: no thread has written it, or "
                    "what was written comes from something that was never set.")
        if _whole(got["out"]) and not _whole(wanted["out"]):
            return ("These are whole numbers: is an array in shared memory, or a variable, one of "
                    "integers?")
        return self.array.hint(got["out"], wanted["out"])

    def slight(self, got: Any, wanted: Any) -> bool:
        """Whether only a counter is wrong."""
        return self.array.same(got["out"], wanted["out"])

    def _advice(self, got: Any, name: str) -> str:
        requests = got["counters"].get(name.replace("_sectors", "_requests"), 0)
        if name.endswith("_sectors") and got["counters"].get(name, 0) > APART * requests > 0:
            return self.scattered
        return self.advice.get(name, "")

    def view(self, got: Any, wanted: Any) -> View:
        """Where the array is wrong; if it is right, the counter that is too high, by line."""
        if got is None:
            return View(None, wanted["out"])
        if not self.array.same(got["out"], wanted["out"]):
            inner = self.array.view(got["out"], wanted["out"])
            return View(inner.got, inner.wanted, f"{inner.part} of out" if inner.part else "out")
        name = self._breach(got, wanted)
        if name is None:  # asked for the picture of a right answer
            return View(got["out"], wanted["out"])
        lines = tuple((number, text, counts.get(name, 0)) for number, text, counts in got["lines"])
        return View(got["counters"].get(name, 0), wanted["most"][name],
                    f"{WORDS.get(name, name)}; wanted: at most", lines)

    @staticmethod
    def _breach(got: Any, wanted: Any) -> str | None:
        """The first counter that is too high."""
        counters = got.get("counters", {})
        return next((name for name, limit in wanted.get("most", {}).items()
                     if counters.get(name, 0) > limit), None)


def _marked(out: Any) -> Any:
    """With infinity for what was never written: of two runs it is the same."""
    if isinstance(out, list | tuple):
        return [_marked(item) for item in out]
    return math.inf if out != out else out


def _whole(out: Any) -> bool:
    """Whether all numbers are whole."""
    if isinstance(out, list | tuple):
        return all(_whole(item) for item in out)
    return math.isfinite(out) and out == int(out)


def _missing(out: Any, index: tuple[int, ...] = ()) -> list[str]:
    """Indices at which there is nan."""
    if isinstance(out, list | tuple):
        return [found for k, item in enumerate(out) for found in _missing(item, (*index, k))]
    return [", ".join(map(str, index))] if out != out else []


def _is_run(got: Any) -> bool:
    """Whether it has the form of a run; it comes from the process with the learner's code."""
    if type(got) is not dict:
        return False
    return (got.keys() == {"out", "counters", "lines"} and _counts(got["counters"])
            and type(got["lines"]) is list
            and all(type(x) is list and len(x) == 3 and type(x[0]) is int and type(x[1]) is str
                    and _counts(x[2]) for x in got["lines"]))


def _counts(value: Any) -> bool:
    return type(value) is dict and all(
        type(name) is str and type(count) is int for name, count in value.items())
