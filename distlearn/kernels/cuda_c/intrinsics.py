"""Functions that every kernel in CUDA C may call."""

from __future__ import annotations

import ast
from typing import Any

from pycparser import c_ast

from distlearn.kernels import names
from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.declaring import Declaring
from distlearn.kernels.cuda_c.places import ZERO
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
from distlearn.kernels.cuda_c.variables import Scalar

MATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "fabs", "log2", "exp2",
        "isnan", "isinf", "isfinite", "pow", "atan2", "sinh", "cosh", "asin", "acos", "atan",
        "asinh", "acosh", "atanh", "log10", "log1p", "expm1", "erf", "erfc", "hypot", "fmod",
        "trunc", "copysign", "remainder", "lgamma", "nextafter", "cbrt")
TWO = ("pow", "atan2", "hypot", "fmod", "copysign", "remainder", "nextafter")
ONE_ARGUMENT = {f"{prefix}{word}{suffix}": (word, suffix == "f" or None)
                for word in MATH for prefix, suffix in (("", ""), ("", "f"), ("__", "f"))}
ONE_ARGUMENT |= {"__fsqrt_rn": ("sqrt", True), "tgammaf": ("gamma", True),
                 "tgamma": ("gamma", None)}
# Conversions: from a type by a function, "" for that of a cast, to a type.
CONVERT: dict[str, tuple[Number, str, Number]] = {
    "__half2float": (HALF, "", FLOAT), "__float2half": (FLOAT, "", HALF),
    "__float2half_rn": (FLOAT, "", HALF), "__int2float_rn": (INT, "", FLOAT),
    "__uint2float_rn": (UINT, "", FLOAT), "__int2double_rn": (INT, "", DOUBLE),
    "__double2float_rn": (DOUBLE, "", FLOAT), "__float2int_rz": (FLOAT, "", INT),
    "__float2uint_rz": (FLOAT, "", UINT), "__float2int_rn": (FLOAT, "round", INT),
    "__float2int_rd": (FLOAT, "math.floor", INT), "__float2int_ru": (FLOAT, "math.ceil", INT),
    "rintf": (FLOAT, "round", FLOAT), "rint": (DOUBLE, "round", DOUBLE),
    "nearbyintf": (FLOAT, "round", FLOAT), "lrintf": (FLOAT, "round", LONG)}
CACHED = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldcv", "__ldlu")  # caches are not modelled
EXTREMES = {"fmaxf": "max", "fmax": "max", "max": "max", "umax": "max",
            "fminf": "min", "fmin": "min", "min": "min", "umin": "min"}
ATOMICS = {"atomicAdd": "add", "atomicSub": "sub", "atomicMax": "max", "atomicMin": "min",
           "atomicExch": "exch", "atomicCAS": "cas", "atomicAnd": "and_", "atomicOr": "or_",
           "atomicXor": "xor", "atomicInc": "inc", "atomicDec": "dec"}
SHUFFLES = {"__shfl_sync": "shfl_sync", "__shfl_up_sync": "shfl_up_sync",
            "__shfl_down_sync": "shfl_down_sync", "__shfl_xor_sync": "shfl_xor_sync"}
VOTES = {"__ballot_sync": "ballot_sync", "__all_sync": "all_sync", "__any_sync": "any_sync"}
SAME_BITS: dict[str, tuple[Number, Number]] = {
    "float_as_int": (FLOAT, INT), "int_as_float": (INT, FLOAT), "float_as_uint": (FLOAT, UINT),
    "uint_as_float": (UINT, FLOAT), "double_as_longlong": (DOUBLE, LONG),
    "longlong_as_double": (LONG, DOUBLE)}
BITS = {f"__{word}{suffix}": (word, kind) for word in ("popc", "ffs", "clz", "brev")
        for suffix, kind in (("", UINT), ("ll", LONG))}
