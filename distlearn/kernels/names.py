"""What a name in a kernel stands for: the front end that both executors share.

A name that the function assigns or takes as a parameter is *local*; anything else is resolved once,
before the launch, as numba freezes globals when it compiles.
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from distlearn.kernels.dialect import ATOMICS, COORDINATES, MATH_OF, Name
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import constant_array

# What `distlearn.kernels.unify` writes into trees.
CONVERSIONS = {"_to_i8": np.int64, "_to_f2": np.float16, "_to_f4": np.float32,
               "_to_f8": np.float64}
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES = ("ballot_sync", "all_sync", "any_sync", "eq_sync", "activemask")
MATCHES = ("match_any_sync", "match_all_sync")
BARRIERS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or")
# Memory is one here: what a thread has written, the others see at once.
FENCES = ("threadfence", "threadfence_block", "threadfence_system")
IGNORED = (*FENCES, "nanosleep")
BITS = ("popc", "ffs", "clz", "brev")
CASTS = {ml_dtypes.bfloat16: ml_dtypes.bfloat16, np.float16: np.float16,
         np.float32: np.float32, np.float64: np.float64, float: np.float64,
         np.int32: np.int32, np.int64: np.int64, int: np.int64, bool: np.bool_, np.int8: np.int8,
         np.int16: np.int16, np.uint8: np.uint8, np.uint16: np.uint16, np.uint32: np.uint32,
         np.uint64: np.uint64, np.bool_: np.bool_}
EXTREMES: dict[Any, Any] = {  # CUDA's min and max leave out what is not a number
    min: np.fmin, max: np.fmax, np.fmin: np.fmin, np.fmax: np.fmax,
    np.minimum: np.minimum, np.maximum: np.maximum}
# Operations of cuda.fp16: what they compute, and the floating-point operations counted.
FP16: dict[str, tuple[Any, int]] = {
    "hadd": (np.add, 1), "hsub": (np.subtract, 1), "hmul": (np.multiply, 1),
    "hdiv": (np.divide, 1), "hfma": (lambda a, b, c: np.float64(a) * b + c, 2),
    "hneg": (np.negative, 0), "habs": (np.abs, 0), "hmax": (np.fmax, 0), "hmin": (np.fmin, 0),
    "hrcp": (np.reciprocal, 1), "hrsqrt": (lambda a: 1 / np.sqrt(np.float64(a)), 1),
    "hexp10": (lambda a: np.float64(10) ** a, 1), "hrint": (np.rint, 0),
    "heq": (np.equal, 0), "hne": (np.not_equal, 0), "hlt": (np.less, 0),
    "hle": (np.less_equal, 0), "hgt": (np.greater, 0), "hge": (np.greater_equal, 0),
    **{"h" + name: (getattr(np, name), 1) for name in (
        "sin", "cos", "log", "log2", "log10", "exp", "exp2", "sqrt")},
    **{"h" + name: (getattr(np, name), 0) for name in ("floor", "ceil", "trunc")},
}
# cuda.libdevice's casts that keep the bits: from a type, to a type.
SAME_BITS: dict[str, tuple[Any, Any]] = {
    "float_as_int": (np.float32, np.int32), "int_as_float": (np.int32, np.float32),
    "float_as_uint": (np.float32, np.uint32), "uint_as_float": (np.uint32, np.float32),
    "double_as_longlong": (np.float64, np.int64), "longlong_as_double": (np.int64, np.float64)}
MEETINGS = ("syncwarp", *BARRIERS, *SHUFFLES, *VOTES, *MATCHES)
STORES = ("intrinsics.store2", "intrinsics.store4", "intrinsics.wmma.store_matrix_sync")


def refuse(node: ast.AST, what: str) -> NoReturn:
    """The error for what kernels here cannot contain."""
    raise KernelError("unsupported", what, line=getattr(node, "lineno", 0))


_FLAG = "write a flag, failed[i] = 1, to an array and look at it after the launch"
_NO_STATEMENTS = {
    ast.Assert: "assert has no place in a kernel: a thread cannot stop a launch with an error. "
                f"Instead, {_FLAG}; accesses out of bounds and races are found without",
    ast.Raise: "raise has no place in a kernel: a thread cannot stop a launch with an error. "
               f"Instead, {_FLAG}",
    ast.Try: "try has no place in a kernel: nothing raises there that a kernel could catch. Test "
             "with if what may go wrong",
}


def refuse_statement(node: ast.stmt) -> NoReturn:
    """The error for a statement that kernels do not have."""
    refuse(node, _NO_STATEMENTS.get(
        type(node), f"{type(node).__name__} statements have no place in a kernel"))


def check_callee(node: ast.Call, callee: Any) -> None:
    """Refuse to watch a kernel from inside, and say how it is watched."""
    if callee is print or callee is breakpoint:
        why = ("the lines of all threads would mix" if callee is print
               else "threads do not stop alone")
        refuse(node, f"{callee.__name__}() has no place in a kernel here: {why}. Store what you "
               "want to see in an array, or step through a warp: "
               "WarpStepper(distlearn.kernels.oracle.record(kernel, grid, block, ...))")


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
        if node.id in CONVERSIONS:
            return CONVERSIONS[node.id]
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
    return int(np.dtype(element_type(kind, node.lineno)).itemsize)


def shared_names(tree: ast.FunctionDef) -> dict[tuple[int, int], str]:
    """The variable that each call of ``shared.array`` is assigned to, by the call's place."""
    return {(node.value.lineno, node.value.col_offset): target.id for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets if isinstance(target, ast.Name)}


