"""Memory of a host and its device: blocks of bytes at addresses, apart from each other."""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlearn.kernels.cuda_c import types
from distlearn.kernels.cuda_c.types import CType, Number, Pointer

FIRST = {"host": 1 << 24, "device": 1 << 40}  # addresses of the first blocks
CODES = {("i", 1): "b", ("u", 1): "B", ("b", 1): "?", ("i", 2): "h", ("u", 2): "H", ("f", 2): "e",
         ("i", 4): "i", ("u", 4): "I", ("f", 4): "f", ("i", 8): "q", ("u", 8): "Q",
         ("f", 8): "d"}


class AccessError(RuntimeError):
    """An access that memory does not allow; the message says why."""


@dataclass(eq=False)
class Block:
    """Bytes that were allocated together."""

    space: str
    what: str
    address: int
    data: memoryview
    freed: bool = False
    typed: dict[np.dtype[Any], NDArray[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def array(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """All whole elements as one array; the same object every time."""
        if dtype not in self.typed:
            self.typed[dtype] = np.frombuffer(self.data, dtype, self.size // dtype.itemsize)
        return self.typed[dtype]


class Memory:
    """All blocks."""

    def __init__(self) -> None:
        self.next = dict(FIRST)
        self.blocks: dict[str, list[Block]] = {"host": [], "device": []}
        self.starts: dict[str, list[int]] = {"host": [], "device": []}

    def allocate(self, size: int, space: str, what: str, data: memoryview | None = None) -> Block:
        """A block of bytes, all zero unless ``data`` is given."""
        if size > 1 << 32:
            raise AccessError(f"{size} bytes at once are more than is simulated")
        address = self.next[space]
        block = Block(space, what, address, memoryview(bytearray(size)) if data is None else data)
        self.next[space] = -(-(address + max(size, 1)) // 256) * 256 + 256
        self.blocks[space].append(block)
        self.starts[space].append(address)
        return block

    def block(self, address: int) -> Block:
        """The block that an address points into, or just past the end of."""
        if address == 0:
            raise AccessError("the pointer is NULL")
        space = "device" if address >= FIRST["device"] else "host"
        place = bisect_right(self.starts[space], address) - 1
        if place >= 0:
            block = self.blocks[space][place]
            if address <= block.address + block.size:
                if block.freed:
                    raise AccessError(f"the memory of {block.what} has been freed")
                return block
        raise AccessError(f"the pointer {address:#x} points to no memory")

    def at(self, address: int, size: int, space: str) -> tuple[Block, int]:
        """The block and offset of ``size`` bytes in a space.

        Raises
        ------
        AccessError
            They are outside of every block, freed, or in the other space.
        """
        block = self.block(address)
        offset = address - block.address
        if block.space != space:
            raise AccessError(f"{block.what} is {block.space} memory, and is used as {space} "
                              "memory: copy with cudaMemcpy")
        if offset + size > block.size:
            raise AccessError(f"{size} bytes at byte {offset} of {block.what}, which has "
                              f"{block.size}")
        return block, offset

    def free(self, address: int, space: str) -> None:
        """Free a block; NULL is nothing."""
        if address == 0:
            return
        block = self.block(address)
        if block.space != space or block.address != address:
            raise AccessError(f"{block.what} cannot be freed as {space} memory by this pointer")
        block.freed = True

    def read(self, address: int, kind: CType) -> Any:
        """A value: an int, float, address, or the bytes of a structure."""
        block, offset = self.at(address, kind.size, "host")
        return decode(kind, block.data, offset)

    def write(self, address: int, kind: CType, value: Any) -> None:
        """Store a value."""
        block, offset = self.at(address, kind.size, "host")
        block.data[offset:offset + kind.size] = encode(kind, value)

    def copy(self, to: tuple[int, str], source: tuple[int, str], size: int) -> None:
        """Copy bytes; each end is an address and the space it must be in."""
        block, offset = self.at(source[0], size, source[1])
        target, start = self.at(to[0], size, to[1])
        target.data[start:start + size] = bytes(block.data[offset:offset + size])


def decode(kind: CType, data: memoryview | bytes, offset: int = 0) -> Any:
    """The value of bytes."""
    if isinstance(kind, Number):
        value = struct.unpack_from("<" + CODES[kind.kind, kind.size], data, offset)[0]
        return kind.dtype.type(value) if kind.kind == "f" else int(value)
    if isinstance(kind, Pointer):
        return struct.unpack_from("<Q", data, offset)[0]
    return bytes(data[offset:offset + kind.size])


def encode(kind: CType, value: Any) -> bytes:
    """The bytes of a value."""
    if isinstance(kind, Number):
        if kind == types.FLOAT:  # numpy rounds to infinity where struct refuses
            return np.float32(value).tobytes()
        return struct.pack("<" + CODES[kind.kind, kind.size], value)
    if isinstance(kind, Pointer):
        return struct.pack("<Q", value)
    return bytes(value)
