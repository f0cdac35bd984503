"""`GEMM`: the rungs in order, each with the launch it is written for."""

from __future__ import annotations

from types import MappingProxyType

from distlearn.kernels.gemm.coalesced import coalesced
from distlearn.kernels.gemm.naive import naive_columns, naive_rows
from distlearn.kernels.gemm.register_1d import register_1d
from distlearn.kernels.gemm.register_2d import register_2d
from distlearn.kernels.gemm.rung import Gemm
from distlearn.kernels.gemm.shared_tiled import shared_tiled

A6000 = "RTX-A6000"

_RUNGS = (
    Gemm(naive_rows, "naive, lanes walk down", (32, 32, 32), (32, 32), rows_along_x=True,
         published={A6000: 309.0}),
    Gemm(naive_columns, "naive, lanes walk along", (32, 32, 32), (32, 32)),
    Gemm(coalesced, "coalesced", (32, 32, 32), (1024,), rows_along_x=True,
         published={A6000: 1986.5}),
    Gemm(shared_tiled, "tiles in shared memory", (32, 32, 32), (1024,), published={A6000: 2980.3}),
    Gemm(register_1d, "8 results a thread", (64, 64, 8), (512,), published={A6000: 8474.7}),
    Gemm(register_2d, "8 x 8 results a thread", (128, 128, 8), (256,),
         published={A6000: 15971.7}),
)

GEMM = MappingProxyType({rung.name: rung for rung in _RUNGS})
