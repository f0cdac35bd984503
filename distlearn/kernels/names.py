"""What a name in a kernel stands for: the front end that both executors share.

A name that the function assigns or takes as a parameter is *local*; anything else is resolved once,
before the launch, as numba freezes globals when it compiles.
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from distlearn.kernels.dialect import MATH_OF, Name
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel

SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES = ("ballot_sync", "all_sync", "any_sync", "activemask")
BARRIERS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or")
# Memory is one here: what a thread has written, the others see at once.
FENCES = ("threadfence", "threadfence_block", "threadfence_system")
BITS = ("popc", "ffs")
CASTS = {ml_dtypes.bfloat16: ml_dtypes.bfloat16, np.float16: np.float16,
         np.float32: np.float32, np.float64: np.float64, float: np.float64,
         np.int32: np.int32, np.int64: np.int64, int: np.int64, bool: np.bool_, np.int8: np.int8,
         np.int16: np.int16, np.uint8: np.uint8, np.uint16: np.uint16, np.uint32: np.uint32}
STORES = ("intrinsics.store2", "intrinsics.store4", "intrinsics.wmma.store_matrix_sync")


def refuse(node: ast.AST, what: str) -> NoReturn:
    """The error for what kernels here cannot contain."""
    raise KernelError("unsupported", what, line=getattr(node, "lineno", 0))


def local_names(tree: ast.FunctionDef) -> frozenset[str]:
    """Parameters, and every name that the function assigns."""
    names = {a.arg for a in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def resolve(kernel: Kernel, local: frozenset[str], node: ast.expr) -> Any:
    """What a name or attribute chain without local parts stands for; None if it has local parts.

    Returns a number, tuple, type, function, `Kernel`, or a `Name` whose repr is its path
    ("cuda.threadIdx.x").
    """
    if isinstance(node, ast.Name):
        if node.id in local:
            return None
        try:
            return kernel.lookup(node.id)
        except NameError as error:
            refuse(node, str(error))
    if isinstance(node, ast.Attribute):
        owner = resolve(kernel, local, node.value)
        if owner is None:
            return None
        try:
            return getattr(owner, node.attr)
        except AttributeError:
            refuse(node, f"{ast.unparse(node)} does not exist")
    return None


def item_size(kernel: Kernel, local: frozenset[str], node: ast.Call) -> int:
    """Bytes of an element of the array that a call of ``shared.array`` declares."""
    kinds = [k.value for k in node.keywords if k.arg == "dtype"] + node.args[1:2]
    kind = resolve(kernel, local, kinds[0]) if kinds else None
    if kind not in CASTS:
        refuse(node, "shared.array takes a shape and a type known before the launch")
    return int(np.dtype(CASTS[kind]).itemsize)


def constant(value: Any, node: ast.AST) -> Any:
    """A frozen global or literal as a kernel sees it: int, or float64 as in numba."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        if not -1 << 63 <= value < 1 << 63:
            refuse(node, f"{value} needs more than 64 bits")
        return int(value)
    if isinstance(value, np.floating | ml_dtypes.bfloat16) and not isinstance(value, float):
        return value
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, tuple):
        return tuple(constant(item, node) for item in value)
    if value in CASTS or value is None or isinstance(value, str):
        return value
    return refuse(node, f"{getattr(node, 'id', None) or ast.unparse(node)!r} is a "
                  f"{type(value).__name__}, which a kernel cannot use as a value")


def bits(name: str, value: int) -> int:
    """``cuda.popc`` and ``cuda.ffs`` of a 64-bit integer.

    >>> bits("popc", -1), bits("ffs", 12)
    (64, 3)
    """
    return (value & (1 << 64) - 1).bit_count() if name == "popc" else (value & -value).bit_length()


def path_of(value: Any) -> str:
    """``"threadIdx.x"`` for ``cuda.threadIdx.x``; "" for what is no name of the dialect."""
    return repr(value).removeprefix("cuda.") if isinstance(value, Name) else ""


def math_name(function: Any) -> str:
    """``"sqrt"`` for ``math.sqrt`` and ``np.sqrt``; "" for other functions."""
    try:
        if function in MATH_OF:
            return MATH_OF[function]
    except TypeError:
        return ""
    return function.__name__ if isinstance(function, np.ufunc) and function.__name__ in (
        "sqrt", "exp", "log", "sin", "cos", "tanh") else ""
