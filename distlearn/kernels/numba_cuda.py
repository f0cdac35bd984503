"""The same kernels on a GPU: numba-cuda compiles the function that the executors read.

Needs the extra ``distlearn[cuda]``; `ptx` needs no GPU.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from distlearn.kernels import dialect, intrinsics, numba_wmma
from distlearn.kernels.errors import KernelError
from distlearn.kernels.kernel import Kernel

Dim3 = tuple[int, int, int]


def ptx(kernel: Kernel, arguments: tuple[Any, ...], compute_capability: str = "8.0") -> str:
    """The kernel as PTX, compiled for arguments of these types.

    Raises
    ------
    ImportError
        Without numba-cuda; its text says what to install.
    KernelError
        "unsupported": the kernel uses a call that numba-cuda cannot compile.
    """
    cuda = _numba()
    from numba import typeof

    major, minor = (int(part) for part in compute_capability.split("."))
    signature = tuple(typeof(value) for value in arguments)
    with _named(kernel):
        text, _ = cuda.compile_ptx(_translate(kernel, {}), signature, cc=(major, minor))
    return str(text)


def run(kernel: Kernel, grid: Dim3, block: Dim3, arguments: tuple[Any, ...],
        shared_bytes: int = 0) -> float:
    """Launch on this machine's GPU; arrays change in place, as in the executors.

    Returns
    -------
    float
        Seconds that the kernel took, without compiling and copying.

    Raises
    ------
    ImportError
        Without numba-cuda.
    KernelError
        "bad_launch" if there is no GPU; "unsupported" as `ptx`.
    """
    cuda = _numba()
    if not cuda.is_available():
        raise KernelError("bad_launch", "backend='cuda' needs a GPU, and this machine has none; "
                          "leave backend at 'numpy'")
    from numba import typeof

    moved = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    compiled = cuda.jit(_translate(kernel, {}))
    with _named(kernel):
        compiled.compile(tuple(typeof(value) for value in moved))
    start, end = cuda.event(), cuda.event()
    start.record()
    compiled[grid, block, 0, shared_bytes](*moved)
    end.record()
    end.synchronize()
    for host, there in zip(arguments, moved, strict=True):
        if isinstance(host, np.ndarray):
            host[...] = there.copy_to_host()
    return float(cuda.event_elapsed_time(start, end)) / 1e3


@contextlib.contextmanager
def _named(kernel: Kernel) -> Iterator[None]:
    """Numba's many pages about what it cannot compile, as one of our errors."""
    from numba.core.errors import NumbaError

    try:
        yield
    except NumbaError as error:
        raise KernelError("unsupported", f"numba-cuda cannot compile {kernel.name}(): "
                          f"{error}") from error


def _numba() -> Any:
    try:
        from numba import cuda
    except ImportError as error:
        raise ImportError("running kernels on a GPU needs numba-cuda: "
                          "pip install 'distlearn[cuda]'") from error
    return cuda


def _translate(kernel: Kernel, done: dict[Kernel, Any]) -> Any:
    """The Python function with numba's names in place of ours, and device functions compiled."""
    cuda = _numba()
    ours = {id(dialect.cuda): cuda, id(intrinsics.load2): _vector(2, True),
            id(intrinsics.load4): _vector(4, True), id(intrinsics.store2): _vector(2, False),
            id(intrinsics.store4): _vector(4, False)}

    def replaced(value: Any) -> Any:
        if isinstance(value, Kernel):
            if value not in done:
                # Inlined, as nvcc does; also, what is not would be compiled for this machine's GPU.
                done[value] = cuda.jit(device=True, inline="always")(_translate(value, done))
            return done[value]
        if value is intrinsics.wmma:
            return numba_wmma.module()
        return ours.get(id(value), value)

    function = kernel.function
    used = set(function.__code__.co_names)
    space = {name: replaced(value) if name in used else value
             for name, value in function.__globals__.items()}
    cells = tuple(types.CellType(replaced(cell.cell_contents))
                  for cell in function.__closure__ or ())
    return types.FunctionType(function.__code__, space, function.__name__, None, cells or None)


@functools.cache
def _vector(width: int, load: bool) -> Any:
    """``loadN`` or ``storeN`` as one instruction of LLVM: a vector at an aligned address."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core import types as nb
    from numba.cuda.extending import intrinsic
    from numba.cuda.vector_types import vector_types

    def pointer(context: Any, builder: Any, signature: Any, values: Any) -> tuple[Any, Any, int]:
        """The address as one of a vector, the type of the vector, its bytes."""
        array_type, index_type = signature.args[:2]
        array = context.make_array(array_type)(context, builder, values[0])
        indices = (cgutils.unpack_tuple(builder, values[1], len(index_type))
                   if isinstance(index_type, nb.BaseTuple) else [values[1]])
        kinds = tuple(index_type) if isinstance(index_type, nb.BaseTuple) else [index_type]
        indices = [context.cast(builder, i, kind, nb.intp)
                   for i, kind in zip(indices, kinds, strict=True)]
        at = cgutils.get_item_pointer(context, builder, array_type, array, indices)
        vector = ir.VectorType(context.get_data_type(array_type.dtype), width)
        bytes_ = width * array_type.dtype.bitwidth // 8
        address = builder.bitcast(at, vector.as_pointer(at.type.addrspace))
        return address, vector, bytes_

    def vector_type(array: Any) -> Any:
        return vector_types[f"{array.dtype}x{width}"]

    if load:
        def read(typing: Any, array: Any, index: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                address, _, bytes_ = pointer(context, builder, signature, values)
                whole = builder.load(address, align=bytes_)
                parts = cgutils.create_struct_proxy(signature.return_type)(context, builder)
                for n, name in enumerate("xyzw"[:width]):
                    setattr(parts, name, builder.extract_element(whole, ir.IntType(32)(n)))
                return parts._getvalue()
            return vector_type(array)(array, index), code
        return intrinsic(read)

    def write(typing: Any, array: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address, vector, bytes_ = pointer(context, builder, signature, values)
            parts = cgutils.create_struct_proxy(value)(context, builder, value=values[2])
            whole = vector(ir.Undefined)
            for n, name in enumerate("xyzw"[:width]):
                whole = builder.insert_element(whole, getattr(parts, name), ir.IntType(32)(n))
            builder.store(whole, address, align=bytes_)
            return context.get_dummy_value()
        return nb.void(array, index, value), code
    return intrinsic(write)
