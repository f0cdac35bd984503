"""A CUDA C source that can be run: as a whole, function by function, or kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.errors import HostError
from distlearn.kernels.cuda_c.evaluation import Exit, Held
from distlearn.kernels.cuda_c.host import Host
from distlearn.kernels.cuda_c.kernel import CudaKernel
from distlearn.kernels.cuda_c.library import LIBRARY
from distlearn.kernels.cuda_c.memory import AccessError, Memory, decode, encode
from distlearn.kernels.cuda_c.source import Source, read
from distlearn.kernels.cuda_c.types import CType, Number, Pointer, Struct
from distlearn.kernels.launch import LaunchReport


@dataclass
class Run:
    """What a call of host code did.

    Attributes
    ----------
    value : int, float or None
        What the function returned; of ``main`` the exit code.
    output : str
        What it printed.
    launches : list of LaunchReport
        Of every kernel that it launched, in order.
    """

    value: Any = None
    output: str = ""
    launches: list[LaunchReport] = field(default_factory=list)


class Program:
    """A source with its memory; ``program["name"]`` is a kernel.

    Attributes
    ----------
    kernels : dict of str to CudaKernel
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.filename, self.source = source.filename, source.text
        self.memory = Memory()
        self._launches: list[LaunchReport] = []
        self._options: dict[str, Any] = {}
        self._host = Host(source, self.memory, LIBRARY, self._launch)
        self.kernels = {name: CudaKernel(source, function, self._variable)
                        for name, function in source.functions.items()
                        if "__global__" in function.marks}

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the host functions."""
        return tuple(name for name, function in self._source.functions.items()
                     if not function.marks or "__host__" in function.marks)

    def __getitem__(self, name: str) -> CudaKernel:
        if name not in self.kernels:
            raise KeyError(f"{self.filename} has no kernel {name!r}; it has "
                           f"{', '.join(self.kernels) or 'none'}")
        return self.kernels[name]

    def _variable(self, name: str) -> NDArray[Any]:
        """The array of a ``__device__`` or ``__constant__`` variable."""
        element = types.elements(self._source.variables[name].type)
        assert element is not None
        block = self._host.guarded(lambda: self._host.symbol(name))
        made: NDArray[Any] = block.array(element[0].dtype)
        return made

    # ---- host code

    def call(self, function: str, *arguments: Any, **options: Any) -> Run:
        """Call a host function.

        Parameters
        ----------
        function : str
        arguments : numbers, numpy arrays, mappings
            An array is memory of the host that the function reads and writes in place; a
            structure is a mapping of its fields.
        options
            For every launch: ``executor`` and what else `distlearn.kernels.launch` takes.

        Raises
        ------
        HostError
            The host code does what C or CUDA forbids, or what is not modelled.
        KernelError
            A kernel does.
        SourceError
            A kernel uses what is not understood here.
        """
        if function not in self.functions:
            raise HostError(f"there is no host function {function!r}; there are "
                            f"{', '.join(self.functions) or 'none'}", self.filename, 0)
        found = self._source.functions[function]
        self._host.line = found.line
        self._launches, self._options = [], options
        self._host.output.clear()
        run = Run(launches=self._launches)
        held = [self._held(kind, value, name) for (name, kind), value in zip(
            found.parameters, arguments, strict=False)]
        held += [Held(types.VOID, None)] * (len(arguments) - len(held))
        try:
            run.value = self._host.guarded(lambda: self._host.call(found, held)).value
        except Exit as end:
            run.value = end.code
        finally:
            run.output = "".join(self._host.output)
        if isinstance(run.value, np.generic):
            run.value = run.value.item()
        return run

    def run(self, *arguments: str, **options: Any) -> Run:
        """Run ``main``, with the arguments of a command line."""
        main = self._source.functions.get("main")
        if main is None or not main.parameters:
            return self.call("main", **options)
        words = [self.filename, *arguments]
        table = self.memory.allocate(8 * len(words), "host", "argv")
        for place, word in enumerate(words):
            table.data[8 * place:8 * place + 8] = encode(
                Pointer(types.CHAR), self._host.string(word))
        return self.call("main", len(words), table.address, **options)

    def _held(self, kind: CType, value: Any, name: str) -> Held:
        """A Python value as the host's."""
        if isinstance(kind, Pointer) and isinstance(value, np.ndarray):
            element = types.elements(kind.target)
            if element is None or element[0].dtype != value.dtype or not value.flags.c_contiguous \
                    or not value.flags.writeable:
                wanted = element[0].dtype if element is not None else kind.target
                raise HostError(f"argument {name} is a {kind}: a writeable C-contiguous array of "
                                f"{wanted}, not one of {value.dtype}", self.filename,
                                self._host.line)
            data = value.reshape(-1).view(np.uint8).data if value.size else memoryview(bytearray())
            return Held(kind, self.memory.allocate(value.nbytes, "host", name, data).address)
        if isinstance(kind, Struct) and isinstance(value, Mapping):
            data_ = bytearray(kind.size)
            for field_name, inner in kind.fields:
                if field_name not in value:
                    raise HostError(f"argument {name} needs a field {field_name!r}: a {kind} has "
                                    f"{', '.join(f for f, _ in kind.fields)}", self.filename,
                                    self._host.line)
                held = self._held(inner, value[field_name], f"{name}.{field_name}")
                at = kind.offsets[field_name]
                data_[at:at + inner.size] = encode(inner, held.value)
            return Held(kind, bytes(data_))
        if isinstance(kind, Number) and isinstance(value, int | float | np.number):
            given = Held(types.LONG if isinstance(value, int | np.integer) else types.DOUBLE,
                         value)
            return self._host.to(given, kind)
        if isinstance(kind, Pointer) and isinstance(value, int):
            return Held(kind, value)
        raise HostError(f"argument {name} is a {kind}, not {type(value).__name__}",
                        self.filename, self._host.line)

    # ---- launches

    def _launch(self, name: str, sizes: list[Held], arguments: list[Held]) -> None:
        kernel, host = self.kernels.get(name), self._host
        if kernel is None:
            host.fail(f"{name} is no __global__ function")
        assert kernel is not None
        parameters = self._source.functions[name].parameters
        if not 2 <= len(sizes) <= 4:
            host.fail(f"{name}<<<...>>> takes a grid, a block, bytes of shared memory, a stream")
        if len(arguments) != len(parameters):
            host.fail(f"{name}() takes {len(parameters)} arguments, {len(arguments)} given")
        grid, block = (tuple(np.frombuffer(host.to(size, types.DIM3).value, "<u4").tolist())
                       for size in sizes[:2])
        shared = int(sizes[2].value) if len(sizes) > 2 else 0
        passed = [self._passed(kind, host.to(value, kind).value, word, name)
                  for (word, kind), value in zip(parameters, arguments, strict=True)]
        self._launches.append(kernel.launch(grid, block, *passed, shared=shared,
                                            **self._options))

    def _passed(self, kind: CType, value: Any, word: str, kernel: str) -> Any:
        """An argument as kernels take it: pointers as a device array and an offset."""
        if isinstance(kind, Struct):
            return {name: self._passed(inner, decode(inner, value, kind.offsets[name]),
                                       f"{word}.{name}", kernel) for name, inner in kind.fields}
        if not isinstance(kind, Pointer):
            return value
        element = types.elements(kind.target)
        dtype = element[0].dtype if element is not None else np.dtype("u1")
        if value == 0:
            return np.zeros(0, dtype)
        block = self.memory.block(value)
        if block.space != "device":
            raise AccessError(f"{kernel}<<<...>>> gets for {word} a pointer to {block.what}, which "
                              "is host memory: copy it with cudaMemcpy to memory of cudaMalloc")
        at, rest = divmod(value - block.address, dtype.itemsize)
        if rest:
            raise AccessError(f"{word} of {kernel} is not aligned to its elements of "
                              f"{dtype.itemsize} bytes")
        return block.array(dtype), at


def load(source: str | Path) -> Program:
    """Parse a CUDA C source.

    Parameters
    ----------
    source : str or Path
        The text, or the path of a file (a str on one line that ends in ".cu" or ".c").

    Returns
    -------
    Program
        ``load(text)["kernel"][grid, block](*arrays)`` launches a kernel on numpy arrays;
        ``load(text).run()`` runs ``main``; ``load(text).call("MatMul", A, B, C)`` a function.

    Raises
    ------
    SourceError
        The source is malformed, or uses what is not understood here: file, line, reason.

    Notes
    -----
    A type ``Matrix`` that is used and not declared is the CUDA programming guide's: ``int width,
    height; float* elements``. ``...`` in place of arguments, as listings leave them out, is an
    error only where it runs.
    """
    return Program(read(source))
