"""A kernel of a CUDA C source, launched as numba's are: ``kernel[grid, block](*arguments)``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.places import Shape
from distlearn.kernels.cuda_c.source import Function, Source
from distlearn.kernels.cuda_c.translate import Translated, translate
from distlearn.kernels.cuda_c.types import CType, Number, Pointer, Struct
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Dim
from distlearn.kernels.launch import LaunchReport, dim3
from distlearn.kernels.launch import launch as run


class CudaKernel:
    """A ``__global__`` function.

    Attributes
    ----------
    name : str
    source : str
        Its text.
    first_line : int
        Line of the file on which ``source`` begins.
    """

    def __init__(self, source: Source, function: Function,
                 variables: Callable[[str], NDArray[Any]]) -> None:
        self._source, self._function, self._variables = source, function, variables
        self.name, self.first_line = function.name, function.line
        self.source = "\n".join(source.lines[function.line - 1:function.last_line]) + "\n"
        self._made: dict[Any, tuple[Translated, list[str]]] = {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(name for name, _ in self._function.parameters)

    def prepare(self, grid: Dim, block: Dim, *arguments: Any, shared: int = 0
                ) -> tuple[Translated, list[Any]]:
        """The kernel and the arguments that `distlearn.kernels.launch` takes.

        Parameters
        ----------
        grid, block : int or tuple of 1 to 3 int
        arguments : numpy arrays, numbers, mappings
            One for each parameter. A pointer takes a C-contiguous array of its type, or a pair
            of such an array, flat, and the element it points to. A structure takes a mapping of
            its fields.
        shared : int
            Bytes of dynamic shared memory.

        Raises
        ------
        KernelError
            "bad_launch": an argument does not fit its parameter.
        SourceError
            The kernel uses what is not understood here.
        """
        if len(arguments) != len(self.parameters):
            raise KernelError("bad_launch", f"{self.name}() takes {len(self.parameters)} arguments "
                              f"({', '.join(self.parameters)}), {len(arguments)} given")
        flat: list[Any] = []
        known: dict[str, int] = {}
        shifted: list[str] = []
        for (name, kind), value in zip(self._function.parameters, arguments, strict=True):
            self._flatten(name, kind, value, flat, known, shifted)
        shape = Shape(dim3(grid, "grid"), dim3(block, "block"), shared)
        key = (shape, tuple(known.items()), tuple(shifted))
        if key not in self._made:
            self._made[key] = translate(self._source, self._function, shape, known,
                                        frozenset(shifted))
        kernel, implicit = self._made[key]
        return kernel, flat + [self._variables(name) for name in implicit]

    def _flatten(self, name: str, kind: CType, value: Any, flat: list[Any],
                 known: dict[str, int], shifted: list[str]) -> None:
        if isinstance(kind, Struct):
            for field, inner in kind.fields:
                given = value.get(field) if isinstance(value, Mapping) else getattr(
                    value, field, None)
                if given is None:
                    raise KernelError("bad_launch", f"argument {name} of {self.name}() needs a "
                                      f"field {field!r}: a {kind} has "
                                      f"{', '.join(f for f, _ in kind.fields)}")
                self._flatten(f"{name}_{field}", inner, given, flat, known, shifted)
            return
        if isinstance(kind, Number):
            if isinstance(value, np.ndarray) or not isinstance(value, int | float | np.number):
                raise KernelError("bad_launch", f"argument {name} of {self.name}() is a {kind}, "
                                  f"not {type(value).__name__}")
            if not kind.is_integer:
                flat.append(kind.dtype.type(value))
                return
            low, high = kind.bounds
            if int(value) != value or not low <= value <= high:
                raise KernelError("bad_launch", f"argument {name} of {self.name}() is {value}, "
                                  f"which {kind} cannot hold")
            known[name] = int(value)
            flat.append(int(value))
            return
        assert isinstance(kind, Pointer)
        array, at = value if isinstance(value, tuple) else (value, 0)
        flat.append(self._array(name, kind, array))
        if at:
            shifted.append(name)
            flat.append(int(at))

    def _array(self, name: str, kind: Pointer, value: Any) -> NDArray[Any]:
        element = types.elements(kind.target)
        if element is None or not isinstance(value, np.ndarray) or \
                value.dtype != element[0].dtype:
            wanted = element[0].dtype if element is not None else kind.target
            found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) \
                else type(value).__name__
            raise KernelError("bad_launch", f"argument {name} of {self.name}() is a {kind}: an "
                              f"array of {wanted}, not {found}")
        if not value.flags.c_contiguous:
            raise KernelError("bad_launch", f"argument {name} of {self.name}() must be a "
                              "C-contiguous array, as a pointer has no strides")
        return value.reshape(-1)

    def launch(self, grid: Dim, block: Dim, *arguments: Any, shared: int = 0, **options: Any
               ) -> LaunchReport:
        """Run the kernel; see `prepare` for arguments, `distlearn.kernels.launch` for options.

        Raises
        ------
        KernelError
            What the kernel does wrong; ``line`` is the C source's.
        SourceError
            The kernel uses what is not understood here.
        """
        kernel, flat = self.prepare(grid, block, *arguments, shared=shared)
        return run(kernel, grid, block, *flat, shared_bytes=shared, **options)

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., LaunchReport]:
        """``kernel[grid, block, stream, shared]``, the last two optional."""
        grid, block, *rest = configuration
        return functools.partial(self.launch, grid, block,
                                 shared=rest[1] if len(rest) > 1 else 0)

    def __repr__(self) -> str:
        return f"<CUDA C kernel {self.name} {self._source.filename}:{self.first_line}>"
