"""Launch a kernel on numpy arrays: results in the arrays, counters in the report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from distlearn.hardware import DeviceSpec
from distlearn.hardware import device as find_device
from distlearn.kernels.counters import Counters
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Dim, Kernel, kernel
from distlearn.kernels.memory import Global, bind
from distlearn.kernels.timing import Prediction, Resources, predict, resources, work

MAX_THREADS = 1024
Executor = Literal["simt", "oracle"]


@dataclass(frozen=True)
class LaunchReport:
    """What a launch did.

    Attributes
    ----------
    kernel : str
    grid, block : tuple of int
        (x, y, z).
    counters : Counters
        By name, and per source line; see `distlearn.kernels.counters`.
    source : str
    first_line : int
        Line of the file on which ``source`` begins.
    prediction : Prediction or None
        Time and occupancy on a device, if one was named.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counters: Counters
    source: str
    first_line: int
    prediction: Prediction | None = None

    def listing(self) -> str:
        """The source, each line with the counters it is charged."""
        return "\n".join(
            f"{number:5d}  {line:<72}" + "  ".join(
                f"{name}={count:,}" for name, count in
                self.counters.by_line.get(number, {}).items())
            for number, line in enumerate(self.source.rstrip().splitlines(), self.first_line)
        )


def launch(function: Kernel, grid: Dim, block: Dim, *arguments: Any,
           executor: Executor = "simt", device: DeviceSpec | str | None = None,
           needs: Resources | None = None) -> LaunchReport:
    """Run ``function`` with ``grid`` blocks of ``block`` threads; arrays change in place.

    Parameters
    ----------
    function : Kernel
    grid, block : int or tuple of 1 to 3 int
        (x, y, z), x fastest.
    arguments : numpy arrays and numbers
    executor : {"simt", "oracle"}
        "simt" runs all threads at once on numpy; "oracle" one thread after another, slowly.
    device : DeviceSpec or str, optional
        Predict the time on this device; see `distlearn.kernels.timing`.
    needs : Resources, optional
        Registers and shared bytes for the prediction, if a compiler has told; else estimated.

    Raises
    ------
    KeyError, ValueError
        For a device that is not in the catalogue, or on which the block does not fit.
    KernelError
        ``kind`` says which rule the kernel breaks, ``line`` where; arrays are then undefined.
    """
    from distlearn.kernels import oracle, simt

    function = kernel(function)
    blocks, threads = dim3(grid, "grid"), dim3(block, "block")
    if math.prod(threads) > MAX_THREADS:
        raise KernelError("bad_launch", f"block {threads} has {math.prod(threads)} threads; a "
                          f"block holds at most {MAX_THREADS}")
    if threads[2] > 64:
        raise KernelError("bad_launch", f"block {threads} has more than 64 threads along z")
    spec = find_device(device) if isinstance(device, str) else device
    bound = bind(function.parameters, arguments, function.name)
    if executor == "oracle":
        tally = oracle.run(function, blocks, threads, bound)
    elif executor == "simt":
        tally = simt.run(function, blocks, threads, bound)
    else:
        raise KernelError("bad_launch", f"executor is {executor!r}; it is 'simt' or 'oracle'")
    counters = tally.freeze()
    prediction = None
    if spec is not None:
        arrays = [value for value in bound if isinstance(value, Global)]
        memory = {array.memory: array.memory.flat.nbytes for array in arrays}
        floats = [a.dtype for a in arrays if a.dtype.kind == "f"]
        prediction = predict(
            work(counters.by_line, math.prod(blocks), math.prod(threads), sum(memory.values())),
            needs or resources(function), spec, floats[0] if floats else np.float32)
    return LaunchReport(function.name, blocks, threads, counters, function.source,
                        function.first_line, prediction)


def dim3(size: Dim, what: str) -> tuple[int, int, int]:
    """A launch size as (x, y, z).

    >>> dim3((4, 2), "grid")
    (4, 2, 1)
    """
    sizes = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(sizes) <= 3 or not all(
            isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes):
        raise KernelError("bad_launch", f"{what} is {size!r}; it is 1 to 3 positive integers")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