HALF_TESTS = ("heq", "hne", "hlt", "hle", "hgt", "hge")
TWO_HALVES = ("hadd", "hsub", "hmul", "hdiv", "hmax", "hmin", *HALF_TESTS)
HALVES = (*TWO_HALVES, "hfma", "hneg", "habs")  # those written with __
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
        if word in ("__syncthreads_count", "__syncthreads_and", "__syncthreads_or"):
            self._count(word, arguments, 1, node)
            made = call(f"cuda.{word[2:]}", self.truth(arguments[0]))
            return Value(made, INT, (0, 1024))
        if word == "__syncwarp":
            return Nothing(call("cuda.syncwarp"))
        if word == "__activemask":
            self._count(word, arguments, 0, node)
            return Value(call("cuda.activemask"), UINT, UINT.bounds)
        if word in ("__threadfence", "__threadfence_block", "__threadfence_system",
                    "__nanosleep"):
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
        if word in ("__match_any_sync", "__match_all_sync"):
            return self._match(word, arguments, node)
        if word in BITS:
            self._count(word, arguments, 1, node)
            function, kind = BITS[word]
            value = self.convert(self.value(arguments[0]), kind)
            made = call(f"cuda.{function}", call("uint32" if kind == UINT else "int64",
                                                 value.code))
            if function == "brev":
                return Value(made, UINT if kind == UINT else ULONG, kind.bounds)
            return Value(made, INT, (0, 8 * kind.size))
        if word in CACHED:
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
        if word == "__dim3":
            ones = [c_ast.Constant("int", "1", node.coord)] * (3 - len(arguments))
            return self._vector(types.DIM3, arguments + ones, node)
        if word in ("sincosf", "sincos", "__sincosf"):
            return self._sincos(word, arguments, node)
        if word == "__saturatef":
            self._count(word, arguments, 1, node)
            one = self.convert(self.value(arguments[0]), FLOAT).code
            least, most = (call("float32", ast.Constant(end)) for end in (0.0, 1.0))
            return Value(call("min", call("max", one, least), most), FLOAT)
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
        half = word[2:] if word.startswith("__h") else word  # __hadd and hsqrt
        if half in names.FP16 and (half == word) == (half not in HALVES):
            return self._half(half, arguments, node)
        if word[2:] in SAME_BITS and word.startswith("__"):
            self._count(word, arguments, 1, node)
            source, to = SAME_BITS[word[2:]]
            value = self.convert(self.value(arguments[0]), source)
            return Value(call(f"cuda.libdevice.{word[2:]}", value.code), to,
                         to.bounds if to.is_integer else WIDE)
        operator = {"__fdividef": "/", "__fadd_rn": "+", "__fmul_rn": "*", "__fsub_rn": "-",
                    "__mul24": "*"}.get(word)
        if operator is not None:
            self._count(word, arguments, 2, node)
            a, b = map(self.value, arguments)
            return self.arithmetic(operator, a, b)
        if word in ("roundf", "lroundf"):  # halves away from zero; exact in double
            self._count(word, arguments, 1, node)
            held = self.keep(self.convert(self.value(arguments[0]), DOUBLE), "_x")
            assert isinstance(held, Scalar)
            far = binop(call("math.fabs", name(held.name)), "+", ast.Constant(0.5))
            away = Value(call("math.copysign", call("math.floor", far), name(held.name)), DOUBLE)
            return self.convert(away, LONG if word == "lroundf" else FLOAT)
        if word in CONVERT:
            self._count(word, arguments, 1, node)
            source, function, to = CONVERT[word]
            value = self.convert(self.value(arguments[0]), source)
            if function == "round":  # Python's gives an integer
                value = Value(call("round", value.code), LONG)
            elif function:
                value = Value(call(function, value.code), source)
            return self.convert(value, to)
        return None

    def _sincos(self, word: str, arguments: list[Any], node: Any) -> Value:
        """``sincosf(x, &s, &c)``."""
        self._count(word, arguments, 3, node)
        kind = FLOAT if word.endswith("f") else DOUBLE
        held = self.keep(self.convert(self.value(arguments[0]), kind), "_angle")
        for function, argument in zip(("sin", "cos"), arguments[1:], strict=True):
            angle = self.read(self.of_named(held), node)
            assert isinstance(angle, Value)
            self.put(self.at(self.address(argument), ZERO, node), Value(
                call(f"math.{function}", angle.code), kind), node)
        return Value(ast.Constant(0), INT, (0, 0), True)

    def _half(self, word: str, arguments: list[Any], node: Any) -> Value:
        """``__hadd``, ``hsqrt`` and their like: each rounds once."""
        self._count(word, arguments, 3 if word == "hfma" else 2 if word in TWO_HALVES else 1, node)
        values = [self.convert(self.value(argument), HALF).code for argument in arguments]
        made = call(f"cuda.fp16.{word}", *values)
        return Value(made, INT, (0, 1)) if word in HALF_TESTS else Value(made, HALF)

    def _match(self, word: str, arguments: list[Any], node: Any) -> Value:
        """The lanes whose value is the same; numba's masks are signed."""
        self._count(word, arguments, 2 if word == "__match_any_sync" else 3, node)
        mask, value = (self.settled(self.value(argument)) for argument in arguments[:2])
        made = call(f"cuda.{word[2:]}", mask.code, value.code)
        if word == "__match_any_sync":
            return Value(call("uint32", made), UINT, UINT.bounds)
        alike = self.at(self.address(arguments[2]), ZERO, node)
        held = [self.fresh("_lanes"), self.fresh("_alike")]
        self.emit(ast.Assign([ast.Tuple([ast.Name(h, ast.Store()) for h in held], ast.Store())],
                             made))
        self.put(alike, Value(name(held[1]), INT, (0, 1), True), node)
        return Value(call("uint32", name(held[0])), UINT, UINT.bounds)

    def _math(self, function: str, is_float: bool | None, word: str, arguments: list[Any],
              node: Any) -> Value:
        self._count(word, arguments, 2 if function in TWO else 1, node)
        values = [self.value(argument) for argument in arguments]
        # CUDA C is C++: sqrt(float) is the float's square root, sqrt(int) a double's
        kind = FLOAT if is_float or all(v.type in (FLOAT, HALF) for v in values) else DOUBLE
        made = call("cuda.cbrt" if function == "cbrt" else f"math.{function}",
                    *(self.convert(v, kind).code for v in values))
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
        width = 32
        if len(arguments) == 4:
            width = self.value(arguments[3]).bounds[0]
            if self.value(arguments[3]).bounds != (width, width) or width not in (1, 2, 4, 8, 16,
                                                                                  32):
                self.no(f"the width of {word} must be 1, 2, 4, 8, 16 or 32, and a constant", node)
        else:
            self._count(word, arguments, 3, node)
        mask, value, lane = (self.settled(self.value(argument)) for argument in arguments[:3])
        if width < 32:
            made = call("cuda.shfl_sync", mask.code, value.code, self._part_lane(
                word, lane, width))
        else:
            made = call(f"cuda.{SHUFFLES[word]}", mask.code, value.code, lane.code)
        kind = types.promoted(value.type)
        return Value(made, kind, kind.bounds if kind.is_integer else WIDE)

    def _part_lane(self, word: str, by: Value, width: int) -> ast.expr:
        """The lane that a lane of a part of ``width`` lanes asks; its own beyond the part's end."""
        low = width - 1
        held = self.keep(by, "_by")
        assert isinstance(held, Scalar)
        b, lane = held.name, "cuda.laneid"
        code = {"__shfl_sync": f"({lane} & {31 - low}) + ({b} & {low})",
                "__shfl_up_sync": f"{lane} - ({b} if ({lane} & {low}) >= {b} else 0)",
                "__shfl_down_sync": f"{lane} + ({b} if ({lane} & {low}) + {b} < {width} else 0)",
                "__shfl_xor_sync": f"({lane} ^ {b} if ({lane} ^ {b}) <= ({lane} | {low}) else "
                                   f"{lane})"}[word]
        made = ast.parse(code, mode="eval").body
        for part in ast.walk(made):
            for attribute in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                if hasattr(part, attribute):
                    delattr(part, attribute)
        return made