def element_type(kind: Any, line: int) -> Any:
    """The numpy type that ``shared.array`` and ``local.array`` are given."""
    try:
        return CASTS[kind]
    except (KeyError, TypeError):
        raise KernelError("unsupported", f"{kind!r} is no type of an element; types are float32, "
                          "int32, bfloat16 and their like", line=line) from None


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
    if isinstance(value, np.ndarray):
        return constant_array(value, getattr(node, "id", "") or ast.unparse(node))
    if value is None or isinstance(value, str) or (isinstance(value, type) and value in CASTS):
        return value
    return refuse(node, f"{getattr(node, 'id', None) or ast.unparse(node)!r} is a "
                  f"{type(value).__name__}, which a kernel cannot use as a value")


def bits(name: str, value: int, width: int) -> int:
    """``cuda.popc``, ``ffs``, ``clz`` and ``brev`` of an integer of so many bits.

    >>> bits("popc", -1, 32), bits("ffs", 12, 64), bits("clz", 1, 32), bits("brev", 1, 64)
    (32, 3, 31, -9223372036854775808)
    """
    whole = value & (1 << width) - 1
    if name == "popc":
        return whole.bit_count()
    if name == "ffs":
        return (whole & -whole).bit_length()
    if name == "clz":
        return width - whole.bit_length()
    turned = int(f"{whole:0{width}b}"[::-1], 2)
    return turned - (1 << 64) if turned >> 63 else turned


# Arguments of the calls of cuda: how many at least and at most.
ARGUMENTS: dict[str, tuple[int, int]] = {
    "grid": (1, 1), "gridsize": (1, 1), "selp": (3, 3), "fma": (3, 3), "cbrt": (1, 1),
    "lanemask_lt": (0, 0), "const.array_like": (1, 1), "syncwarp": (0, 1), "activemask": (0, 0),
    "syncthreads": (0, 0), "nanosleep": (1, 1), "shared.array": (2, 2), "local.array": (2, 2),
    **dict.fromkeys(BITS, (1, 1)), **dict.fromkeys(FENCES, (0, 0)),
    **dict.fromkeys(BARRIERS[1:], (1, 1)), **dict.fromkeys(SHUFFLES, (3, 3)),
    **dict.fromkeys(("ballot_sync", "all_sync", "any_sync", "eq_sync", *MATCHES), (2, 2)),
    **{f"atomic.{kind}": (3, 3) for kind in ATOMICS}, "atomic.cas": (4, 4),
    **{f"libdevice.{name}": (1, 1) for name in SAME_BITS},
    **dict.fromkeys(("intrinsics.load2", "intrinsics.load4"), (2, 2)),
    **dict.fromkeys(("intrinsics.store2", "intrinsics.store4"), (3, 3)),
    "intrinsics.wmma.fill_fragment": (1, 1), "intrinsics.wmma.mma_sync": (3, 3),
    "intrinsics.wmma.load_matrix_sync": (2, 2), "intrinsics.wmma.store_matrix_sync": (3, 3),
    "intrinsics.wmma.load_matrix_sync_transposed": (2, 2),
}
MATH_ARGUMENTS = dict.fromkeys(
    ("pow", "atan2", "hypot", "fmod", "copysign", "nextafter", "ldexp", "remainder"), (2, 2))
BUILTIN_ARGUMENTS: dict[Any, tuple[int, int]] = {
    abs: (1, 1), np.abs: (1, 1), len: (1, 1), round: (1, 2), divmod: (2, 2)}


def check_arguments(node: ast.Call, path: str, callee: Any) -> None:
    """Refuse a call with too few or too many arguments, and names that cuda does not have."""
    name = math_name(callee)
    if path:
        least, most = ARGUMENTS.get(path, (0, 99))
        if path.startswith("atomic.") and path not in ARGUMENTS:
            refuse(node, f"{ast.unparse(node.func)}() does not exist; atomics are "
                   f"{', '.join(ATOMICS)}")
    elif name:
        least, most = MATH_ARGUMENTS.get(name, (1, 1))
    elif isinstance(callee, Kernel | type):
        return
    else:
        least, most = ((2, 99) if callee in EXTREMES else BUILTIN_ARGUMENTS.get(callee, (0, 99))
                       ) if callable(callee) else (0, 99)
    if not least <= len(node.args) <= most:
        wanted = f"{least}" if least == most else (
            f"{least} or more" if most == 99 else f"{least} to {most}")
        refuse(node, f"{ast.unparse(node.func)}() takes {wanted} arguments, {len(node.args)} given")


