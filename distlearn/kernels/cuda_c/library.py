"""What host code may call: the CUDA runtime's functions and C's own."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.evaluation import Exit, Held
from distlearn.kernels.cuda_c.host import Host
from distlearn.kernels.cuda_c.types import DOUBLE, FLOAT, INT, VOID, Number, Pointer

Call = Callable[[Host, list[Held]], Held]
OK = Held(INT, 0)
NOTHING = Held(VOID, None)
BYTES = Pointer(VOID)
KINDS = {0: ("host", "host"), 1: ("device", "host"), 2: ("host", "device"),
         3: ("device", "device")}  # cudaMemcpyKind -> spaces of the two ends
FORMAT = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\d+))?"
                    r"(?:hh|h|ll|l|z|j|t)?(?P<kind>[diuoxXfFeEgGcsp%])")


def _malloc(host: Host, a: list[Held]) -> Held:
    block = host.memory.allocate(int(a[0].value), "host", f"the memory of line {host.line}")
    return Held(BYTES, block.address)


def _calloc(host: Host, a: list[Held]) -> Held:
    return _malloc(host, [Held(types.ULONG, int(a[0].value) * int(a[1].value))])


def _free(host: Host, a: list[Held]) -> Held:
    host.memory.free(a[0].value, "host")
    return NOTHING


def _allocate(space: str) -> Call:
    def call(host: Host, a: list[Held]) -> Held:
        block = host.memory.allocate(int(a[1].value), space, f"the {space} memory of line "
                                     f"{host.line}")
        host.memory.write(a[0].value, BYTES, block.address)
        return OK
    return call


def _release(space: str) -> Call:
    def call(host: Host, a: list[Held]) -> Held:
        host.memory.free(a[0].value, space)
        return OK
    return call


def _memcpy(host: Host, a: list[Held]) -> Held:
    host.memory.copy((a[0].value, "host"), (a[1].value, "host"), int(a[2].value))
    return a[0]


def _memcmp(host: Host, a: list[Held]) -> Held:
    size = int(a[2].value)
    first, second = (bytes(block.data[offset:offset + size]) for block, offset in (
        host.memory.at(held.value, size, "host") for held in a[:2]))
    return Held(INT, (first > second) - (first < second))


def _memset(host: Host, a: list[Held]) -> Held:
    _set(host, a, "host")
    return a[0]


def _set(host: Host, a: list[Held], space: str) -> Held:
    size = int(a[2].value)
    block, offset = host.memory.at(a[0].value, size, space)
    block.data[offset:offset + size] = bytes([int(a[1].value) & 255]) * size
    return OK


def _cuda_memcpy(host: Host, a: list[Held]) -> Held:
    kind = int(a[3].value)
    if kind == 4:
        spaces = host.memory.block(a[0].value).space, host.memory.block(a[1].value).space
    elif kind in KINDS:
        spaces = KINDS[kind]
    else:
        host.fail(f"cudaMemcpy has no kind {kind}")
    host.memory.copy((a[0].value, spaces[0]), (a[1].value, spaces[1]), int(a[2].value))
    return OK


def _symbol(host: Host, a: list[Held], to: bool) -> Held:
    name, other = (a[0], a[1]) if to else (a[1], a[0])
    if not isinstance(name.value, str):
        host.fail("a symbol is the name of a __device__ or __constant__ variable")
    size, offset = int(a[2].value), int(a[3].value) if len(a) > 3 else 0
    at = host.symbol(name.value).address + offset
    ends = ((at, "device"), (other.value, "host"))
    host.memory.copy(ends[not to], ends[to], size)
    return OK


def text_at(host: Host, address: int) -> str:
    """The string that begins at an address."""
    block, offset = host.memory.at(address, 1, "host")
    data = bytes(block.data[offset:])
    return data[:data.index(0)].decode(errors="replace") if 0 in data else data.decode(
        errors="replace")


def _leading(pattern: str, kind: Number, convert: Callable[[str], Any]) -> Call:
    """The number that a string begins with, or 0."""
    def call(host: Host, a: list[Held]) -> Held:
        found = re.match(rf"\s*({pattern})", text_at(host, a[0].value))
        return Held(kind, convert(found[1]) if found else convert("0"))
    return call


def formatted(host: Host, a: list[Held]) -> str:
    """What printf makes of its arguments."""
    rest = iter(a[1:])

    def one(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        width = match["width"] or ""
        if width == "*":
            width = str(next(rest, OK).value)
        held = next(rest, None)
        if held is None:
            host.fail("printf has fewer values than its format asks for")
        assert held is not None
        real = kind in "fFeEgG"
        if isinstance(held.type, Number) and held.type.is_integer == real:
            host.fail(f"printf's %{kind} is given a {held.type}")
        value: Any = held.value
        if kind == "s":
            value = text_at(host, value)
        elif kind == "p":
            kind, value = "s", hex(value)
        elif kind in "uxXo" and isinstance(held.type, Number):
            value = int(value) & ((1 << 8 * max(4, held.type.size)) - 1)
        elif kind == "c":
            value = chr(int(value) & 255)
        spec = "d" if kind in "iu" else kind
        precision = f".{match['precision']}" if match["precision"] else ""
        return str(f"%{match['flags']}{width}{precision}{spec}" % (
            float(value) if real else value))

    return FORMAT.sub(one, text_at(host, a[0].value))


def _printf(host: Host, a: list[Held]) -> Held:
    text = formatted(host, a)
    host.output.append(text)
    return Held(INT, len(text))


def _puts(host: Host, a: list[Held]) -> Held:
    host.output.append(text_at(host, a[0].value) + "\n")
    return OK


def _exit(host: Host, a: list[Held]) -> Held:
    raise Exit(int(a[0].value))


def _assert(host: Host, a: list[Held]) -> Held:
    if not a[0].value:
        host.fail("an assertion does not hold")
    return NOTHING


def _rand(host: Host, a: list[Held]) -> Held:
    if not isinstance(host.seed, random.Random):
        host.seed = random.Random(host.seed)
    return Held(INT, host.seed.randrange(1 << 31))


def _srand(host: Host, a: list[Held]) -> Held:
    host.seed = int(a[0].value)
    return NOTHING


def _math(function: Callable[..., Any], count: int, is_float: bool) -> Call:
    def call(host: Host, a: list[Held]) -> Held:
        if len(a) != count or not all(isinstance(held.type, Number) for held in a):
            host.fail(f"{count} numbers are needed here")
        kind = FLOAT if is_float or all(held.type == FLOAT for held in a) else DOUBLE
        with np.errstate(all="ignore"):
            return Held(kind, kind.dtype.type(function(*(
                kind.dtype.type(held.value) for held in a))))
    return call


def _extreme(least: bool) -> Call:
    def call(host: Host, a: list[Held]) -> Held:
        smaller = host.binary("<", a[0], a[1]).value
        return a[0] if bool(smaller) == least else a[1]
    return call


def _abs(host: Host, a: list[Held]) -> Held:
    return host.binary("*", a[0], Held(INT, -1)) if a[0].value < 0 else a[0]


def _dim3(host: Host, a: list[Held]) -> Held:
    sizes = [int(host.to(held, types.UINT).value) for held in a]
    return Held(types.DIM3, np.array((*sizes, 1, 1, 1)[:3], "<u4").tobytes())


def _error_text(host: Host, a: list[Held]) -> Held:
    return Held(Pointer(types.CHAR), host.string("no error"))


def _refused(reason: str) -> Call:
    def call(host: Host, a: list[Held]) -> Held:
        return host.fail(reason)
    return call


def _handle(host: Host, a: list[Held]) -> Held:
    host.memory.write(a[0].value, types.LONG, 1)
    return OK


def _nothing(host: Host, a: list[Held]) -> Held:
    return OK


LIBRARY: dict[str, Call] = {
    "malloc": _malloc, "calloc": _calloc, "free": _free, "memcpy": _memcpy, "memset": _memset,
    "memcmp": _memcmp, "atoi": _leading(r"[-+]?\d+", INT, int),
    "atof": _leading(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", DOUBLE, np.float64),
    "cudaMalloc": _allocate("device"), "cudaFree": _release("device"),
    "cudaMallocHost": _allocate("host"), "cudaHostAlloc": _allocate("host"),
    "cudaFreeHost": _release("host"), "cudaMemcpy": _cuda_memcpy,
    "cudaMemcpyAsync": _cuda_memcpy, "cudaMemset": lambda host, a: _set(host, a, "device"),
    "cudaMemcpyToSymbol": lambda host, a: _symbol(host, a, True),
    "cudaMemcpyFromSymbol": lambda host, a: _symbol(host, a, False),
    "cudaGetErrorString": _error_text, "cudaGetErrorName": _error_text,
    "printf": _printf, "fprintf": lambda host, a: _printf(host, a[1:]), "puts": _puts,
    "putchar": lambda host, a: _printf(host, [Held(INT, host.string(chr(int(a[0].value))))]),
    "exit": _exit, "abort": lambda host, a: _exit(host, [Held(INT, 134)]), "assert": _assert,
    "rand": _rand, "srand": _srand, "time": lambda host, a: Held(types.LONG, 0),
    "__infinity": lambda host, a: Held(FLOAT, np.float32(np.inf)),
    "__nan": lambda host, a: Held(FLOAT, np.float32(np.nan)),
    "abs": _abs, "labs": _abs, "max": _extreme(False), "min": _extreme(True), "__dim3": _dim3,
    "cudaStreamCreate": _handle,
    **dict.fromkeys((
        "cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaGetLastError", "cudaSetDevice",
        "cudaPeekAtLastError", "cudaDeviceReset", "cudaStreamSynchronize", "cudaStreamDestroy",
        "fflush", "cudaFuncSetAttribute"), _nothing),
    **{name: _refused("time is not measured here: a launch's report predicts it") for name in (
        "cudaEventCreate", "cudaEventRecord", "cudaEventElapsedTime", "cudaEventSynchronize",
        "clock", "gettimeofday")},
    "cudaMallocManaged": _refused("managed memory is not modelled: use cudaMalloc and cudaMemcpy"),
}
for _name, _function, _count in (
        ("sqrt", np.sqrt, 1), ("exp", np.exp, 1), ("log", np.log, 1), ("sin", np.sin, 1),
        ("cos", np.cos, 1), ("tan", np.tan, 1), ("tanh", np.tanh, 1), ("floor", np.floor, 1),
        ("ceil", np.ceil, 1), ("fabs", np.abs, 1), ("pow", np.power, 2), ("fmod", math.fmod, 2),
        ("fmax", np.fmax, 2), ("fmin", np.fmin, 2), ("log2", np.log2, 1)):
    LIBRARY[_name] = _math(_function, _count, False)
    LIBRARY[_name + "f"] = _math(_function, _count, True)
