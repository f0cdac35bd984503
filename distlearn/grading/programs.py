"""Answers that are not just called: kernels to launch, programs of a cube core to play.

Each kind says which module of this package performs it (its `performer`), how its head looks, and
how a case of it reads. `RankProgram` is the third of the kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from distlearn.grading.calling import Perform


@dataclass(frozen=True)
class KernelProgram:
    """The function is a GPU kernel, or gives the text of one, to be launched on arrays.

    The arguments of a case are grid, block, and what the kernel takes. Where a parameter is in
    ``outputs`` the case gives the shape of the array; lists become arrays.

    Attributes
    ----------
    outputs : tuple of str
        What the kernel writes; the first of them is compared.
    start : float
        What outputs hold before the launch.
    language : str
        ``"python"``, ``@cuda.jit def name(out, a)``, or ``"cuda"``, a plain function without
        parameters that returns the text of a CUDA C source.
    kernel : str
        The name of the kernel in that text.
    """

    outputs: tuple[str, ...] = ("out",)
    start: float = float("nan")
    language: str = "python"
    kernel: str = ""
    harness: ClassVar[str] = "kernel_program"

    def head(self, function: str, parameters: Sequence[str]) -> str:
        """``def scale(out, a, n)``."""
        return f"def {self.signature(function, parameters)}"

    def signature(self, function: str, parameters: Sequence[str]) -> str:
        """``scale(out, a, n)``."""
        return f"{function}({', '.join(parameters[2:] if self.language == 'python' else ())})"

    def call_text(self, function: str, named: Mapping[str, Any], width: int) -> str:
        """``scale[2, 32](out, a, n=50): out of 50, a of 50``."""
        (_, grid), (_, block), *rest = named.items()
        numbers = [f"{name}={value}" if isinstance(value, int | float) and name not in self.outputs
                   else name for name, value in rest]
        arrays = [f"{name} of {_size(value if name in self.outputs else shape(value))}"
                  for name, value in rest
                  if name in self.outputs or not isinstance(value, int | float)]
        return (f"{self.kernel or function}[{_size(grid)}, {_size(block)}]({', '.join(numbers)}): "
                f"{', '.join(arrays)}")[:width]


@dataclass(frozen=True)
class CubeProgram:
    """The function writes a program for a cube core, ``name(core, A, B, C)``: C = A @ B in float32.

    The arguments of a case are A and B, small halves, which become float16.

    Attributes
    ----------
    device : str
        An Ascend of the catalogue.
    """

    device: str = "Ascend-910B2"
    harness: ClassVar[str] = "cube_program"

    def head(self, function: str, parameters: Sequence[str]) -> str:
        """``def multiply(core, A, B, C)``."""
        return f"def {self.signature(function, parameters)}"

    def signature(self, function: str, parameters: Sequence[str]) -> str:
        """``multiply(core, A, B, C)``."""
        return f"{function}(core, {', '.join(parameters)}, C)"

    def call_text(self, function: str, named: Mapping[str, Any], width: int) -> str:
        """``multiply(core, A, B, C): A of (16, 32), B of (32, 16)``."""
        arrays = ", ".join(f"{name} of {shape(value)}" for name, value in named.items())
        return f"{self.signature(function, tuple(named))}: {arrays}"[:width]


def performer(how: Mapping[str, Any]) -> Perform:
    """How to call an answer: what `Question.how` says, as data."""
    options = dict(how)
    module = importlib.import_module(f"distlearn.grading.{options.pop('harness')}")
    made: Perform = module.performer(**options)
    return made


def shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists.

    >>> shape([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (2, 3)
    """
    return (len(value), *shape(value[0])) if isinstance(value, list | tuple) and value else ()


def _size(value: Any) -> str:
    """``(2, 3)``, and ``2`` for a single number."""
    sizes = tuple(value) if isinstance(value, list | tuple) else (value,)
    return str(sizes[0]) if len(sizes) == 1 else str(sizes)
