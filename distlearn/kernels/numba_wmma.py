"""``wmma`` for numba-cuda: PTX's warp matrix instructions (PTX ISA, section "wmma").

A fragment is the registers that PTX says it is: 8 float32 for a sum. PTX wants to know when it
loads whether a tile is a left or a right factor, our kernels say so only when they multiply: a
loaded tile is held as both, 16 registers.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

SHAPE = "m16n16k16"
HALF = 8  # registers of a fragment


def module() -> Any:
    """A module of the calls that kernels make, for numba to find them in."""
    from llvmlite import ir
    from numba.core import cgutils, errors
    from numba.core import types as nb
    from numba.cuda import extending

    intrinsic: Callable[[Any], Any] = extending.intrinsic
    sums = nb.UniTuple(nb.float32, HALF)
    factor = nb.UniTuple(nb.int32, 2 * HALF)
    i32, f32 = ir.IntType(32), ir.FloatType()

    def place(context: Any, builder: Any, signature: Any, values: Any) -> tuple[Any, Any]:
        """Address of the tile's first element, and the elements from row to row."""
        kind, index_kind = signature.args[:2]
        array = context.make_array(kind)(context, builder, values[0])
        indices = [context.cast(builder, i, k, nb.intp) for i, k in zip(
            cgutils.unpack_tuple(builder, values[1], 2), index_kind, strict=True)]
        at = cgutils.get_item_pointer(context, builder, kind, array, indices)
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        size = ir.Constant(stride.type, kind.dtype.bitwidth // 8)
        return at, builder.trunc(builder.sdiv(stride, size), i32)

    def assembly(builder: Any, text: str, result: Any, constraints: list[str],
                 arguments: list[Any]) -> Any:
        kind = ir.FunctionType(result, [a.type for a in arguments])
        return builder.asm(kind, text, ",".join(constraints), arguments, side_effect=True)

    def registers(first: int) -> str:
        return "{" + ", ".join(f"${first + n}" for n in range(HALF)) + "}"

    def tile_of(array: Any, index: Any, dtype: Any, what: str) -> None:
        if not (isinstance(array, nb.Array) and array.ndim == 2 and array.layout == "C"
                and array.dtype == dtype and isinstance(index, nb.BaseTuple)):
            raise errors.TypingError(f"wmma.{what} on a GPU takes a two-dimensional array of "
                                     f"{dtype} in C order, and (row, column)")

    @intrinsic
    def fill_fragment(typing: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            number = context.cast(builder, values[0], signature.args[0], nb.float32)
            return context.make_tuple(builder, sums, [number] * HALF)
        return sums(value), code

    @intrinsic
    def load_matrix_sync(typing: Any, array: Any, index: Any) -> Any:
        tile_of(array, index, nb.float16, "load_matrix_sync")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at, stride = place(context, builder, signature, values)
            parts = []
            for side in "ab":
                loaded = assembly(
                    builder, f"wmma.load.{side}.sync.aligned.{SHAPE}.row.f16 {registers(0)}, "
                    f"[${HALF}], ${HALF + 1};", ir.LiteralStructType([i32] * HALF),
                    ["=r"] * HALF + ["l", "r", "~{memory}"], [at, stride])
                parts += [builder.extract_value(loaded, n) for n in range(HALF)]
            return context.make_tuple(builder, factor, parts)
        return factor(array, index), code

    @intrinsic
    def mma_sync(typing: Any, a: Any, b: Any, c: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            left, right, old = (cgutils.unpack_tuple(builder, value) for value in values)
            made = assembly(
                builder, f"wmma.mma.sync.aligned.row.row.{SHAPE}.f32.f32 {registers(0)}, "
                f"{registers(HALF)}, {registers(2 * HALF)}, {registers(3 * HALF)};",
                ir.LiteralStructType([f32] * HALF),
                ["=f"] * HALF + ["r"] * (2 * HALF) + ["f"] * HALF,
                [*left[:HALF], *right[HALF:], *old])
            return context.make_tuple(builder, sums, [builder.extract_value(made, n)
                                                      for n in range(HALF)])
        return sums(factor, factor, sums), code

    @intrinsic
    def store_matrix_sync(typing: Any, array: Any, index: Any, fragment: Any) -> Any:
        tile_of(array, index, nb.float32, "store_matrix_sync")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at, stride = place(context, builder, signature, values)
            parts = cgutils.unpack_tuple(builder, values[2], HALF)
            assembly(builder, f"wmma.store.d.sync.aligned.{SHAPE}.row.f32 [$0], {registers(1)}, "
                     f"${HALF + 1};", ir.VoidType(), ["l"] + ["f"] * HALF + ["r", "~{memory}"],
                     [at, *parts, stride])
            return context.get_dummy_value()
        return nb.void(array, index, sums), code

    made: Any = types.ModuleType("wmma")
    made.fill_fragment, made.load_matrix_sync = fill_fragment, load_matrix_sync
    made.mma_sync, made.store_matrix_sync = mma_sync, store_matrix_sync
    return made
