"""What a compiler makes of a loop that reads neighbouring shared words: 16 bytes an instruction.

``for j in range(8): b[j] = Bs[k, 8 * x + j]`` unrolls to eight loads of consecutive words; nvcc
makes two of them, if it can prove that the address is a multiple of 16 bytes. Here the launch
proves it: a launch of the merged kernel that finds a misaligned address is thrown away.
"""

from __future__ import annotations

import ast
import copy
import types

from distlearn.kernels import names
from distlearn.kernels.intrinsics import load4
from distlearn.kernels.kernel import Kernel

_LOAD = "_merged_load4"


def merged(kernel: Kernel) -> Kernel | None:
    """The kernel with such loops merged by fours; None if it has none.

    A loop is merged if its bounds are ``range(n)``, n a multiple of 4, and it only copies from a
    shared array, whose last index ends in ``+ j``, to a local array.
    """
    merger = _Merger(kernel)
    tree = merger.visit(copy.deepcopy(kernel.tree))
    if not merger.found:
        return None
    made = copy.copy(kernel)
    function = kernel.function
    made.function = types.FunctionType(
        function.__code__, {**function.__globals__, _LOAD: load4}, function.__name__,
        function.__defaults__, function.__closure__)
    made.tree = ast.fix_missing_locations(tree)
    return made


class _Merger(ast.NodeTransformer):
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.found = kernel, 0
        self.local = names.local_names(kernel.tree)
        self.arrays: dict[str, str] = {}
        for node in ast.walk(kernel.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(
                    node.targets[0], ast.Name):
                path = names.path_of(names.resolve(kernel, self.local, node.value.func))
                self.arrays[node.targets[0].id] = path

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Merge the loop, or those inside of it."""
        self.generic_visit(node)
        if not (len(node.body) == 1 and isinstance(node.target, ast.Name)
                and isinstance(node.iter, ast.Call) and len(node.iter.args) == 1):
            return node
        statement, j = node.body[0], node.target.id
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return node
        target, value = statement.targets[0], statement.value
        if not (self._of(target, "local.array") and self._of(value, "shared.array")
                and self._count(node.iter.args[0]) % 4 == 0):
            return node
        assert isinstance(target, ast.Subscript) and isinstance(value, ast.Subscript)
        last = value.slice.elts[-1] if isinstance(value.slice, ast.Tuple) else value.slice
        if not (isinstance(last, ast.BinOp) and isinstance(last.op, ast.Add)
                and isinstance(last.right, ast.Name) and last.right.id == j
                and isinstance(target.slice, ast.Name) and target.slice.id == j):
            return node
        self.found += 1
        to, source, index = (ast.unparse(part) for part in
                             (target.value, value.value, value.slice))
        text = (f"for {j} in range(0, {ast.unparse(node.iter.args[0])}, 4):\n"
                f"    _four = {_LOAD}({source}, ({index}))\n")
        text += "".join(f"    {to}[{j} + {n}] = _four.{part}\n" for n, part in enumerate("xyzw"))
        made = ast.parse(text).body[0]
        for part in ast.walk(made):
            if hasattr(part, "lineno"):
                ast.copy_location(part, statement)
        return made

    def _of(self, node: ast.expr, kind: str) -> bool:
        return (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
                and self.arrays.get(node.value.id) == kind)

    def _count(self, node: ast.expr) -> int:
        value = node.value if isinstance(node, ast.Constant) else names.resolve(
            self.kernel, self.local, node)
        return value if isinstance(value, int) and value > 0 else 1
