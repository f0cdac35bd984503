"""One rung of the ladder: a kernel, the launch it is written for, and its time on a device."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from distlearn.hardware import DeviceSpec
from distlearn.hardware.memory_system import LINE_BYTES
from distlearn.kernels.kernel import Kernel
from distlearn.kernels.launch import compiled_counters, dim3, launch
from distlearn.kernels.memory import bind
from distlearn.kernels.report import LaunchReport
from distlearn.kernels.timing import Prediction, Resources, Work, predict, resources, work

Array = NDArray[Any]
Strides = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


class Gemm(Kernel):
    """A kernel ``f(A, B, C, alpha, beta)`` that computes ``C = alpha A B + beta C``.

    It launches as any kernel does; `multiply` chooses grid and block.

    Attributes
    ----------
    title : str
    tile : tuple of int
        Rows and columns of C that a block computes, and the step in which it walks along K.
    block : tuple of int
        Threads of a block.
    rows_along_x : bool
        Whether ``blockIdx.x`` (else ``blockIdx.y``) counts tiles downwards.
    splits : int
        Blocks that share a tile of C, each with a part of K; they add to C.
    aligned : bool
        Loads 16 bytes at once: rows of A, B and C must be contiguous, and multiples of 4 elements
        long. `multiply` sees to that: it copies, and pads with 0.
    dtype, result_dtype : numpy dtype
        Of A and B; of C and the sums.
    needs : Resources
        Registers of a thread, as numba-cuda 0.30 and ptxas 12.9 compile this source for compute
        capability 8.0 (without fragments, of which they make two each), and shared bytes of a
        block.
    published : mapping of str to float
        Device -> measured GFLOP/s of a kernel built like this one, float32, M = N = K = 4096
        (S. Boehm, "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance", 2022).
    """

    def __init__(self, kernel: Kernel, title: str, tile: tuple[int, int, int],
                 block: tuple[int, ...], registers: int | None = None, *,
                 rows_along_x: bool = False, splits: int = 1, aligned: bool = False,
                 result_dtype: DTypeLike | None = None,
                 published: Mapping[str, float] | None = None) -> None:
        super().__init__(kernel.function, kernel.source)
        self.title, self.tile, self.block = title, tile, block
        self.rows_along_x, self.splits, self.aligned = rows_along_x, splits, aligned
        self.dtype = np.dtype(kernel.lookup("real"))
        self.result_dtype = np.dtype(result_dtype) if result_dtype is not None else self.dtype
        self.needs = resources(self)
        if registers is not None:
            self.needs = self.needs._replace(registers_per_thread=registers)
        self.published = dict(published or {})
        self._samples: dict[tuple[int, *tuple[_Layout, ...]], dict[str, float]] = {}

    def grid(self, M: int, N: int) -> tuple[int, ...]:
        """Blocks that cover an M x N result."""
        down, right = -(-M // self.tile[0]), -(-N // self.tile[1])
        sizes = (down, right) if self.rows_along_x else (right, down)
        return (*sizes, self.splits) if self.splits > 1 else sizes

    def astype(self, dtype: DTypeLike) -> Gemm:
        """The same kernel for another element type, as a template is instantiated.

        Raises
        ------
        ValueError
            If the kernel moves 16 bytes at once or uses tensor cores: its source says float32.
        """
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        if self.aligned or self.dtype != self.result_dtype:
            raise ValueError(f"{self.name} is written for {self.dtype}; got dtype={wanted}")
        function = self.function
        copy = types.FunctionType(function.__code__, {**function.__globals__, "real": wanted.type},
                                  function.__name__)
        return Gemm(Kernel(copy, self.source), self.title, self.tile, self.block,
                    self.needs.registers_per_thread, rows_along_x=self.rows_along_x,
                    splits=self.splits)

    def multiply(self, A: Array, B: Array, C: Array | None = None, *, alpha: float = 1,
                 beta: float = 0, transpose_a: bool = False, transpose_b: bool = False,
                 device: DeviceSpec | str | None = None,
                 executor: Literal["simt", "oracle"] = "simt",
                 backend: Literal["numpy", "cuda"] = "numpy") -> tuple[Array, LaunchReport]:
        """``alpha op(A) op(B) + beta C``, and the report of the launch.

        Parameters
        ----------
        A, B : ndarray, (M, K) and (K, N)
            Any sizes; transposed if so said: (K, M) and (N, K).
        C : ndarray, (M, N), optional
            Not changed. Not read if ``beta`` is 0, as in BLAS.
        device : optional
            Predict the time on this device.
        executor, backend
            As `distlearn.kernels.launch`.

        Raises
        ------
        ValueError
            If shapes do not fit, or ``beta`` is not 0 and there is no C.
        """
        a, b = (x.T if turned else x for x, turned in ((A, transpose_a), (B, transpose_b)))
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, *b.shape):
            raise ValueError(f"op(A) must be (M, K) and op(B) (K, N), none of them 0; got shapes "
                             f"{a.shape} and {b.shape}")
        (M, K), N = a.shape, b.shape[1]
        if C is None:
            if beta != 0:
                raise ValueError(f"beta={beta!r} needs a C to multiply; got C=None")
            C = np.zeros((M, N))
        if C.shape != (M, N):
            raise ValueError(f"C must have shape {(M, N)}; got {C.shape}")
        result = self._operand(C, self.result_dtype, copy=True)
        if self.splits > 1:
            result[...] = beta * result if beta else 0
        scalars = np.array([alpha, beta], self.result_dtype)
        a, b = (self._operand(x, self.dtype) for x in (a, b))
        report = launch(self, self.grid(M, N), self.block, a, b, result, *scalars,
                        executor=executor, backend=backend)
        if device is not None:
            report = replace(report, prediction=self.predict(
                M, N, K, device, strides=(_strides(a), _strides(b), _strides(result))))
        return result[:M, :N], report

    def _operand(self, array: Array, dtype: np.dtype[Any], copy: bool = False) -> Array:
        """The array as the kernel takes it; where 16 bytes are loaded at once, padded with 0."""
        if not self.aligned:
            return np.array(array, dtype) if copy else array.astype(dtype, copy=False)
        rows, columns = array.shape
        whole = np.zeros((-(-rows // 4) * 4, -(-columns // 4) * 4), dtype)
        whole[:rows, :columns] = array
        return whole

    def predict(self, M: int, N: int, K: int, device: DeviceSpec | str, *,
                needs: Resources | None = None, strides: Strides | None = None) -> Prediction:
        """The time of an M x N x K product on a device.

        Parameters
        ----------
        needs : Resources, optional
            Registers and shared bytes, if they are others than the rung's.
        strides : optional
            As `work`.
        """
        return predict(self.work(M, N, K, strides), needs or self.needs, device, self.dtype)

    def work(self, M: int, N: int, K: int, strides: Strides | None = None) -> Work:
        """What the average block of an M x N x K product does.

        One block is run for two short K; every counter of a tile kernel is a straight line in the
        number of steps along K, which is then followed to the K asked for. Tiles at the edges of C
        take as long as whole ones (tile quantisation).

        Parameters
        ----------
        strides : optional
            Elements from a row to the next and from a column to the next, of A, B and C: by
            default ((K, 1), (N, 1), (N, 1)).
        """
        step = self.tile[2]
        steps = -(-K // step) / self.splits
        strides = strides or ((K, 1), (N, 1), (N, 1))
        few, more = (self._sample(k * step * self.splits, strides) for k in (2, 3))
        one = {name: (few.get(name, 0) + (n - few.get(name, 0)) * (steps - 2)) / self.splits
               for name, n in more.items()}
        blocks = int(np.prod(self.grid(M, N)))
        sizes = (M * K + K * N) * self.dtype.itemsize + M * N * self.result_dtype.itemsize
        return work(one, blocks, int(np.prod(self.block)), sizes)

    def _sample(self, depth: int, strides: Strides) -> dict[str, float]:
        """Counters and flow of the blocks of one tile, with rows as far apart as they will be."""
        rows, columns, _ = self.tile
        shapes = (rows, depth), (depth, columns), (rows, columns)
        dtypes = self.dtype, self.dtype, self.result_dtype
        layouts = tuple(map(_layout, shapes, strides, dtypes))
        known = self._samples.get((depth, *layouts))
        if known is not None:
            return known
        scalars = np.array([1, 0], self.result_dtype)
        arguments = bind(self.parameters, (*map(_zeros, shapes, layouts, dtypes), *scalars),
                         self.name)
        found = self._samples[depth, *layouts] = compiled_counters(
            self, dim3(self.grid(rows, columns), "grid"), dim3(self.block, "block"), arguments)
        return found


class _Layout(NamedTuple):
    """Where a matrix lies: in elements, along its rows or, turned, along its columns."""

    pitch: int  # from one row to the next
    step: int  # from one element of a row to the next
    turned: bool


def _strides(matrix: Array) -> tuple[int, int]:
    """In elements; backwards is as far as forwards."""
    down, right = (abs(stride) // matrix.itemsize for stride in matrix.strides)
    return down, right


def _layout(shape: tuple[int, int], strides: tuple[int, int], dtype: np.dtype[Any]) -> _Layout:
    """A layout for a matrix of this shape that touches memory as the strides would."""
    turned = strides[0] < strides[1]
    far, near = strides[::-1] if turned else strides
    step = max(near, 1)
    return _Layout(_pitch(shape[not turned] * step, far, dtype), step, turned)


def _zeros(shape: tuple[int, int], layout: _Layout, dtype: np.dtype[Any]) -> Array:
    rows, columns = shape[::-1] if layout.turned else shape
    whole = np.zeros((rows, layout.pitch), dtype)[:, :columns * layout.step:layout.step]
    return whole.T if layout.turned else whole


def _pitch(columns: int, wanted: int, dtype: np.dtype[Any]) -> int:
    """Elements from one row to the next.

    Rows with a whole line between them touch the same sectors and lines however many lie there.
    """
    line = LINE_BYTES // dtype.itemsize
    whole, apart = -(-max(wanted, columns) // 4) * 4, columns + line
    return whole if whole < apart else apart + (whole - apart) % line
