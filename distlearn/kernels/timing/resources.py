"""What a kernel takes of an SM for each thread and block: registers, shared memory."""

from __future__ import annotations

import ast
import math
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.kernel import Kernel

BASE_REGISTERS = 32       # indices, addresses, counters: what nvcc gives kernels without arrays
REGISTERS_PER_WORD = 1.2  # of a thread's own arrays: the elements, and some for loads in flight
MOST_REGISTERS = 255
# Calls that make a fragment of a matrix: 8 registers in each lane.
FRAGMENTS = ("intrinsics.wmma.fill_fragment", "intrinsics.wmma.load_matrix_sync",
             "intrinsics.wmma.load_matrix_sync_transposed")


class Resources(NamedTuple):
    """Registers of a thread (an estimate: a compiler decides) and shared bytes of a block."""

    registers_per_thread: int
    shared_bytes_per_block: int


def resources(kernel: Kernel, dynamic_bytes: int = 0) -> Resources:
    """Read a kernel's arrays from its source.

    Shared memory is exact: what the source says, and the launch's ``dynamic_bytes``. Registers are
    a rule of thumb: 32 for what every kernel needs, and 1.2 for each 4-byte word of its local
    arrays, at most 255. That fits the GEMM ladder compiled by numba-cuda 0.30 and ptxas 12.9 for
    compute capability 8.0 to 9.0: its 8 x 8 register tiles get 102 to 144, the rule says 128.
    """
    local, shared = _arrays(kernel, set())
    registers = BASE_REGISTERS + REGISTERS_PER_WORD * local / 4
    return Resources(min(MOST_REGISTERS, math.ceil(registers)), shared + dynamic_bytes)


def _arrays(kernel: Kernel, seen: set[Kernel]) -> tuple[int, int]:
    """Bytes of local and shared arrays, of the kernel and the device functions it calls."""
    known, found = names.local_names(kernel.tree), [0, 0]
    for node in ast.walk(kernel.tree):
        if not isinstance(node, ast.Call):
            continue
        callee = names.resolve(kernel, known, node.func)
        path = names.path_of(callee)
        if path in ("local.array", "shared.array"):
            shape, dtype = (_value(kernel, known, argument) for argument in
                            (*node.args, *(k.value for k in node.keywords)))
            sizes = shape if isinstance(shape, tuple) else (shape,)
            bytes_ = math.prod(sizes) * np.dtype(dtype).itemsize if dtype and None not in sizes \
                else 0
            found[path == "shared.array"] += bytes_
        elif path in FRAGMENTS:
            found[0] += 32
        elif isinstance(callee, Kernel) and callee not in seen:
            inner = _arrays(callee, seen | {kernel, callee})
            found = [a + b for a, b in zip(found, inner, strict=True)]
    return found[0], found[1]


def _value(kernel: Kernel, known: frozenset[str], node: ast.expr) -> Any:
    """The value of a constant expression; None for what is known only in a launch."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_value(kernel, known, item) for item in node.elts)
    return names.resolve(kernel, known, node)
