"""Functions that every kernel in CUDA C may call."""

from __future__ import annotations

import ast
from typing import Any

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.declaring import Declaring
from distlearn.kernels.cuda_c.types import (
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    UINT,
    ULONG,
    Number,
    Struct,
)
from distlearn.kernels.cuda_c.values import (
    WIDE,
    Nothing,
    Record,
    Result,
    Value,
    binop,
    call,
    name,
)

MATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "fabs", "log2", "exp2",
        "isnan", "isinf", "isfinite", "pow", "atan2", "sinh", "cosh", "asin", "acos", "atan",
        "asinh", "acosh", "atanh", "log10", "log1p", "expm1", "erf", "erfc", "hypot", "fmod",
        "trunc", "copysign")
TWO = ("pow", "atan2", "hypot", "fmod", "copysign")
ONE_ARGUMENT = {f"{prefix}{word}{suffix}": (word, suffix == "f" or None)
                for word in MATH for prefix, suffix in (("", ""), ("", "f"), ("__", "f"))}
ONE_ARGUMENT |= {"__fsqrt_rn": ("sqrt", True)}
EXTREMES = {"fmaxf": "max", "fmax": "max", "max": "max", "umax": "max",
            "fminf": "min", "fmin": "min", "min": "min", "umin": "min"}
ATOMICS = {"atomicAdd": "add", "atomicSub": "sub", "atomicMax": "max", "atomicMin": "min",
           "atomicExch": "exch", "atomicCAS": "cas", "atomicAnd": "and_", "atomicOr": "or_",
           "atomicXor": "xor", "atomicInc": "inc", "atomicDec": "dec"}
SHUFFLES = {"__shfl_sync": "shfl_sync", "__shfl_up_sync": "shfl_up_sync",
            "__shfl_down_sync": "shfl_down_sync", "__shfl_xor_sync": "shfl_xor_sync"}
VOTES = {"__ballot_sync": "ballot_sync", "__all_sync": "all_sync", "__any_sync": "any_sync"}
BITS = {f"__{word}{suffix}": (word, kind) for word in ("popc", "ffs", "clz", "brev")
        for suffix, kind in (("", UINT), ("ll", LONG))}
NOT_MODELLED = {
    "printf": "printf has no place in a kernel here: store what you want to see",
    "assert": "assert has no place in a kernel here: out-of-bounds accesses and races are found "
              "without it",
    "clock": "clocks are not modelled: read the counters", "clock64": "clocks are not modelled",
    "malloc": "memory is not allocated inside a kernel", "free": "memory is not allocated inside "
    "a kernel",
}


