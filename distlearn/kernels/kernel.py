"""A kernel: a Python function whose syntax tree the executors read, and the ways to launch it."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from distlearn.kernels import dialect
from distlearn.kernels.errors import KernelError

if TYPE_CHECKING:
    from distlearn.kernels.report import LaunchReport

Dim = int | tuple[int, ...] | list[int]


class Kernel:
    """A function in ``numba.cuda``'s spelling; ``kernel[grid, block](*arguments)`` launches it.

    Attributes
    ----------
    name : str
    tree : ast.FunctionDef
        Its syntax tree; line numbers are those of the source file.
    source : str
    filename : str
    """

    kept: Any = None  # what the fast executor has compiled; see `distlearn.kernels.simt.frozen`

    def __init__(self, function: Callable[..., Any], source: str | None = None) -> None:
        self.function = function
        self.name = function.__name__
        self.filename = function.__code__.co_filename
        first = function.__code__.co_firstlineno
        if source is None:
            try:
                source = inspect.getsource(function)
            except (OSError, TypeError):
                raise KernelError("unsupported", f"the source text of {self.name}() cannot be "
                                  "read; make kernels of text with kernels_from_text()") from None
        self.source = source
        self.first_line = first
        tree = ast.parse(textwrap.dedent(source)).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise KernelError("unsupported", f"{self.name} is no function written with def")
        ast.increment_lineno(tree, first - 1)
        self.tree = tree
        functools.update_wrapper(self, function)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(a.arg for a in self.tree.args.args)

    def lookup(self, name: str) -> Any:
        """The value of a name that is not local: a closure's, a module's, or the dialect's."""
        code = self.function.__code__
        if name in code.co_freevars and self.function.__closure__:
            return self.function.__closure__[code.co_freevars.index(name)].cell_contents
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        if name in dialect.NAMES:
            return getattr(dialect, name)
        raise NameError(f"{self.name}() uses {name!r}, which is defined nowhere")

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., LaunchReport]:
        """``kernel[grid, block, stream, shared_bytes]``: numba's launch; streams mean nothing."""
        from distlearn.kernels.launch import launch

        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise KernelError("bad_launch", f"{self.name}[...] takes a grid and a block, and if "
                              "need be a stream and bytes of dynamic shared memory")
        grid, block = configuration[:2]
        return functools.partial(launch, self, grid, block,
                                 shared_bytes=configuration[3] if len(configuration) > 3 else 0)

    def __call__(self, *_: Any) -> Any:
        """Refuse, and say how a kernel is launched."""
        raise KernelError("bad_launch", f"launch {self.name} with {self.name}[grid, block](...); "
                          "calling it like a function is for kernels themselves")

    def __repr__(self) -> str:
        return f"<kernel {self.name} {self.filename}:{self.first_line}>"


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function written in ``numba.cuda``'s spelling.

    Raises
    ------
    KernelError
        "unsupported": the source text cannot be read.
    """
    return function if isinstance(function, Kernel) else Kernel(function)


def kernels_from_text(text: str, filename: str = "<kernels>") -> dict[str, Kernel]:
    """Every function of a module's text as a kernel, by name; the text is executed once.

    The names of `distlearn.kernels.dialect` are defined for it: ``cuda``, ``float32``, ...
    """
    lines = text.splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    space: dict[str, Any] = {name: getattr(dialect, name) for name in dialect.NAMES}
    exec(compile(text, filename, "exec"), space)
    made = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            function = space[node.name]
            if not isinstance(function, Kernel):
                first = node.lineno
                function = Kernel(function, "".join(lines[first - 1:node.end_lineno]))
            made[node.name] = function
            space[node.name] = function
    return made
