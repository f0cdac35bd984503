"""Types of a kernel's expressions, as far as they are known before it runs.

Numbers are "i8" (integers that numba holds in 32 or 64 bits), "i2" (narrower ones and truths),
"f2", "f4", "f8" and "b2" (bfloat16); arrays and tuples have what they hold. Operations give what
the executors compute; names give what numba.cuda holds them in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from distlearn.kernels import names
from distlearn.kernels.errors import KernelError
from distlearn.kernels.flow import Definition, Flow
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.memory import Global

UNKNOWN, NOTHING = "?", "-"  # not known; nothing yet, while types are looked for
SIZES = {"f2": 2, "f4": 4, "f8": 8}


class Array(NamedTuple):
    """An array's type."""

    element: str
    axes: int


class Items(NamedTuple):
    """A tuple's type."""

    types: tuple[Any, ...]


def of_dtype(dtype: Any) -> str:
    """The type of elements.

    >>> of_dtype(np.float32), of_dtype(np.int32), of_dtype(np.bool_)
    ('f4', 'i8', 'i2')
    """
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return f"f{kind.itemsize}"
    if kind.kind in "iub":
        return "i8" if kind.itemsize >= 4 else "i2"
    return "b2"


def of_value(value: Any) -> Any:
    """The type of an argument or a global."""
    if isinstance(value, Global | np.ndarray):
        return Array(of_dtype(value.dtype), len(value.shape))
    if isinstance(value, tuple):
        return Items(tuple(map(of_value, value)))
    if isinstance(value, bool | np.bool_):
        return "i2"
    if isinstance(value, int):
        return "i8"
    if isinstance(value, float):
        return "f8"
    return of_dtype(value.dtype) if isinstance(value, np.generic) else UNKNOWN


def union(types: Iterable[Any]) -> Any:
    """The type that holds values of all of these, as numba unifies them.

    >>> union(["i8", "f4"]), union(["i2", "f4"]), union(["f2", "f4"])
    ('f8', 'f4', 'f4')
    """
    made: Any = NOTHING
    for kind in sorted(set(types) - {NOTHING}, key=str):
        if made in (NOTHING, kind):
            made = kind
        elif {made, kind} <= SIZES.keys():
            made = max(made, kind)
        elif {made, kind} == {"i2", "i8"}:
            made = "i8"
        elif {made, kind} <= SIZES.keys() | {"i2", "i8"}:
            whole, real = sorted({made, kind}, key=lambda k: k in SIZES)
            made = "f8" if whole == "i8" else real if real != "f2" else UNKNOWN
        else:
            return UNKNOWN
        if made == UNKNOWN:
            return UNKNOWN
    return made


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """The type of ``a op b`` as executors compute it."""
    whole = ("i2", "i8")
    if NOTHING in (a, b):
        return NOTHING
    if a in whole and b in whole:
        return "f8" if op == "Div" else UNKNOWN if op == "Pow" else "i8"
    if op == "Pow" and a in SIZES and b in whole:
        return a
    if a in SIZES and b in SIZES:
        return max(a, b)
    return "f8" if (a in SIZES or b in SIZES) and (a in whole or b in whole) else UNKNOWN


