"""Tensors in the buffers of a core: where they lie, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from distlearn.hardware.dtypes import dtype_name
from distlearn.kernels.ascend.errors import AscendError
from distlearn.kernels.ascend.formats import (
    Array,
    fractal_bytes,
    from_fractals,
    to_fractals,
)
from distlearn.kernels.ascend.timeline import Region

POSITIONS = {"A1": "L1", "B1": "L1", "C1": "L1", "A2": "L0A", "B2": "L0B", "CO1": "L0C",
             "VECIN": "UB", "VECOUT": "UB", "VECCALC": "UB"}
"""Logical positions of Ascend C, and the buffer that each is in."""

FORMAT = {"L1": "Nz", "L0A": "Zz", "L0B": "Zn", "L0C": "Nz"}
"""The format of matrices in each buffer."""

_NUMPY: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
                          "float32": np.float32, "int8": np.int8, "int32": np.int32}


def numpy_dtype(dtype: object) -> np.dtype[Any]:
    """The numpy type of a number format that the core knows.

    Raises
    ------
    ValueError
        For another format.
    """
    name = str(np.dtype(np.int32)) if str(dtype) == "int32" else dtype_name(dtype)
    if name not in _NUMPY:
        raise ValueError(f"dtype must be one of {', '.join(_NUMPY)}; got {dtype!r}")
    made: np.dtype[Any] = np.dtype(_NUMPY[name])
    return made


@dataclass(frozen=True)
class Storage:
    """The bytes of one buffer, and which of them were ever written."""

    name: str
    raw: NDArray[np.uint8]
    written: NDArray[np.bool_]

    @classmethod
    def of(cls, name: str, capacity: int) -> Storage:
        """An empty buffer."""
        return cls(name, np.zeros(capacity, np.uint8), np.zeros(capacity, np.bool_))


@dataclass(frozen=True)
class LocalTensor:
    """A matrix in a buffer.

    Attributes
    ----------
    position : str
        Of ``POSITIONS``.
    shape : (int, int)
        Rows and columns of the matrix, without padding.
    dtype : numpy dtype
    offset : int
        Byte in the buffer at which it starts.
    storage : Storage
    slot : int
        Which buffer of its queue.
    """

    position: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    offset: int
    storage: Storage
    slot: int = 0

    @property
    def buffer(self) -> str:
        """The buffer it is in."""
        return POSITIONS[self.position]

    @property
    def fractal(self) -> tuple[int, int]:
        """Rows and columns of a fractal; L0C has 16 x 16 whatever the size of an element."""
        return (16, 16) if self.buffer == "L0C" else (16, 32 // self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes with padding to whole fractals; in UB, to 32 bytes."""
        if self.buffer == "UB":
            return -(-self.shape[0] * self.shape[1] * self.dtype.itemsize // 32) * 32
        return fractal_bytes(self.shape, FORMAT[self.buffer], self.fractal, self.dtype.itemsize)

    @property
    def region(self) -> Region:
        """What instructions on it touch."""
        return Region(self.buffer, self.offset, self.offset + self.nbytes)

    def read(self) -> Array:
        """The matrix, from its fractals.

        Raises
        ------
        AscendError
            Of kind ``"uninitialised"`` if some of its bytes were never written.
        """
        span = slice(self.offset, self.offset + self.nbytes)
        if not self.storage.written[span].all():
            raise AscendError("uninitialised", f"{self.buffer} bytes {span.start:,} to "
                                               f"{span.stop:,} are read and were never written")
        data = self.storage.raw[span].view(self.dtype)
        if self.buffer == "UB":
            return data[:self.shape[0] * self.shape[1]].reshape(self.shape)
        name = FORMAT[self.buffer]
        r, c = self.fractal
        rows, columns = ((-(-self.shape[0] // c), -(-self.shape[1] // r)) if name == "Zn"
                         else (-(-self.shape[0] // r), -(-self.shape[1] // c)))
        outer = (columns, rows) if name == "Nz" else (rows, columns)
        return from_fractals(data.reshape(*outer, r, c), name, self.shape)

    def write(self, matrix: Array) -> None:
        """Put a matrix of its shape there, in the buffer's format."""
        span = slice(self.offset, self.offset + self.nbytes)
        values = np.ascontiguousarray(matrix, dtype=self.dtype)
        if self.buffer != "UB":
            values = to_fractals(values, FORMAT[self.buffer], self.fractal)
        flat = values.reshape(-1).view(np.uint8)
        self.storage.raw[span.start:span.start + flat.size] = flat
        self.storage.written[span] = True


def global_region(array: Array) -> Region:
    """The rectangle of global memory that a view of a matrix covers.

    Raises
    ------
    AscendError
        Of kind ``"layout"`` for an array that is no matrix with contiguous rows.
    """
    if array.ndim != 2 or (array.shape[1] > 1 and array.strides[1] != array.itemsize):
        raise AscendError("layout", "global memory must be a matrix with contiguous rows; got "
                                    f"shape {array.shape}, strides {array.strides}")
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    pitch = array.strides[0] if array.shape[0] > 1 else max(
        owner.strides[0] if owner.ndim else 0, array.shape[1] * array.itemsize, 1)
    offset = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0])
    top, start = divmod(offset, pitch)
    return Region(f"global array of shape {owner.shape} at {id(owner):#x}", start,
                  start + array.shape[1] * array.itemsize, top, top + array.shape[0])