class Intrinsics(Declaring):
    """The part of a function's translation that calls what CUDA brings along."""

    def intrinsic(self, word: str, arguments: list[Any], node: Any) -> Result | None:
        """The result of a function of CUDA's; None if there is none of this name."""
        if word in NOT_MODELLED:
            self.no(NOT_MODELLED[word], node)
        if word == "__syncthreads":
            self._count(word, arguments, 0, node)
            return Nothing(call("cuda.syncthreads"))
        if word == "__syncwarp":
            return Nothing(call("cuda.syncwarp"))
        if word == "__activemask":
            self._count(word, arguments, 0, node)
            return Value(call("cuda.activemask"), UINT, UINT.bounds)
        if word in ("__threadfence", "__threadfence_block", "__threadfence_system"):
            return Value(ast.Constant(0), INT, (0, 0), True)
        if word in ATOMICS:
            return self._atomic(word, arguments, node)
        if word in SHUFFLES:
            return self._shuffle(word, arguments, node)
        if word in VOTES:
            self._count(word, arguments, 2, node)
            mask, test = self.value(arguments[0]), self.truth(arguments[1])
            made = call(f"cuda.{VOTES[word]}", mask.code, test)
            if word == "__ballot_sync":  # numba's is signed
                made = call("uint32", made)
            return Value(made, UINT if word == "__ballot_sync" else INT,
                         UINT.bounds if word == "__ballot_sync" else (0, 1))
        if word in BITS:
            self._count(word, arguments, 1, node)
            function, kind = BITS[word]
            value = self.convert(self.value(arguments[0]), kind)
            made = call(f"cuda.{function}", call("uint32" if kind == UINT else "int64",
                                                 value.code))
            if function == "brev":
                return Value(made, UINT if kind == UINT else ULONG, kind.bounds)
            return Value(made, INT, (0, 8 * kind.size))
        if word == "__ldg":
            self._count(word, arguments, 1, node)
            return self.read(self.at(self.address(arguments[0]), Value(
                ast.Constant(0), INT, (0, 0), True), node), node)
        if word in ("__infinity", "__nan"):
            return Value(call("float32", ast.Constant("inf" if word == "__infinity" else "nan")),
                         FLOAT, WIDE, True)
        return self._arithmetic(word, arguments, node)

    def _count(self, word: str, arguments: list[Any], wanted: int, node: Any) -> None:
        if len(arguments) != wanted:
            self.no(f"{word} takes {wanted} arguments, {len(arguments)} given", node)

    def _arithmetic(self, word: str, arguments: list[Any], node: Any) -> Result | None:
        if word.startswith("make_") and word[5:] in types.VECTORS:
            return self._vector(types.VECTORS[word[5:]], arguments, node)
        if word in ONE_ARGUMENT:
            return self._math(*ONE_ARGUMENT[word], word, arguments, node)
        if word in EXTREMES:
            self._count(word, arguments, 2, node)
            a, b = map(self.value, arguments)
            kind = types.common(a.type, b.type)
            if word.endswith("f"):
                kind = FLOAT
            a, b = self.convert(a, kind), self.convert(b, kind)
            pick = max if EXTREMES[word] == "max" else min
            bounds = pick(a.bounds[0], b.bounds[0]), pick(a.bounds[1], b.bounds[1])
            return Value(call(EXTREMES[word], a.code, b.code), kind, bounds)
        if word in ("abs", "labs", "llabs"):
            self._count(word, arguments, 1, node)
            a = self.settled(self.value(arguments[0]))
            return Value(call("abs", a.code), types.promoted(a.type),
                         (0, max(abs(a.bounds[0]), abs(a.bounds[1]))))
        if word in ("rsqrtf", "rsqrt", "__frsqrt_rn", "__frcp_rn"):
            self._count(word, arguments, 1, node)
            a = self.convert(self.value(arguments[0]), DOUBLE if word == "rsqrt" else FLOAT)
            root = a.code if word == "__frcp_rn" else call("math.sqrt", a.code)
            one = call(f"float{8 * a.type.size}", ast.Constant(1.0))
            return Value(binop(one, "/", root), a.type)
        if word in ("fmaf", "fma", "__fmaf_rn"):
            self._count(word, arguments, 3, node)
            kind = DOUBLE if word == "fma" else FLOAT
            a, b, c = (self.convert(self.value(argument), kind) for argument in arguments)
            return self.arithmetic("+", self.arithmetic("*", a, b), c)
        operator = {"__fdividef": "/", "__fadd_rn": "+", "__fmul_rn": "*", "__fsub_rn": "-",
                    "__hadd": "+", "__hsub": "-", "__hmul": "*", "__hdiv": "/",
                    "__mul24": "*"}.get(word)
        if operator is not None:
            self._count(word, arguments, 2, node)
            a, b = map(self.value, arguments)
            return self.arithmetic(operator, a, b)
        kinds: dict[str, Number] = {"__half2float": FLOAT, "__float2half": HALF,
                                    "__float2half_rn": HALF, "__int2float_rn": FLOAT,
                                    "__float2int_rz": INT}
        if word in kinds:
            self._count(word, arguments, 1, node)
            return self.convert(self.value(arguments[0]), kinds[word])
        return None

    def _math(self, function: str, is_float: bool | None, word: str, arguments: list[Any],
              node: Any) -> Value:
        self._count(word, arguments, 2 if function in TWO else 1, node)
        values = [self.value(argument) for argument in arguments]
        # CUDA C is C++: sqrt(float) is the float's square root, sqrt(int) a double's
        kind = FLOAT if is_float or all(v.type in (FLOAT, HALF) for v in values) else DOUBLE
        made = call(f"math.{function}", *(self.convert(v, kind).code for v in values))
        if function in ("isnan", "isinf", "isfinite"):
            return Value(made, INT, (0, 1))
        return Value(made, kind)

    def _vector(self, kind: Struct, arguments: list[Any], node: Any) -> Record:
        self._count(f"make_{kind.name}", arguments, len(kind.fields), node)
        return Record(kind, {field: self.to(self.result(argument), inner, node)
                             for (field, inner), argument in zip(
                                 kind.fields, arguments, strict=True)})

    def _atomic(self, word: str, arguments: list[Any], node: Any) -> Result:
        self._count(word, arguments, 3 if word == "atomicCAS" else 2, node)
        address = self.address(arguments[0])
        target = address.type.target
        if address.base is None or not isinstance(target, Number):
            self.no(f"{word} takes the address of a number in memory", node)
        assert address.base is not None and isinstance(target, Number)
        self.stored.add(address.base)
        values = [self.convert(self.value(argument), target).code for argument in arguments[1:]]
        made = call(f"cuda.atomic.{ATOMICS[word]}", name(address.base), address.at.code, *values)
        return Value(made, target, target.bounds if target.is_integer else WIDE)

    def _shuffle(self, word: str, arguments: list[Any], node: Any) -> Result:
        if len(arguments) == 4:
            width = self.value(arguments[3])
            if width.bounds != (32, 32):
                self.no(f"{word} with a width other than 32 is not modelled", node)
        else:
            self._count(word, arguments, 3, node)
        mask, value, lane = (self.settled(self.value(argument)) for argument in arguments[:3])
        made = call(f"cuda.{SHUFFLES[word]}", mask.code, value.code, lane.code)
        kind = types.promoted(value.type)
        return Value(made, kind, kind.bounds if kind.is_integer else WIDE)
