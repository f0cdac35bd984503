"""Arrays of a launch as flat memory: what an index means, and where an element lies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.errors import KernelError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class NoNumber:
    """A value of kernels that is made of numbers and is none: arithmetic with it is an error.

    The error belongs to no line yet: executors add that of the statement.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves its operations to the methods below
    __hash__ = object.__hash__

    def what(self) -> str:
        """What to say of it."""
        raise NotImplementedError

    def _refuse(self, *_: Any) -> NoReturn:
        no_number(self)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __matmul__ = __rmatmul__ = _refuse
    __neg__ = __pos__ = __invert__ = __abs__ = __round__ = _refuse
    __bool__ = __int__ = __float__ = __index__ = __array__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


class Elements(NoNumber):
    """An array as a value of a kernel."""

    __slots__ = ()

    def what(self) -> str:
        """What to say of it."""
        name = getattr(self, "name", "")
        return (f"arithmetic with a whole array{' ' * bool(name)}{name}: take an element, "
                f"{name or 'array'}[i]")


def no_number(value: Any, line: int = 0) -> NoReturn:
    """Refuse to compute with what is no number."""
    if isinstance(value, NoNumber):
        raise KernelError("unsupported", value.what(), line=line)
    if value is None:
        raise KernelError("unsupported", "arithmetic with None: a device function gave it that "
                          "returns nothing", line=line)
    raise KernelError("unsupported", f"arithmetic with a {type(value).__name__.lower()}", line=line)


@dataclass(frozen=True, eq=False)
class Memory:
    """Storage that races and sectors are counted in: a flat run of equal elements.

    Attributes
    ----------
    flat : ndarray
        One-dimensional view; writing to it writes to the caller's array.
    itemsize : int
        Bytes of an element; element 0 starts at a 256-byte boundary.
    number : int
        Its position among the memories of the launch.
    name : str
        The argument that it belongs to, the first if several are views of it.
    shape : tuple of int
        That argument's, or () if it is a part of the memory.
    """

    flat: NDArray[Any]
    itemsize: int
    number: int
    name: str = ""
    shape: tuple[int, ...] = ()

    def element(self, flat: int) -> str:
        """An element as an error names it.

        >>> Memory(np.zeros(6), 8, 0, "a", (2, 3)).element(4)
        'a[1, 1]'
        """
        return element_of(self.name, self.shape, flat)


@dataclass(frozen=True, eq=False)
class Global(Elements):
    """An array argument, or a slice of one: a shape and strides (in elements) over a memory.

    ``start`` is the flat number of the first element: an int, or, in the fast executor, a value
    that differs between threads (``a[i]`` of a two-dimensional ``a``).
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: Any
    memory: Memory
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of indices."""
        return len(self.shape)


class Constant(Global):
    """A numpy array that the kernel names, or ``cuda.const.array_like`` of one.

    It lies in constant memory: its reads are no requests to global memory, and nothing writes it.
    """


def constant_array(array: NDArray[Any], name: str) -> Constant:
    """An array as it is when the kernel is launched."""
    bound = _bind_array(name, np.ascontiguousarray(array), {})
    return Constant(name, bound.shape, bound.strides, bound.start, bound.memory, bound.dtype)


def element_of(name: str, shape: tuple[int, ...], flat: int) -> str:
    """``name[row, column]``, or ``element flat of name`` where the shape is not known."""
    if math.prod(shape) <= flat or not shape:
        return f"element {flat} of {name or 'an array'}"
    return f"{name}[{', '.join(str(int(i)) for i in np.unravel_index(flat, shape))}]"


def bind(names: tuple[str, ...], arguments: tuple[Any, ...], kernel: str) -> list[Any]:
    """Arguments as executors want them: arrays as `Global`, numbers as int or numpy float.

    Arrays that are views of one memory share a `Memory`, so that races between them are seen.
    """
    if len(names) != len(arguments):
        raise KernelError("bad_launch", f"{kernel}() takes {len(names)} arguments "
                          f"({', '.join(names)}), {len(arguments)} given")
    owners: dict[tuple[int, int, int], Memory] = {}
    bound: list[Any] = []
    for name, value in zip(names, arguments, strict=True):
        if isinstance(value, np.ndarray):
            bound.append(_bind_array(name, value, owners))
        elif isinstance(value, bool | np.bool_):
            bound.append(bool(value))
        elif isinstance(value, int | np.integer):
            bound.append(int(value))
        elif isinstance(value, np.floating) and value.dtype.itemsize <= 8:
            bound.append(value if type(value) in (np.float16, np.float32) else np.float64(value))
        elif isinstance(value, ml_dtypes.bfloat16):
            bound.append(value)
        elif isinstance(value, float):
            bound.append(np.float64(value))
        else:
            raise KernelError("bad_launch", f"argument {name} of {kernel}() is a "
                              f"{type(value).__name__}; kernels take numpy arrays and numbers")
    return bound


