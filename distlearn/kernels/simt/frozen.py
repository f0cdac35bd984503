"""A kernel's code kept from launch to launch, while the names in it stand for the same things."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.dialect import Name
from distlearn.kernels.inference import of_value
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.shapes import check_shapes
from distlearn.kernels.simt.compiling import Code
from distlearn.kernels.unify import unified

Chain = tuple[str, ...]  # ("config", "TILE") for config.TILE


class Frozen(NamedTuple):
    """What a kernel was compiled to, and what its names and those of its callees stood for."""

    types: tuple[Any, ...]
    codes: dict[Kernel, Code]
    trees: list[tuple[Kernel, ast.FunctionDef]]
    meanings: list[tuple[Kernel, Chain, Any]]

    def holds(self) -> bool:
        """Whether compiling again would give the same."""
        return all(kernel.tree is tree for kernel, tree in self.trees) and all(
            _meaning(kernel, chain) is value for kernel, chain, value in self.meanings)


def codes_of(kernel: Kernel, arguments: list[Any]) -> dict[Kernel, Code]:
    """The code of a kernel and of the device functions it calls; of the last launch if it can be.

    A name may stand for something else at each launch. Whoever names an array is compiled again:
    its elements may have changed.
    """
    kept: Frozen | None = kernel.kept
    types = tuple(map(of_value, arguments))
    if kept is not None and kept.types == types and kept.holds():
        return kept.codes
    codes: dict[Kernel, Code] = {}
    check_shapes(kernel)
    Code(kernel, codes, unified(kernel, types))
    meanings = [(one, chain, _meaning(one, chain)) for one, code in codes.items()
                for chain in {**dict.fromkeys(_chains(one.tree)),
                              **dict.fromkeys(_chains(code.tree))}]
    kernel.kept = None if any(_holds_array(value) for _, _, value in meanings) else Frozen(
        types, codes, [(one, one.tree) for one in codes], meanings)
    return codes


def _chains(tree: ast.FunctionDef) -> Iterator[Chain]:
    """Every name and chain of attributes that does not begin with a local name."""
    local = names.local_names(tree)
    found: list[ast.AST] = list(tree.body)
    while found:
        node = found.pop()
        attributes: list[str] = []
        end = node
        while isinstance(end, ast.Attribute):
            attributes.append(end.attr)
            end = end.value
        if not isinstance(end, ast.Name):
            found += ast.iter_child_nodes(node)
        elif end.id not in local:
            yield (end.id, *reversed(attributes))


def _meaning(kernel: Kernel, chain: Chain) -> Any:
    """What a chain stands for; None if nothing."""
    try:
        value = kernel.lookup(chain[0])
        for attribute in chain[1:]:
            if isinstance(value, Name):  # its attributes are made anew each time, always the same
                break
            value = getattr(value, attribute)
    except (NameError, ValueError, AttributeError):
        return None
    return value


def _holds_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (
        isinstance(value, tuple) and any(map(_holds_array, value)))
