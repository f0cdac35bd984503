"""Share pieces of an array out among threads: as many as BLAS uses for a matrix product.

numpy lets go of Python's lock inside its loops, so threads of one process really run at once.
`OPENBLAS_NUM_THREADS`, set before numpy is imported, says how many threads there are; ranks that
are processes are started with one each. With another BLAS than the wheels' OpenBLAS there is one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def share(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[work(item) for item in items]``, each thread taking the next item when it is free.

    The results are the same bits for any number of threads, if ``work`` writes to places of its
    own only: what an item is does not depend on who does it. One item is done at once, here.

    Examples
    --------
    >>> x = np.arange(6.0)
    >>> share(lambda part: float(x[part].sum()), [slice(0, 4), slice(4, 6)])
    [6.0, 9.0]
    """
    threads = thread_count()
    if threads == 1:
        return [work(item) for item in items]
    with blas_threads(1):  # its own threads would fight with these for the cores, even when idle
        if len(items) < 2:
            return [work(item) for item in items]
        results: dict[int, Result] = {}
        left = iter(range(len(items)))  # its next() is one step under Python's lock: nobody is
        # given the same number twice

        def take() -> None:
            for number in left:
                results[number] = work(items[number])

        helpers = min(threads, len(items)) - 1
        # a context of its own: np.errstate holds in it as it does here
        others = [_pool(threads - 1).submit(copy_context().run, take) for _ in range(helpers)]
        try:
            take()
        finally:
            found = [other.exception() for other in others]  # waits: they write to shared arrays
        for error in filter(None, found):
            raise error
        return [results[number] for number in range(len(items))]


def thread_count() -> int:
    """Threads that BLAS uses now, and `share` with it."""
    calls = _openblas()
    return calls[0]() if calls else 1


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Use so many threads inside the ``with`` block; one if BLAS cannot be asked.

    Raises
    ------
    ValueError
        If ``count`` is below 1.
    """
    if count < 1:
        raise ValueError(f"count of threads must be at least 1; got {count}")
    calls = _openblas()
    if calls is None:
        yield
        return
    get, put = calls
    before = get()
    put(count)
    try:
        yield
    finally:
        put(before)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="distlearn-nn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads stay behind in a fork


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """The calls that read and set OpenBLAS's number of threads, if numpy is built on it."""
    # no public name leads to the extension that BLAS is linked with
    core = np._core._multiarray_umath  # type: ignore[attr-defined]
    try:
        library = ctypes.CDLL(core.__file__)  # finds what the extension is linked with, too
    except OSError:
        return None
    for form in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads",
                 "openblas_{}_num_threads64_", "openblas_{}_num_threads"):  # fmt: skip
        if hasattr(library, form.format("get")):
            return getattr(library, form.format("get")), getattr(library, form.format("set"))
    return None
