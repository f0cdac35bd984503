"""Checkpoints: arrays and a few words in one safetensors file, whole or not at all.

The layout is that of https://github.com/huggingface/safetensors (8 bytes: length of the header; the
header, JSON; the arrays' bytes), which other programs read. Checksums of every array and of the
header are in the header's metadata.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from distlearn.nn.arrays import Array, Params

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16), "I64": np.dtype("<i8"), "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"), "I8": np.dtype("i1"), "U64": np.dtype("<u8"), "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"), "U8": np.dtype("u1"), "BOOL": np.dtype("?"),
}  # fmt: skip
CODES = {dtype: code for code, dtype in DTYPES.items()}
METADATA = "__metadata__"
NO_CHECKSUM = "00000000"


class CheckpointError(ValueError):
    """A checkpoint that is damaged, or does not hold what was asked for."""


def save(
    path: str | os.PathLike[str], arrays: Params, words: Mapping[str, Any] | None = None
) -> None:
    """Write arrays, and anything that JSON can say, to a file.

    It is written under a temporary name beside ``path``, forced to disk, and renamed: a crash
    leaves the old file or the new one.

    Parameters
    ----------
    path : path
    arrays : dict of str to array
        Of the types in `DTYPES`.
    words : dict, optional
        Step, seed, learning rate, ...

    Raises
    ------
    ValueError
        For an array of another type, or one called ``__metadata__``, which the format keeps for
        itself.
    """
    if METADATA in arrays:
        raise ValueError(f"no array of a checkpoint may be called {METADATA!r}")
    header: dict[str, Any] = {METADATA: {}}
    blocks, checksums, offset = [], {}, 0
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<") if array.dtype.kind in "fiu" else array.dtype
        if dtype not in CODES:
            raise ValueError(
                f"array {name!r} has type {array.dtype}; a checkpoint holds {', '.join(DTYPES)}"
            )
        block = np.ascontiguousarray(array, dtype).tobytes()
        span = [offset, offset + len(block)]
        header[name] = {"dtype": CODES[dtype], "shape": list(array.shape), "data_offsets": span}
        checksums[name], offset = _checksum(block), span[1]
        blocks.append(block)
    header[METADATA] = {
        "words": json.dumps(dict(words or {})),
        "crc32": json.dumps(checksums),
        "header_crc32": NO_CHECKSUM,
    }
    header[METADATA]["header_crc32"] = _checksum(_encode(header))
    _write_whole(Path(path), _encode(header), blocks)


def load(
    path: str | os.PathLike[str], expected: Params | Mapping[str, tuple[int, ...]] | None = None
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read a checkpoint that `save` wrote, and check every byte of it.

    Parameters
    ----------
    path : path
    expected : dict of str to array or shape, optional
        Names and shapes (with arrays also types) that it must hold, no more and no fewer.

    Returns
    -------
    arrays, words : dict
        In the order in which they were saved.

    Raises
    ------
    CheckpointError
        If the file is cut short, too long or changed; if it is no such file; or if names, shapes
        or types are not the expected ones. The message names what is wrong.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    raw = path.read_bytes()
    header, body = _read_header(path, raw)
    metadata = header.pop(METADATA)
    checksums, words = json.loads(metadata["crc32"]), json.loads(metadata["words"])
    size = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if len(body) != size:
        what = "cut short" if len(body) < size else "too long"
        raise CheckpointError(f"{path} is {what}: {len(body)} bytes of arrays instead of {size}")
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        block = body[start:end]
        if _checksum(block) != checksums[name]:
            raise CheckpointError(f"{path}: array {name!r} is damaged (checksum differs)")
        arrays[name] = np.frombuffer(block, DTYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    if expected is not None:
        check_names(path, arrays, expected)
    return arrays, words


def check_names(
    path: Path, arrays: Params, expected: Params | Mapping[str, tuple[int, ...]]
) -> None:
    """Refuse arrays whose names, shapes or types are not the expected ones; see `load`."""
    missing = [name for name in expected if name not in arrays]
    extra = [name for name in arrays if name not in expected]
    if missing or extra:
        raise CheckpointError(f"{path}: missing arrays {missing}, unexpected arrays {extra}")
    for name, want in expected.items():
        got = arrays[name]
        shape = want.shape if isinstance(want, np.ndarray) else tuple(want)
        if got.shape != shape:
            raise CheckpointError(f"{path}: array {name!r} has shape {got.shape}, not {shape}")
        if isinstance(want, np.ndarray) and got.dtype != want.dtype:
            raise CheckpointError(f"{path}: array {name!r} has type {got.dtype}, not {want.dtype}")


def _read_header(path: Path, raw: bytes) -> tuple[dict[str, Any], memoryview]:
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 + length or length < 2:
        raise CheckpointError(
            f"{path} is cut short, or no checkpoint: {len(raw)} bytes, header of {length}"
        )
    try:
        header = json.loads(raw[8 : 8 + length])
        stated = header[METADATA]["header_crc32"]
        header[METADATA]["header_crc32"] = NO_CHECKSUM
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: the header is damaged, or not distlearn's") from error
    if stated != _checksum(_encode(header)) or _pad(header, stated) != raw[8 : 8 + length]:
        raise CheckpointError(f"{path}: the header is damaged (checksum differs)")
    return header, memoryview(raw)[8 + length :]


def _pad(header: dict[str, Any], stated: str) -> bytes:
    """The header's bytes as written, with its checksum put back."""
    metadata = {**header[METADATA], "header_crc32": stated}
    return _encode({**header, METADATA: metadata})


def _encode(header: dict[str, Any]) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)  # arrays begin at a multiple of 8 bytes


def _checksum(data: bytes | memoryview) -> str:
    return f"{zlib.crc32(data):08x}"


def _write_whole(path: Path, header: bytes, blocks: list[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