def same_bits(name: str, value: Any) -> Any:
    """``cuda.libdevice.float_as_int`` and its like, of numbers and of arrays.

    >>> hex(same_bits("float_as_int", np.float32(1)))
    '0x3f800000'
    """
    source, to = SAME_BITS[name]
    made = np.asarray(value).astype(np.int64).astype(source) if np.dtype(
        source).kind in "iu" else np.asarray(value).astype(source)
    made = made.view(to)
    if np.dtype(to).kind in "iu":
        made = made.astype(np.int64)
        return made if made.shape else int(made)
    return made if made.shape else to(made)


def not_a_member(what: str, mask: int, lane: int, line: int) -> KernelError:
    """The error of a lane that its own mask leaves out: undefined, says the programming guide."""
    return KernelError("warp_divergence", f"lane {lane} comes to {what} with a mask, "
                       f"{mask & 0xffffffff:#010x}, that leaves it out", line=line)


def width_of(kernel: Kernel, local: frozenset[str], node: ast.expr,
             seen: frozenset[str] = frozenset()) -> tuple[int, list[ast.expr]]:
    """Bits of an integer expression as numba types it, and arrays whose elements may make it wider.

    Results of operations have 64; coordinates of threads, votes, casts and elements of arrays may
    have fewer. A name has what the widest of its values has.
    """
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return 0, [node.value]
    if isinstance(node, ast.IfExp):
        parts = [width_of(kernel, local, part, seen) for part in (node.body, node.orelse)]
        return max(w for w, _ in parts), [a for _, arrays in parts for a in arrays]
    if isinstance(node, ast.Attribute):
        path = path_of(resolve(kernel, local, node))
        return (32 if path.split(".")[0] in (*COORDINATES, "laneid") else 64), []
    if isinstance(node, ast.Call):
        callee = resolve(kernel, local, node.func)
        path = path_of(callee)
        if path in (*VOTES, *MATCHES, "lanemask_lt", "ffs"):
            return 32, []
        if path in BITS or path in SHUFFLES or callee is abs:
            return width_of(kernel, local, node.args[1 if path in SHUFFLES else 0], seen)
        if not path and callee in CASTS and np.dtype(CASTS[callee]).kind in "iu":
            return 8 * np.dtype(CASTS[callee]).itemsize, []
        return 64, []
    if not isinstance(node, ast.Name) or node.id not in local or node.id in seen:
        return (0 if isinstance(node, ast.Name) and node.id in seen else 64), []
    width, arrays = 0, list[ast.expr]()
    for other in ast.walk(kernel.tree):
        if isinstance(other, ast.Assign):
            for value in given(other, node.id):
                more = width_of(kernel, local, value, seen | {node.id})
                width, arrays = max(width, more[0]), arrays + more[1]
        elif isinstance(other, ast.AugAssign | ast.For | ast.NamedExpr) and isinstance(
                other.target, ast.Name) and other.target.id == node.id:
            return 64, []
    return width or (0 if arrays else 64), arrays


def given(node: ast.Assign, name: str) -> list[ast.expr]:
    """What an assignment gives to a name, alone or among others."""
    made: list[ast.expr] = []
    for target in node.targets:
        if isinstance(target, ast.Name) and target.id == name:
            made.append(node.value)
        elif isinstance(target, ast.Tuple):
            values = node.value.elts if isinstance(node.value, ast.Tuple) and len(
                node.value.elts) == len(target.elts) else [node.value] * len(target.elts)
            made += [value for part, value in zip(target.elts, values, strict=True)
                     if isinstance(part, ast.Name) and part.id == name]
    return made


def width(bits_known: int, arrays: list[Any]) -> int:
    """What `width_of` found out, with the arrays that it asks about."""
    sizes = [8 * a.dtype.itemsize for a in arrays if hasattr(a, "dtype")]
    return max([bits_known, *sizes]) if bits_known or sizes else 64


def check_axes(ndim: Any, line: int) -> None:
    """Refuse ``cuda.grid(4)``."""
    if isinstance(ndim, bool) or not isinstance(ndim, int) or not 1 <= ndim <= 3:
        raise KernelError("unsupported", "cuda.grid and cuda.gridsize take 1, 2 or 3, written "
                          "there", line=line)


def path_of(value: Any) -> str:
    """``"threadIdx.x"`` for ``cuda.threadIdx.x``; "" for what is no name of the dialect."""
    return repr(value).removeprefix("cuda.") if isinstance(value, Name) else ""


def math_name(function: Any) -> str:
    """``"sqrt"`` for ``math.sqrt`` and ``np.sqrt``; "" for other functions."""
    try:
        return MATH_OF.get(function, "")
    except TypeError:
        return ""
