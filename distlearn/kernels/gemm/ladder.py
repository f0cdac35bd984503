"""`GEMM`: the rungs in order, each with the launch it is written for."""

from __future__ import annotations

from types import MappingProxyType

from distlearn.kernels.gemm.coalesced import coalesced
from distlearn.kernels.gemm.deeper import deeper
from distlearn.kernels.gemm.double_buffered import double_buffered
from distlearn.kernels.gemm.extra_column import extra_column
from distlearn.kernels.gemm.linearised import linearised
from distlearn.kernels.gemm.naive import naive_columns, naive_rows
from distlearn.kernels.gemm.padded import padded
from distlearn.kernels.gemm.register_1d import register_1d
from distlearn.kernels.gemm.register_2d import register_2d
from distlearn.kernels.gemm.rung import Gemm
from distlearn.kernels.gemm.shared_tiled import shared_tiled
from distlearn.kernels.gemm.split_k import split_k
from distlearn.kernels.gemm.swizzled import swizzled
from distlearn.kernels.gemm.tensor_core import tensor_core
from distlearn.kernels.gemm.vectorised import vectorised
from distlearn.kernels.gemm.warp_tiled import warp_tiled

A6000 = "RTX-A6000"

_RUNGS = (
    Gemm(naive_rows, "naive, lanes walk down", (32, 32, 32), (32, 32), 30, rows_along_x=True,
         published={A6000: 309.0}),
    Gemm(naive_columns, "naive, lanes walk along", (32, 32, 32), (32, 32), 30),
    Gemm(coalesced, "coalesced", (32, 32, 32), (1024,), 30, rows_along_x=True,
         published={A6000: 1986.5}),
    Gemm(shared_tiled, "tiles in shared memory", (32, 32, 32), (1024,), 32,
         published={A6000: 2980.3}),
    Gemm(register_1d, "8 results a thread", (64, 64, 8), (512,), 46, published={A6000: 8474.7}),
    Gemm(register_2d, "8 x 8 results a thread", (128, 128, 8), (256,), 144,
         published={A6000: 15971.7}),
    Gemm(vectorised, "16 bytes an instruction, A transposed", (128, 128, 8), (256,), 104,
         aligned=True, published={A6000: 18237.3}),
    Gemm(linearised, "B laid out for its readers", (128, 128, 8), (256,), 109, aligned=True,
         published={A6000: 16213.4}),
    Gemm(extra_column, "five words of padding in B", (128, 128, 8), (256,), 115, aligned=True,
         published={A6000: 16459.2}),
    Gemm(padded, "no conflicts, by padding A", (128, 128, 8), (256,), 111, aligned=True),
    Gemm(swizzled, "no conflicts, by XOR", (128, 128, 8), (256,), 104, aligned=True),
    Gemm(deeper, "16 steps between barriers", (128, 128, 16), (256,), 118, aligned=True,
         published={A6000: 19721.0}),
    Gemm(warp_tiled, "tiles for warps", (128, 128, 16), (128,), 212, aligned=True,
         published={A6000: 21779.3}),
    Gemm(double_buffered, "two buffers", (128, 256, 32), (256,), 216, aligned=True,
         published={A6000: 17278.3}),
    Gemm(tensor_core, "tensor cores, float16", (64, 64, 32), (128,), result_dtype="float32"),
    Gemm(split_k, "a part of K a block", (64, 64, 8), (512,), 48, splits=4),
)

GEMM = MappingProxyType({rung.name: rung for rung in _RUNGS})
