"""How an array travels between processes: an envelope of fixed size, then the data if it is large.

The envelope holds dtype and shape, and the data itself where it fits, so a small message is one
transfer. Data is never pickled; the few words of the envelope are.
"""

from __future__ import annotations

import pickle
import struct
from math import prod
from typing import Any

import numpy as np

from distlearn.comm.communicator import MAX_TAG
from distlearn.comm.layout import Array

ENVELOPE_BYTES = 1024
_LENGTH = struct.Struct("<I")

COLLECTIVE, ENVELOPE, DATA = range(3)
"""The kinds of message of one group; the messages of one kind and tag arrive in order."""

MAX_CONTEXTS = 2048


def wire_tag(context: int, kind: int, tag: int = 0) -> int:
    """One number for group, kind of message and the user's tag; 28 bits, MPICH's limit."""
    return (context * 4 + kind) * (MAX_TAG + 1) + tag


def as_bytes(array: Array) -> Array:
    """The bytes of a contiguous array, as a flat uint8 view."""
    return array.reshape(-1).view(np.uint8)


def pack(array: Array) -> tuple[Array, Array | None]:
    """The envelope of a contiguous array, and its data if that does not fit into it.

    Raises
    ------
    ValueError
        If the dtype's description is longer than an envelope (a record with very many fields).
    """
    head = pickle.dumps((array.dtype, array.shape), protocol=5)
    start = _LENGTH.size + len(head)
    if start > ENVELOPE_BYTES:
        raise ValueError(f"the description of dtype {array.dtype} takes {len(head)} bytes, more "
                         f"than the {ENVELOPE_BYTES} of an envelope")
    envelope = np.zeros(ENVELOPE_BYTES, np.uint8)
    envelope[:start] = np.frombuffer(_LENGTH.pack(len(head)) + head, np.uint8)
    data = as_bytes(array)
    if start + data.size > ENVELOPE_BYTES:
        return envelope, data
    envelope[start:start + data.size] = data
    return envelope, None


def unpack(envelope: Array) -> tuple[Array, bool]:
    """The array of an envelope, and whether it still has to be filled with the data."""
    (length,) = _LENGTH.unpack(envelope[:_LENGTH.size].tobytes())
    start = _LENGTH.size + length
    dtype, shape = pickle.loads(envelope[_LENGTH.size:start].tobytes())
    array: Array = np.empty(shape, dtype)
    stop = start + prod(shape) * dtype.itemsize
    if stop > ENVELOPE_BYTES:
        return array, True
    as_bytes(array)[:] = envelope[start:stop]
    return array, False


def to_slot(content: Any, size: int) -> tuple[Array, bytes]:
    """A header slot of ``size`` bytes that starts with the content's length, and the content."""
    data = pickle.dumps(content, protocol=5)
    slot = np.zeros(size, np.uint8)
    words = (_LENGTH.pack(len(data)) + data)[:size]
    slot[:len(words)] = np.frombuffer(words, np.uint8)
    return slot, data


def from_slot(slot: Array) -> tuple[int, bytes]:
    """The length of a slot's content, and as much of it as is there."""
    (length,) = _LENGTH.unpack(slot[:_LENGTH.size].tobytes())
    return length, slot[_LENGTH.size:_LENGTH.size + length].tobytes()
