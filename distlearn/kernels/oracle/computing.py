"""What one thread computes with numbers, and what it may ask of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distlearn.kernels.counters import INDEX
from distlearn.kernels.dialect import MATH
from distlearn.kernels.errors import KernelError
from distlearn.kernels.memory import Constant, Global
from distlearn.kernels.names import FP16, bits, same_bits, width
from distlearn.kernels.oracle import tiles
from distlearn.kernels.oracle.arithmetic import REAL, binary, cast, fused, plain, rounded, wrap
from distlearn.kernels.oracle.arrays import Small
from distlearn.kernels.oracle.tiles import Tile

if TYPE_CHECKING:
    from distlearn.kernels.oracle.block import Block

FLOPS = INDEX["flops"]


class Computing:
    """The part of a thread that needs no memory."""

    block: Block

    def op(self, line: int, kind: str, a: Any, b: Any) -> Any:
        """A binary operation."""
        if isinstance(a, Tile) or isinstance(b, Tile):
            self.block.grid.tally.row(line)[FLOPS] += 8
            return tiles.operate(line, kind, a, b)
        result, flops = binary(line, kind, a, b)
        if flops:
            self.block.grid.tally.row(line)[FLOPS] += flops
        return result

    def unary(self, line: int, kind: str, a: Any) -> Any:
        """``-a``, ``+a``, ``not a`` or ``~a``; of a truth ``~`` gives the other, as in numba."""
        if kind == "Not" or (kind == "Invert" and isinstance(a, bool | np.bool_)):
            return not a
        if kind == "Invert" and isinstance(a, REAL):
            raise KernelError("unsupported", "operation ~ of floats", line=line)
        if kind == "USub":
            return -a if isinstance(a, REAL) else wrap(-int(a))
        return ~int(a) if kind == "Invert" else a

    def bits(self, name: str, value: Any, known: int, *arrays: Any) -> int:
        """``cuda.popc``, ``ffs``, ``clz`` and ``brev``."""
        return bits(name, int(value), width(known, list(arrays)))

    def math(self, line: int, name: str, *arguments: Any) -> Any:
        """A function of the math module; integers become float64 as in numba."""
        function, flops = MATH[name]
        values = [a if isinstance(a, REAL) else np.float64(a) for a in arguments]
        if name == "ldexp":
            values[1] = int(arguments[1])
        self.block.grid.tally.row(line)[FLOPS] += flops
        result = function(*values)
        return tuple(map(plain, result)) if isinstance(result, tuple) else plain(result)

    def fma(self, line: int, a: Any, b: Any, c: Any) -> Any:
        """``cuda.fma``: rounded once where a product of float32 is exact in float64."""
        self.block.grid.tally.row(line)[FLOPS] += 2
        return fused(*(x if isinstance(x, REAL) else np.float64(x) for x in (a, b, c)))

    def fp16(self, line: int, name: str, *arguments: Any) -> Any:
        """An operation of ``cuda.fp16``."""
        function, flops = FP16[name]
        self.block.grid.tally.row(line)[FLOPS] += flops
        result = function(*map(np.float16, arguments))
        return bool(result) if isinstance(result, np.bool_) else np.float16(result)

    def same_bits(self, name: str, value: Any) -> Any:
        """``cuda.libdevice.float_as_int`` and its like."""
        return same_bits(name, value)

    def parts(self, line: int, value: Any, wanted: int) -> tuple[Any, ...]:
        """The items of a tuple for so many names."""
        if not isinstance(value, tuple) or len(value) != wanted:
            raise KernelError("unsupported", f"{wanted} names want {wanted} values", line=line)
        return value

    def constant(self, line: int, array: Any) -> Constant:
        """``cuda.const.array_like``."""
        if not isinstance(array, Constant):
            raise KernelError("unsupported", "const.array_like takes a numpy array known before "
                              "the launch", line=line)
        return array

    def cast(self, line: int, kind: Any, value: Any) -> Any:
        """``float32(value)`` and its like."""
        return cast(line, kind, value)

    def extreme(self, line: int, function: Any, *items: Any) -> Any:
        """``min`` and ``max``; mixed types as numba promotes them."""
        if any(isinstance(item, tuple | Global | Small) for item in items):
            raise KernelError("unsupported", "min and max take numbers", line=line)
        return _extreme(function, items)

    def abs(self, line: int, value: Any) -> Any:
        """Magnitude."""
        return abs(value) if isinstance(value, REAL) else wrap(abs(value))

    def round(self, line: int, value: Any, digits: Any = None) -> Any:
        """To the nearest integer, or to so many digits; halves to even."""
        return rounded(value, digits, line)

    def divmod(self, line: int, a: Any, b: Any) -> Any:
        """``a // b, a % b``."""
        return self.op(line, "FloorDiv", a, b), self.op(line, "Mod", a, b)

    def len(self, line: int, array: Any) -> int:
        """Length of an array's first axis, or of a tuple."""
        if not isinstance(array, tuple | Global | Small):
            raise KernelError("unsupported", "len takes an array or a tuple", line=line)
        return len(array) if isinstance(array, tuple) else int(array.shape[0])

    def range(self, *numbers: Any) -> range:
        """The numbers of a ``for``."""
        return range(*(int(n) for n in numbers))

    def selp(self, line: int, test: Any, a: Any, b: Any) -> Any:
        """``cuda.selp``."""
        return a if test else b


def _extreme(function: Any, items: tuple[Any, ...]) -> Any:
    if any(isinstance(item, REAL) for item in items):
        typed = [i if isinstance(i, REAL) else np.int64(i) for i in items]
        result = typed[0]
        for item in typed[1:]:
            result = function(result, item)
        return result
    return (min if function in (np.minimum, np.fmin) else max)(items)
