"""Shapes of shared and local arrays: constants, as a compiler lays the arrays out."""

from __future__ import annotations

import ast
import builtins
import functools
from typing import Any

from distlearn.hardware import devices
from distlearn.kernels import names
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel

STATIC_BYTES = 48 * 1024  # of a block: what ptxas allows, CUDA C++ Programming Guide, table 27
CONSTANT_CALLS = (min, max, len, abs, round, int, divmod, builtins.pow)
KNOWN = "must be known when the kernel is compiled (a number, a global, a tuple of them)"


def check_shapes(kernel: Kernel) -> None:
    """Refuse shapes that a launch or a thread decides, in a kernel and in what it calls.

    Raises
    ------
    KernelError
        "unsupported", with the line of the array.
    """
    for name, line in _Shapes(kernel).parameters().items():
        raise KernelError("unsupported", f"the shape of this array {KNOWN}; {name} is an argument "
                          f"of {kernel.name}()", line=line)


def check_static(size: int, dynamic: int, line: int) -> None:
    """Refuse more shared memory than a block's static arrays can have together, in bytes.

    Nor can a block have more than `most_shared` with its ``dynamic`` bytes.
    """
    if size > STATIC_BYTES:
        raise KernelError("unsupported", f"the kernel uses too much shared data ({size:#x} bytes, "
                          f"{STATIC_BYTES:#x} max): 48 KiB for static arrays; cuda.shared.array(0, "
                          "...) has what the launch gives", line=line)
    if size + dynamic > most_shared()[0]:
        _refuse_shared(f"{dynamic:,} beside {size:,} of static arrays", line)


def check_dynamic(shared_bytes: Any) -> None:
    """Refuse dynamic shared memory that no launch can have, in bytes of a block."""
    if not isinstance(shared_bytes, int) or isinstance(shared_bytes, bool) or shared_bytes < 0:
        raise KernelError("bad_launch", f"shared_bytes is {shared_bytes!r}; it is an integer >= 0")
    if shared_bytes > most_shared()[0]:
        _refuse_shared(f"{shared_bytes:,}", 0)


@functools.cache
def most_shared() -> tuple[int, str]:
    """The most shared memory of a block on any GPU of the catalogue, in bytes, and the GPU.

    >>> most_shared()[0] // 1024
    227
    """
    gpus = [spec for spec in devices() if spec.compute_capability is not None]
    most = max(gpus, key=lambda spec: spec.sm.shared_per_block_optin)
    return most.sm.shared_per_block_optin, most.name


def _refuse_shared(given: str, line: int) -> None:
    most, name = most_shared()
    raise KernelError("bad_launch", f"shared_bytes is {given}; a block has at most {most:,} on any "
                      f"GPU of the catalogue ({most // 1024} KiB: {name})", line=line)


class _Shapes:
    """What the shapes in one function depend on."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.local = kernel, names.local_names(kernel.tree)

    def parameters(self, callers: tuple[Kernel, ...] = ()) -> dict[str, int]:
        """Parameters that shapes depend on, each with the line of an array."""
        found: dict[str, int] = {}
        for node in ast.walk(self.kernel.tree):
            if not isinstance(node, ast.Call):
                continue
            callee = names.resolve(self.kernel, self.local, node.func)
            if names.path_of(callee) in ("shared.array", "local.array"):
                sizes = node.args[:1] + [k.value for k in node.keywords if k.arg == "shape"]
            elif isinstance(callee, Kernel) and callee not in callers:
                given = dict(zip(callee.parameters, node.args, strict=False)) | {
                    k.arg: k.value for k in node.keywords if k.arg}
                wanted = _Shapes(callee).parameters((*callers, self.kernel))
                sizes = [given[name] for name in wanted if name in given]
            else:
                continue
            for size in sizes:
                for name in self._depends(size, node.lineno, frozenset()):
                    found.setdefault(name, node.lineno)
        return found

    def _depends(self, node: ast.expr, line: int, seen: frozenset[str]) -> set[str]:
        """Parameters that an expression needs.

        Raises
        ------
        KernelError
            It needs what only a thread or a launch knows.
        """
        if isinstance(node, ast.Name):
            return self._name(node.id, line, seen)
        if isinstance(node, ast.Attribute):
            value = names.resolve(self.kernel, self.local, node)
            if value is None or names.path_of(value):
                self._refuse(f"{ast.unparse(node)} is not", line)
            return set()
        if isinstance(node, ast.Call):
            callee = names.resolve(self.kernel, self.local, node.func)
            if names.path_of(callee) or not (callee in CONSTANT_CALLS or callee in names.CASTS
                                             or names.math_name(callee)):
                self._refuse(f"{ast.unparse(node)} is not", line)
            parts: list[ast.AST] = list(node.args)
        else:
            parts = list(ast.iter_child_nodes(node))
        return {name for part in parts if isinstance(part, ast.expr)
                for name in self._depends(part, line, seen)}

    def _name(self, name: str, line: int, seen: frozenset[str]) -> set[str]:
        """What a name needs: all that it is given anywhere."""
        if name not in self.local or name in seen:
            return set()
        found = {name} & set(self.kernel.parameters)
        for node in ast.walk(self.kernel.tree):
            if isinstance(node, ast.Assign):
                for value in names.given(node, name):
                    found |= self._depends(value, line, seen | {name})
            elif isinstance(node, ast.AugAssign | ast.For) and any(
                    isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.target)):
                self._refuse(f"{name} changes", line)
        return found

    def _refuse(self, reason: str, line: int) -> None:
        raise KernelError("unsupported", f"the shape of this array {KNOWN}; {reason}", line=line)