def copied(bound: list[Any]) -> list[Any]:
    """Bound arguments with memories of their own: strides and what overlaps stay as they are."""
    own = {value.memory: replace(value.memory, flat=value.memory.flat.copy())
           for value in bound if isinstance(value, Global)}
    return [replace(value, memory=own[value.memory]) if isinstance(value, Global) else value
            for value in bound]


def _bind_array(name: str, array: NDArray[Any],
                owners: dict[tuple[int, int, int], Memory]) -> Global:
    item = array.itemsize
    if array.dtype.kind not in "fiub" and array.dtype != BFLOAT16:
        raise KernelError("bad_launch", f"array {name} has dtype {array.dtype}; kernels take "
                          "arrays of floats, integers and booleans")
    if any(stride % item for stride in array.strides):
        raise KernelError("bad_launch", f"array {name} has strides {array.strides} that are no "
                          f"multiples of its item size {item}")
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not (root.flags.c_contiguous or root.flags.f_contiguous) or root.dtype != array.dtype:
        root = array
        if not array.flags.c_contiguous:
            raise KernelError("bad_launch", f"array {name} is a view of an array that is not "
                              "contiguous; pass a contiguous copy")
    address = root.__array_interface__["data"][0]
    key = (address, root.nbytes, item)
    if key not in owners:
        flat = root.reshape(-1, order="C" if root.flags.c_contiguous else "F")
        whole = array.flags.c_contiguous and array.size == flat.size
        owners[key] = Memory(flat, item, len(owners), name, array.shape if whole else ())
    start = (array.__array_interface__["data"][0] - address) // item if array.size else 0
    strides = tuple(stride // item for stride in array.strides)
    return Global(name, array.shape, strides, start, owners[key], array.dtype)


def writable(array: Any, line: int) -> None:
    """Refuse to write constant memory."""
    if isinstance(array, Constant):
        raise KernelError("unsupported", f"{array.name} lies in constant memory, which kernels "
                          "cannot write: pass it as an argument", line=line)


def array_attribute(array: Any, name: str, line: int) -> Any:
    """What a kernel may ask of an array: ``.shape``, ``.strides`` in bytes, ``.T`` ..."""
    size = array.dtype.itemsize
    if name == "T" and hasattr(array, "start"):
        return replace(array, shape=array.shape[::-1], strides=array.strides[::-1])
    found = {"shape": array.shape, "ndim": len(array.shape), "dtype": array.dtype.type,
             "size": math.prod(array.shape), "itemsize": size,
             "nbytes": size * math.prod(array.shape),
             "strides": tuple(size * stride for stride in array.strides)}
    if name not in found:
        raise KernelError("unsupported", f"arrays have no .{name} in a kernel; they have "
                          f"{', '.join(found)} and T", line=line)
    return found[name]


def item(values: tuple[Any, ...], index: Any, line: int) -> Any:
    """An item of a tuple at an index that is the same for all threads."""
    if not isinstance(index, int | slice):
        raise KernelError("unsupported", "a tuple is indexed by an integer", line=line)
    if isinstance(index, int) and not -len(values) <= index < len(values):
        raise KernelError("out_of_bounds", f"index {index} of a tuple of {len(values)}", line=line)
    return values[index]


def indices_of(index: Any, ndim: int, line: int) -> tuple[tuple[Any, ...], bool]:
    """The index of every axis, and whether it means a part of the array, not an element."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) > ndim:
        raise KernelError("unsupported", f"{len(indices)} indices for an array of {ndim} axes",
                          line=line)
    part = len(indices) < ndim or any(isinstance(i, slice) for i in indices)
    return indices + (slice(None),) * (ndim - len(indices)), part


def slice_axis(part: slice, n: int, line: int) -> tuple[int, int, int]:
    """First element, number of elements and step of a slice of an axis of ``n``.

    >>> slice_axis(slice(2, 100), 8, 0)
    (2, 6, 1)
    """
    bounds = (part.start, part.stop, part.step)
    if not all(b is None or isinstance(b, int) for b in bounds) or (part.step or 1) < 1:
        raise KernelError("unsupported", "the bounds of a slice must be integers that are the same "
                          "for all threads, its step positive", line=line)
    start, stop, step = part.indices(n)
    return start, len(range(start, stop, step)), step


def shape_of(shape: Any, line: int, what: str) -> tuple[int, ...]:
    """The shape given to ``shared.array`` or ``local.array``: an int or a tuple of ints."""
    dims = shape if isinstance(shape, tuple) else (shape,)
    if not dims or not all(isinstance(n, int) and n > 0 for n in dims):
        raise KernelError("unsupported", f"the shape of {what} must be positive integers known "
                          f"before the launch, not {shape!r}", line=line)
    return dims


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))