class Function:
    """One function called with arguments of certain types."""

    def __init__(self, inference: Inference, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self.inference, self.kernel, self.arguments = inference, kernel, arguments
        self.local = names.local_names(kernel.tree)
        self.flow = Flow(kernel)
        self.types: dict[Definition, Any] = {}
        self.returns: Any = NOTHING
        for _ in range(12):
            before = dict(self.types), self.returns
            self.types = {d: self._define(d) for d in self.flow.definitions}
            self.returns = union(NOTHING if value is None else self.type_of(value)
                                 for value in self.flow.returns.values())
            if before == (self.types, self.returns):
                return
        self.types = dict.fromkeys(self.types, UNKNOWN)  # it does not come to an end
        self.returns = UNKNOWN

    def of_definition(self, definition: Definition) -> Any:
        """The type of the value that a name is given."""
        return self.types.get(definition, NOTHING)

    def _define(self, d: Definition) -> Any:
        if d.how == "parameter":
            return self.arguments[d.at] if d.at < len(self.arguments) else UNKNOWN
        if d.how == "step":
            assert isinstance(d.node, ast.AugAssign)
            old = union(self.of_definition(other) for other in self.flow.reaching[d.node])
            return arithmetic(type(d.node.op).__name__, old, self.type_of(d.node.value))
        if not isinstance(d.node, ast.expr) or d.how == "unknown":
            return UNKNOWN
        if d.how == "loop":
            is_range = isinstance(d.node, ast.Call) and self.resolve(d.node.func) is range
            return "i8" if is_range else UNKNOWN
        made = self.type_of(d.node)
        if d.how == "item":
            return made.types[d.at] if isinstance(made, Items) and d.at < len(
                made.types) else NOTHING if made == NOTHING else UNKNOWN
        return made if d.how == "value" else UNKNOWN

    def resolve(self, node: ast.expr) -> Any:
        """What a name or chain stands for, None if it is local or nothing."""
        try:
            return names.resolve(self.kernel, self.local, node)
        except KernelError:
            return None

    def type_of(self, node: ast.expr) -> Any:
        """The type of an expression."""
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
        return UNKNOWN if method is None else method(node)

    def of_constant(self, node: ast.Constant) -> Any:
        """The type of a `constant`."""
        return of_value(node.value)

    def of_name(self, node: ast.Name) -> Any:
        """The type of a `name`."""
        if node.id in self.local:
            return union(self.of_definition(d) for d in self.flow.reaching.get(node, ()))
        return of_value(self.resolve(node))

    def of_namedexpr(self, node: ast.NamedExpr) -> Any:
        """The type of a `namedexpr`."""
        return self.type_of(node.value)

    def of_tuple(self, node: ast.Tuple) -> Any:
        """The type of a `tuple`."""
        return Items(tuple(map(self.type_of, node.elts)))

    def of_binop(self, node: ast.BinOp) -> Any:
        """The type of a `binop`."""
        return arithmetic(type(node.op).__name__, self.type_of(node.left),
                          self.type_of(node.right))

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        """The type of a `unaryop`."""
        made = self.type_of(node.operand)
        if isinstance(node.op, ast.Not):
            return "i2"
        return "i8" if made == "i2" else made

    def of_compare(self, node: ast.Compare) -> Any:
        """The type of a `compare`."""
        return "i2"

    def of_boolop(self, node: ast.BoolOp) -> Any:
        """The type of a `boolop`."""
        return union(map(self.type_of, node.values))

    def of_ifexp(self, node: ast.IfExp) -> Any:
        """The type of a `ifexp`."""
        return union([self.type_of(node.body), self.type_of(node.orelse)])

    def of_attribute(self, node: ast.Attribute) -> Any:
        """The type of a `attribute`."""
        known = self.resolve(node)
        if known is not None:
            return "i8" if names.path_of(known) else of_value(known)
        base = self.type_of(node.value)
        if base == NOTHING:
            return NOTHING
        if isinstance(base, Array):
            return {"shape": Items(("i8",) * base.axes), "strides": Items(("i8",) * base.axes),
                    "T": base, "size": "i8", "ndim": "i8", "itemsize": "i8", "nbytes": "i8"
                    }.get(node.attr, UNKNOWN)
        return UNKNOWN

    def of_subscript(self, node: ast.Subscript) -> Any:
        """The type of a `subscript`."""
        base = self.type_of(node.value)
        if isinstance(base, Items):
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            inside = isinstance(at, int) and -len(base.types) <= at < len(base.types)
            return base.types[at] if inside and isinstance(at, int) else union(base.types)
        if not isinstance(base, Array):
            return base if base == NOTHING else UNKNOWN
        if isinstance(node.slice, ast.Slice):
            return base
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        single = self.type_of(node.slice) if len(given) == 1 else None
        count = len(single.types) if isinstance(single, Items) else sum(
            not isinstance(part, ast.Slice) for part in given)
        return base.element if count == base.axes else Array(base.element, base.axes - count)

    def of_call(self, node: ast.Call) -> Any:
        """The type of a `call`."""
        callee = self.resolve(node.func)
        path = names.path_of(callee)
        arguments = [self.type_of(argument) for argument in node.args]
        if isinstance(callee, Kernel):
            given = dict(zip(callee.parameters, arguments, strict=False)) | {
                k.arg: self.type_of(k.value) for k in node.keywords}
            return self.inference.run(callee, tuple(
                given.get(name, UNKNOWN) for name in callee.parameters))
        if path:
            return self._cuda(path, node, arguments)
        function = names.math_name(callee)
        if function:
            return self._math(function, arguments)
        try:
            if callee in names.CASTS:
                return of_dtype(names.CASTS[callee])
            if callee in names.EXTREMES:
                return self._together(arguments)
        except TypeError:
            return UNKNOWN
        if callee in (abs, np.abs):
            return "i8" if arguments[:1] == ["i2"] else arguments[0] if arguments else UNKNOWN
        if callee is round and arguments:
            return "i8" if len(arguments) == 1 else arguments[0]
        return "i8" if callee is len else UNKNOWN

    def _together(self, arguments: list[Any]) -> Any:
        made = arguments[0] if arguments else UNKNOWN
        for kind in arguments[1:]:
            made = arithmetic("Add", made, kind)
        return made

    def _math(self, function: str, arguments: list[Any]) -> Any:
        if function in ("isnan", "isinf", "isfinite"):
            return "i2"
        if function in ("frexp", "modf", "ldexp"):
            return UNKNOWN
        return self._together(["f8" if kind in ("i2", "i8") else kind for kind in arguments])

    def _cuda(self, path: str, node: ast.Call, arguments: list[Any]) -> Any:
        keywords = {k.arg: k.value for k in node.keywords}
        if path in ("shared.array", "local.array"):
            shape = [*node.args[:1], *filter(None, [keywords.get("shape")])]
            kinds = [*node.args[1:2], *filter(None, [keywords.get("dtype")])]
            kind = self.resolve(kinds[0]) if kinds else None
            size = self.type_of(shape[0]) if shape else UNKNOWN
            try:
                element = of_dtype(names.CASTS[kind])
            except (KeyError, TypeError):
                return UNKNOWN
            return Array(element, len(size.types) if isinstance(size, Items) else 1)
        if path in ("grid", "gridsize"):
            axes = node.args[0].value if node.args and isinstance(
                node.args[0], ast.Constant) else None
            return "i8" if axes == 1 else Items(("i8",) * axes) if isinstance(
                axes, int) else UNKNOWN
        if path.startswith("atomic."):
            return arguments[0].element if arguments and isinstance(
                arguments[0], Array) else UNKNOWN
        if path in names.SHUFFLES:
            return arguments[1] if len(arguments) > 1 else UNKNOWN
        if path == "selp":
            return union(arguments[1:])
        if path in ("fma", "cbrt"):
            return self._math(path, arguments)
        if path.startswith("libdevice.") and path[10:] in names.SAME_BITS:
            return of_dtype(names.SAME_BITS[path[10:]][1])
        if path in ("all_sync", "any_sync", "eq_sync"):
            return "i2"
        if path in (*names.BITS, "ballot_sync", "activemask", "match_any_sync", "lanemask_lt",
                    "syncthreads_count", "syncthreads_and", "syncthreads_or"):
            return "i8"
        return UNKNOWN


class Inference:
    """Functions of a launch, each by the types that it is called with."""

    def __init__(self) -> None:
        self.runs: dict[Kernel, dict[tuple[Any, ...], Function]] = {}
        self._busy: set[tuple[Kernel, tuple[Any, ...]]] = set()

    def run(self, kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
        """The type of what a function returns."""
        if NOTHING in arguments:
            return NOTHING
        known = self.runs.setdefault(kernel, {})
        if arguments not in known:
            if (kernel, arguments) in self._busy:
                return UNKNOWN
            self._busy.add((kernel, arguments))
            known[arguments] = Function(self, kernel, arguments)
            self._busy.discard((kernel, arguments))
        return known[arguments].returns
