"""Launch a learner's kernel; say what is in its output, and what the launch was counted in.

Used in the notebook and in the worker process, like `calling`. The executor reads the kernel's
text, so nothing of the learner's code runs in a launch; the grader launches it in a process of its
own, in which no learner's code has been.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from distlearn.grading.calling import Measured, Trouble
from distlearn.grading.kernel_data import from_data, to_data
from distlearn.kernels import simt as _simt  # noqa: F401 - loaded before the learner's code
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.launch import launch
from distlearn.kernels.report import LaunchReport

_SHARED = ("shared_load", "shared_store")


def performer(
    function: str, parameters: Sequence[str], outputs: Sequence[str], start: float, language: str,
    kernel: str,
) -> Measured:
    """How to launch a kernel: ``perform(kernel, [grid, block, *arguments])``.

    Parameters
    ----------
    function : str
        Its name, for messages.
    parameters : sequence of str
        With grid and block, in the order of the arguments.
    outputs, start, language, kernel
        See `KernelProgram`.

    Returns
    -------
    callable
        It returns a dict of plain data: ``out``, the first output; ``counters``, by name; and
        ``lines``: number, text and counters of each line of the source. It raises `Trouble`.
    """
    if language == "cuda":
        from distlearn.kernels import cuda_c as _cuda_c  # noqa: F401 - before the learner's clock

    def take(answer: Any, args: list[Any]) -> dict[str, Any]:
        if language == "cuda":
            return {"text": _text(answer)}
        return {"kernel": _checked(answer, function, parameters[2:])}

    def measure(taken: dict[str, Any], args: list[Any]) -> dict[str, Any]:
        grid, block, *values = args
        arrays = [_argument(value, name in outputs, start)
                  for name, value in zip(parameters[2:], values, strict=True)]
        if language == "cuda":
            report = _launch_text(taken["text"], kernel, _dim(grid), _dim(block), arrays)
        else:
            report = _launch(from_data(taken["kernel"]), _dim(grid), _dim(block), arrays)
        out = arrays[list(parameters).index(outputs[0]) - 2]
        return {"out": out, **_counted(report)}

    return Measured(take, measure)


def _argument(value: Any, output: bool, start: float) -> Any:
    if output:
        return np.full(tuple(value) if isinstance(value, list | tuple) else value, start,
                       np.float32)
    if isinstance(value, list | tuple):
        whole = all(type(x) is int for x in _flat(value))
        return np.array(value, np.int32 if whole else np.float32)
    return np.float32(value) if isinstance(value, float) else value


def _flat(value: Any) -> list[Any]:
    return [x for item in value for x in _flat(item)] if isinstance(value, list | tuple) \
        else [value]


def _checked(answer: Any, function: str, parameters: Sequence[str]) -> list[dict[str, Any]]:
    """A kernel in numba.cuda's spelling, as data.

    Raises
    ------
    NotImplementedError
        For a kernel that is not written yet.
    Trouble
        If it is no kernel, or takes something else.
    """
    if not isinstance(answer, Kernel):
        raise Trouble("plain_def", function)
    if _is_stub(answer.tree):
        raise NotImplementedError
    if len(answer.parameters) != len(parameters):
        raise Trouble("arguments", f"it has the parameters ({', '.join(answer.parameters)})")
    return to_data(answer)


def _launch(answer: Kernel, grid: Any, block: Any, arrays: list[Any]) -> LaunchReport:
    """Launch a kernel.

    Raises
    ------
    Trouble
        For anything that is wrong with it.
    """
    try:
        return launch(answer, grid, block, *arrays)
    except KernelError as error:
        place = f"{answer.filename}:{error.line}" if error.line else ""
        raise Trouble("kernel", _message(error), place) from None
    except (NameError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Trouble("kernel", f"unsupported: {type(error).__name__}: {error}") from None


def _text(answer: Any) -> str:
    """What the learner's function returns, if it is text."""
    text = answer()
    if type(text) is not str:
        raise Trouble("kernel", "source: it returned "
                      f"{'None' if text is None else f'a {type(text).__name__}'}, and the text of "
                      "a CUDA C kernel is asked for")
    return text


def _launch_text(text: str, kernel: str, grid: Any, block: Any, arrays: list[Any]) -> LaunchReport:
    """Launch a kernel of a CUDA C source; errors as `_launch`."""
    from distlearn.kernels.cuda_c import HostError, SourceError, load

    try:
        program = load(text + "\n")
        if kernel not in program.kernels:
            names = ", ".join(program.kernels) or "none"
            raise Trouble("kernel", f"source: the text needs a kernel `{kernel}`; it has {names}")
        return program[kernel][grid, block](*arrays)
    except SourceError as error:
        raise Trouble("kernel", f"source: line {error.lineno} of the text: {error.reason}"
                      f"{_line(text, error.lineno)}") from None
    except HostError as error:
        raise Trouble("kernel", f"source: {error.reason}") from None
    except KernelError as error:
        line = f", on line {error.line} of the text{_line(text, error.line)}" if error.line else ""
        raise Trouble("kernel", f"{_message(error)}{line}") from None


def _message(error: KernelError) -> str:
    return f"{error.kind}: {error.message}"


def _line(text: str, number: int | None) -> str:
    lines = text.splitlines()
    return f", `{lines[number - 1].strip()[:60]}`" if number and number <= len(lines) else ""


def _dim(size: Any) -> int | tuple[int, ...]:
    return tuple(size) if isinstance(size, list | tuple) else size


def _is_stub(tree: ast.FunctionDef) -> bool:
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def _counted(report: LaunchReport) -> dict[str, Any]:
    """Counters in all and per line, with those that questions ask for."""
    warps = prod(report.grid) * -(-prod(report.block) // 32)

    def more(counters: dict[str, int]) -> dict[str, Any]:
        made: dict[str, Any] = dict(counters)
        made["global_sectors"] = counters.get("global_load_sectors", 0) + counters.get(
            "global_store_sectors", 0)
        made["shared_requests"] = sum(counters.get(f"{way}_requests", 0) for way in _SHARED)
        made["bank_conflicts"] = sum(counters.get(f"{way}_wavefronts", 0) for way in _SHARED
                                     ) - made["shared_requests"]
        made["barriers"] = -(-counters.get("barrier_warps", 0) // warps)
        return {name: count for name, count in made.items() if count}

    lines = enumerate(report.source.rstrip().splitlines(), report.first_line)
    by_line = report.counters.by_line
    return {"counters": more(dict(report.counters)),
            "lines": [[number, line[:100], more(by_line.get(number, {}))]
                      for number, line in lines]}


