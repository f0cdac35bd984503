"""Where the memory of activations goes between two training steps."""

from __future__ import annotations

import ctypes

# <malloc.h> of glibc: which parameter mallopt() sets.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20  # bytes of one array; glibc takes no more for the second
MOST_KEPT = 2**31 - 1  # bytes in all, the largest int


def keep_freed_memory() -> bool:
    """Have this process keep the memory of freed arrays below 32 MiB for the arrays to come.

    Every training step makes and frees the same activations. The C library hands much of that
    memory back to the system after each step, and the system must clear every page before it
    gives it again: a tenth of the time of a small model's step. PyTorch keeps the memory of a GPU
    in the same way, in its caching allocator. The process then stays as large as it once was.

    Returns
    -------
    bool
        Whether the C library took the setting; False where it is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # Windows and macOS have no such call
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(TRIM_THRESHOLD, MOST_KEPT))
