"""CUDA C on the same executors: the subset that teaching kernels use, hosts and all.

``load(text)["kernel"][grid, block](*arrays)`` launches a kernel, ``load(text).run()`` runs
``main``. A kernel becomes Python in ``numba.cuda``'s spelling whose lines are those of the C source
(``load(text)["kernel"].prepare(grid, block, *arguments)[0].python`` shows it); host code is
interpreted over a memory in which host and device are apart.

Understood
    Comments, macros, ``#if``; arithmetic types, structures, pointers, arrays; ``__global__``,
    ``__device__``, ``__host__``, ``__shared__`` (``extern`` too, as arrays of several types),
    ``__constant__``; all statements but ``goto`` and cases that fall through; atomics, shuffles
    (of parts of a warp too), votes, matches, ``float4``, ``half``, bits of floats; launches; the
    runtime's functions for memory and errors; ``printf`` on the host.
Refused, each by name, with file, line and reason
    C++ but for default arguments (templates, classes, references, lambdas, ``nvcuda::wmma``,
    cooperative groups); ``printf`` in a kernel; clocks and events; managed memory; memory of a
    kernel read as another type, but for dynamic shared memory; pairs of halves and bfloat16;
    recursion on the device.
Known differences
    Constant memory is counted as global memory: its cache is not modelled. A loop ``for (i = a;
    i < b; i += c)`` whose bounds stay the same is a ``range``: its bounds are loaded once, its test
    is no counted branch; any other loop is a ``while``. Signed overflow that C leaves undefined is
    "int32_overflow" where a value is used, unless it has come back into range by then. Unsigned
    64-bit integers are right below 2**63. Multiply and add round separately. ``rand`` is not any
    system's, ``time`` is always 0.
"""

from __future__ import annotations

from distlearn.kernels.cuda_c.errors import HostError, SourceError
from distlearn.kernels.cuda_c.kernel import CudaKernel
from distlearn.kernels.cuda_c.program import Program, Run, load

__all__ = ["CudaKernel", "HostError", "Program", "Run", "SourceError", "load"]
