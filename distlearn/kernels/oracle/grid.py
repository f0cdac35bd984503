"""All blocks of a launch, one after another but for atomics, and the first error of them all."""

from __future__ import annotations

import gc
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np

from distlearn.kernels.counters import Tally
from distlearn.kernels.errors import KernelError
from distlearn.kernels.inference import of_value
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import Memory
from distlearn.kernels.oracle.block import LATER, Block, Located
from distlearn.kernels.oracle.rewrite import rewrite
from distlearn.kernels.oracle.thread import Key
from distlearn.kernels.shapes import check_shapes
from distlearn.kernels.unify import unified

Dim3 = tuple[int, int, int]


class Grid:
    """What blocks share: the kernel's code, the tally, who touched which global element."""

    def __init__(self, kernel: Kernel, grid: Dim3, block: Dim3, shared_bytes: int,
                 arguments: list[Any]) -> None:
        check_shapes(kernel)
        self.trees = unified(kernel, tuple(map(of_value, arguments)))
        self.shared_bytes = shared_bytes
        self.kernel, self.shape, self.block_shape = kernel, grid, block
        self.tally = Tally()
        self.lines: list[int] = []
        self.changes: Counter[int] = Counter()  # of a memory, by its address
        self.memories: dict[int, Memory] = {}  # those touched, by number
        self.touched: defaultdict[tuple[int, int], dict[tuple[int, str], int]] = defaultdict(dict)
        self._codes: dict[Kernel, tuple[Callable[..., Any], list[int]]] = {}

    def code(self, kernel: Kernel) -> tuple[Callable[..., Any], list[int]]:
        """The rewritten kernel or device function."""
        if kernel not in self._codes:
            self._codes[kernel] = rewrite(kernel, self.trees.get(kernel))
        return self._codes[kernel]

    def places(self, at: Dim3) -> list[dict[str, int]]:
        """Coordinates of the threads of the block at ``at`` (x, y, z), x fastest."""
        fixed = {f"{name}.{axis}": triple[i]
                 for name, triple in (("blockIdx", at), ("blockDim", self.block_shape),
                                      ("gridDim", self.shape))
                 for i, axis in enumerate("xyz")}
        x, y, z = self.block_shape
        return [{**fixed, "threadIdx.x": i, "threadIdx.y": j, "threadIdx.z": k}
                for k, j, i in product(range(z), range(y), range(x))]

    def race_between_blocks(self) -> KernelError | None:
        """One block writes an element and another reads or writes it."""
        for (number, flat), who in sorted(self.touched.items()):
            for (block, op), line in who.items():
                for (other, other_op), other_line in who.items():
                    if (op == "W" and other != block) or (
                            op == "A" and other_op != "A" and other != block):
                        kind = "RW" if "R" in (op, other_op) else "WW"
                        return KernelError(
                            "global_race", f"blocks {block} ({op}, line {line}) and {other} "
                            f"({other_op}, line {other_line}) touch "
                            f"{self.memories[number].element(flat)}",
                            line=max(line, other_line), block=min(block, other),
                            race_kinds={kind: "cross_warp"})
        return None


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cycle collector: it would look at millions of live tuples again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def run(kernel: Kernel, grid: Dim3, block: Dim3, arguments: list[Any],
        shared_bytes: int = 0) -> Tally:
    """Run a launch thread by thread; ``shared_bytes`` of dynamic shared memory a block.

    Raises
    ------
    KernelError
        The error that a machine in lockstep would come to first.
    """
    launch = Grid(kernel, grid, block, shared_bytes, arguments)
    failures: list[tuple[tuple[float, ...], int, int, KernelError]] = []
    x, y, z = grid
    waiting: list[tuple[Key, int]] = []  # a heap of the blocks that come to an atomic next
    running: dict[int, Generator[Key, None, Located | None]] = {}

    def advance(number: int) -> None:
        try:
            heapq.heappush(waiting, (next(running[number]), number))
        except StopIteration as end:
            del running[number]
            if end.value is not None:
                key, order, error = end.value
                failures.append((key, order if order < 0 else order // LATER, number, error))

    with np.errstate(all="ignore"), _uncollected():
        for number, (k, j, i) in enumerate(product(range(z), range(y), range(x))):
            running[number] = Block(launch, number, launch.places((i, j, k))).run(arguments)
            advance(number)
        while waiting:
            advance(heapq.heappop(waiting)[1])
    if failures:
        raise min(failures, key=lambda f: f[:3])[3]
    race = launch.race_between_blocks()
    if race is not None:
        raise race
    return launch.tally
