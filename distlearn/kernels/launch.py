"""Launch a kernel on numpy arrays: results in the arrays, counters in the report."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from distlearn.hardware import DeviceSpec
from distlearn.hardware import device as find_device
from distlearn.kernels.counters import Counters, Flow
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Dim, Kernel, kernel
from distlearn.kernels.memory import Global, bind, copied
from distlearn.kernels.report import LaunchReport
from distlearn.kernels.shapes import check_dynamic
from distlearn.kernels.timing import Resources, predict, resources, work

__all__ = ["LaunchReport", "dim3", "launch"]

MAX_THREADS = 1024
Executor = Literal["simt", "oracle"]
Dim3 = tuple[int, int, int]


def launch(function: Kernel, grid: Dim, block: Dim, *arguments: Any,
           shared_bytes: int = 0, executor: Executor = "simt",
           device: DeviceSpec | str | None = None,
           needs: Resources | None = None,
           backend: Literal["numpy", "cuda"] = "numpy") -> LaunchReport:
    """Run ``function`` with ``grid`` blocks of ``block`` threads; arrays change in place.

    Parameters
    ----------
    function : Kernel
    grid, block : int or tuple of 1 to 3 int
        (x, y, z), x fastest.
    arguments : numpy arrays and numbers
    shared_bytes : int
        Dynamic shared memory of a block: what ``cuda.shared.array(0, dtype)`` lies in. With the
        static arrays at most what some GPU of the catalogue has.
    executor : {"simt", "oracle"}
        "simt" runs all threads at once on numpy; "oracle" one thread after another, slowly.
    device : DeviceSpec or str, optional
        Predict the time on this device; see `distlearn.kernels.timing`.
    needs : Resources, optional
        Registers and shared bytes for the prediction, if a compiler has told; else estimated.
    backend : {"numpy", "cuda"}
        "cuda" compiles the kernel with numba-cuda and runs it on this machine's GPU: the report has
        a measured time, no counters.

    Raises
    ------
    KeyError, ValueError
        For a device that is not in the catalogue, or on which the block does not fit.
    ImportError
        ``backend="cuda"`` without numba-cuda.
    KernelError
        ``kind`` says which rule the kernel breaks, ``line`` where; arrays are then undefined.
    """
    function = kernel(function)
    blocks, threads = dim3(grid, "grid"), dim3(block, "block")
    if math.prod(threads) > MAX_THREADS:
        raise KernelError("bad_launch", f"block {threads} has {math.prod(threads)} threads; a "
                          f"block holds at most {MAX_THREADS}")
    if threads[2] > 64:
        raise KernelError("bad_launch", f"block {threads} has more than 64 threads along z")
    check_dynamic(shared_bytes)
    spec = find_device(device) if isinstance(device, str) else device
    bound = bind(function.parameters, arguments, function.name)
    if backend == "cuda":
        if executor != "simt" or spec is not None:
            raise KernelError("bad_launch", "backend='cuda' neither counts nor predicts; leave "
                              "executor and device out, or backend at 'numpy'")
        from distlearn.kernels import numba_cuda

        seconds = numba_cuda.run(function, blocks, threads, arguments, shared_bytes)
        return LaunchReport(function.name, blocks, threads, Counters({}), function.source,
                            function.first_line, measured_s=seconds)
    if backend != "numpy":
        raise KernelError("bad_launch", f"backend is {backend!r}; it is 'numpy' or 'cuda'")
    compiled = None
    if spec is not None:
        compiled = compiled_counters(function, blocks, threads, copied(bound), shared_bytes)
    counters = _execute(executor, function, blocks, threads, bound, shared_bytes)
    prediction = None
    if spec is not None and compiled is not None:
        arrays = [value for value in bound if isinstance(value, Global)]
        memory = {array.memory: array.memory.flat.nbytes for array in arrays}
        floats = [a.dtype for a in arrays if a.dtype.kind == "f"]
        prediction = predict(
            work({name: n / math.prod(blocks) for name, n in compiled.items()}, math.prod(blocks),
                 math.prod(threads), sum(memory.values())),
            needs or resources(function, shared_bytes), spec, floats[0] if floats else np.float32)
    return LaunchReport(function.name, blocks, threads, counters, function.source,
                        function.first_line, prediction)


def _execute(executor: str, function: Kernel, grid: Dim3, block: Dim3, bound: list[Any],
             shared_bytes: int) -> Counters:
    from distlearn.kernels import oracle, simt

    if executor not in ("simt", "oracle"):
        raise KernelError("bad_launch", f"executor is {executor!r}; it is 'simt' or 'oracle'")
    run = simt.run if executor == "simt" else oracle.run
    return run(function, grid, block, bound, shared_bytes).freeze()


def compiled_counters(function: Kernel, grid: Dim3, block: Dim3, bound: list[Any],
                      shared_bytes: int = 0) -> dict[str, float]:
    """Counters and flow of the compiled kernel: see `distlearn.kernels.simt.compiled`.

    It runs on ``bound``, arguments as `distlearn.kernels.memory.bind` makes them.
    """
    from distlearn.kernels import simt

    flow = Flow()
    counters = simt.run(function, grid, block, bound, shared_bytes, flow).freeze()
    return {**counters, **flow.figures()}


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
