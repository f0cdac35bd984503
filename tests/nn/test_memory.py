"""Memory that arrays freed is there for the arrays to come."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from distlearn.nn import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2 << 20, np.uint8) for _ in range(20)]  # 20 x 2 MiB, written to
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults() * resource.getpagesize())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the call is glibc's")
def test_second_time_the_system_is_asked_for_nothing() -> None:
    def again(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, text=True,
                              stdout=subprocess.PIPE)  # fmt: skip
        return int(done.stdout)

    assert again("free") > 10 << 20  # most of the 40 MiB were given back, and are cleared again
    assert again("keep") < 1 << 20
