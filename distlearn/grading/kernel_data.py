"""A kernel as plain data: its text, and what the names in it stand for.

What a learner's process hands over to be launched elsewhere. Nothing of it is run to make a kernel
again: the executor reads the text, and names become numbers, arrays, functions of known modules.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from distlearn.kernels import dialect
from distlearn.kernels.kernel import Kernel

_MODULES: dict[str, ModuleType] = {
    module.__name__: module for module in (builtins, math, operator, np)}
_DIALECT: dict[str, Any] = {name: getattr(dialect, name) for name in dialect.NAMES}


def to_data(kernel: Kernel) -> list[dict[str, Any]]:
    """The kernel, and behind it the device functions that it calls.

    Returns
    -------
    list of dict
        ``name``, ``source``, ``file``, ``line``, and ``names``: what each name used stands for.
    """
    found, made = [kernel], list[dict[str, Any]]()
    for one in found:
        names = {}
        for name in {node.id for node in ast.walk(one.tree) if isinstance(node, ast.Name)}:
            try:
                value = one.lookup(name)
            except (NameError, ValueError):  # defined nowhere, or only later
                continue
            if isinstance(value, Kernel) and value not in found:
                found.append(value)
            names[name] = ["kernel", found.index(value)] if isinstance(value, Kernel) \
                else _code(value)
        made.append({"name": one.name, "source": one.source, "file": one.filename,
                     "line": one.first_line, "names": names})
    return made


def from_data(data: list[dict[str, Any]]) -> Kernel:
    """The kernel that `to_data` described.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError, IndexError, SyntaxError
        If it was not made by `to_data`.
    """
    spaces: list[dict[str, Any]] = [{} for _ in data]
    kernels = [_kernel(one, space) for one, space in zip(data, spaces, strict=True)]
    for one, space in zip(data, spaces, strict=True):
        for name, coded in one["names"].items():
            space[name] = kernels[coded[1]] if coded[0] == "kernel" else _decode(*coded)
    return kernels[0]


def _kernel(one: dict[str, Any], space: dict[str, Any]) -> Kernel:
    """Its function is never called: it only names the place and holds the names."""
    code = (lambda: None).__code__.replace(
        co_name=str(one["name"]), co_filename=str(one["file"]), co_firstlineno=int(one["line"]))
    return Kernel(FunctionType(code, space), str(one["source"]))


def _code(value: Any) -> list[Any]:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return ["plain", value]
    if kind is tuple:
        return ["tuple", [_code(item) for item in value]]
    if kind is np.ndarray:
        return ["array", value.dtype.name, value.tolist()]
    if isinstance(value, np.generic):
        return ["scalar", value.dtype.name, value.item()]
    if isinstance(value, np.dtype):
        return ["dtype", value.name]
    if isinstance(value, dialect.Name):
        return ["path", repr(value)]
    if isinstance(value, ModuleType) and _MODULES.get(value.__name__) is value:
        return ["module", value.__name__]
    known = [name for name, item in _DIALECT.items() if item is value]
    if known:
        return ["dialect", known[0]]
    name = getattr(value, "__name__", None)
    for home, module in _MODULES.items():
        if isinstance(name, str) and getattr(module, name, None) is value:
            return ["of", home, name]
    return ["other", kind.__name__]


def _decode(tag: str, *rest: Any) -> Any:
    if tag == "plain":
        return rest[0]
    if tag == "tuple":
        return tuple(_decode(*item) for item in rest[0])
    if tag == "array":
        return np.array(rest[1], np.dtype(rest[0]))
    if tag == "scalar":
        return np.dtype(rest[0]).type(rest[1])
    if tag == "dtype":
        return np.dtype(rest[0])
    if tag == "path":
        head, *parts = str(rest[0]).removeprefix("intrinsics.").split(".")
        found = getattr(dialect, head)
        for part in parts:
            found = getattr(found, part)
        return found
    if tag == "module":
        return _MODULES[rest[0]]
    if tag == "dialect":
        return _DIALECT[rest[0]]
    if tag == "of":
        return getattr(_MODULES[rest[0]], rest[1])
    return type(str(rest[0]), (), {})()  # nothing a kernel can use: the executor says so
