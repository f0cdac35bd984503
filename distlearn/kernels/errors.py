"""What can be wrong with a kernel, each under a name that a test or a learner can rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

KINDS = (
    "out_of_bounds",
    "race",
    "global_race",
    "barrier_divergence",
    "uninitialised_shared_read",
    "misaligned_address",
    "warp_divergence",
    "int32_overflow",
    "division_by_zero",
    "spin_wait",
    "unbound_variable",
    "unsupported",
    "bad_launch",
)


# Returned threads count as missing: the rule of the CUDA C++ Programming Guide for
# __syncthreads() in conditional code.
EXITED = (" (threads that have returned are missing too: compute capability 7.0 and later do not "
          "wait for them, but the programming model asks for all)")


NO_NUMBERS = "kernels compute with numbers alone"


class Place(TypedDict, total=False):
    """Where in a launch: linear numbers, x fastest."""

    block: int
    thread: int


class KernelError(RuntimeError):
    """A kernel that does what the programming model forbids, or that cannot be run here.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    line : int
        Line of the kernel's source file, 0 when the error belongs to no line (a bad launch).
    block, thread : int or None
        Linear numbers (x fastest) of the first block and of its first thread concerned.
    race_kinds : mapping of str to str
        For races: "RW" (one reads what another writes) and "WW" (two write), each with
        "cross_warp" if any such pair belongs to different warps, else "same_warp".
    """

    def __init__(self, kind: str, message: str, *, line: int = 0, block: int | None = None,
                 thread: int | None = None, race_kinds: Mapping[str, str] | None = None) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message
        self.line = line
        self.block = block
        self.thread = thread
        self.race_kinds = dict(race_kinds or {})

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f" (line {self.line})" if self.line else "")
