"""Kernels to step through: what makes lanes part, meet, and wait for each other.

They are texts, so that each listing begins at line 1.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from distlearn.kernels import kernels_from_text
from distlearn.kernels.oracle import Recording, record

_BRANCH = """\
def branch(x, y):
    i = cuda.grid(1)
    if i % 2 == 0:
        v = x[i] * 2
    else:
        v = x[i] + 100
    y[i] = v
"""

_LENGTHS = """\
def lengths(start, count):
    i = cuda.grid(1)
    n = start[i]
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    count[i] = steps
"""

_BLOCK_SUM = """\
def block_sum(x, total):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        total[0] = s[0]
"""

_WARP_SUM = """\
def warp_sum(x, total):
    t = cuda.threadIdx.x
    v = x[t]
    for step in range(5):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, 16 >> step)
    if t == 0:
        total[0] = v
"""

_TEXTS = {
    "a branch that divides the warp": (_BRANCH, 32),
    "loops of different length": (_LENGTHS, 32),
    "a sum in shared memory": (_BLOCK_SUM, 64),
    "the same without its barrier": (_BLOCK_SUM.replace("    cuda.syncthreads()\n", "", 1), 64),
    "a sum by shuffles": (_WARP_SUM, 32),
}


@cache
def examples() -> dict[str, Recording]:
    """What each shows, and its recording."""
    found = {}
    for name, (text, threads) in _TEXTS.items():
        (one,) = kernels_from_text(text, f"<{name}>").values()
        x = (np.arange(64) % 8 + 1).astype(np.int64 if text is _LENGTHS else np.float32)
        found[name] = record(one, 1, threads, x, np.zeros(64, x.dtype))
    return found
