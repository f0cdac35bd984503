"""What one warp's access costs: sectors and lines of global memory, wavefronts of shared memory.

Global memory moves in sectors of 32 bytes, four to a line of 128 bytes; a request touches those
that its lanes' addresses fall in (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to
Global Memory"). Shared memory has 32 banks of 4 bytes: lanes that want different words of one bank
take turns, called wavefronts; lanes that want the same word share one (ibid., "Shared Memory and
Memory Banks"). No cache is modelled here.

Every function takes any number of warps at once and costs one sort of their addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

SECTOR_BYTES = 32
LINE_BYTES = 128
BANKS = 32
BANK_BYTES = 4


@dataclass(frozen=True)
class GlobalAccess:
    """What requests to global memory move; one entry per warp, 0 for a warp with no active lane.

    Attributes
    ----------
    sectors, lines : array of int
        Distinct 32-byte sectors and 128-byte lines.
    requested_bytes : array of int
        Active lanes times the size of their element.
    useful_bytes : array of int
        The same with bytes that several lanes want counted once.

    Examples
    --------
    A warp reads 32 floats in a row; then it starts one float later, then it takes every second one:

    >>> lanes = np.arange(32)
    >>> access = global_access([4 * lanes, 4 * (lanes + 1), 4 * (2 * lanes)], 4)
    >>> access.sectors.tolist(), access.efficiency.tolist()
    ([4, 5, 8], [1.0, 0.8, 0.5])
    """

    sectors: Ints
    lines: Ints
    requested_bytes: Ints
    useful_bytes: Ints

    @property
    def requests(self) -> Ints:
        """1 for a warp with an active lane, else 0."""
        return (self.sectors > 0).astype(np.int64)

    @property
    def moved_bytes(self) -> Ints:
        """Bytes of the sectors."""
        return self.sectors * SECTOR_BYTES

    @property
    def efficiency(self) -> NDArray[np.float64]:
        """Useful over moved bytes; 1 where nothing moves."""
        moved = self.moved_bytes
        return np.divide(self.useful_bytes, moved, out=np.ones(moved.shape), where=moved > 0)


def global_access(addresses: ArrayLike, itemsize: int,
                  active: ArrayLike | None = None) -> GlobalAccess:
    """Sectors and lines that warps touch in one load or store.

    Parameters
    ----------
    addresses : array of int, shape (..., lanes)
        Byte address of each lane's element; the last axis is one warp of at most 32 lanes.
    itemsize : int
        Bytes of the element: 1, 2, 4, 8 or 16.
    active : array of bool, same shape, optional
        Lanes that take part. Default: all.

    Returns
    -------
    GlobalAccess
        Arrays of shape (...).

    Raises
    ------
    ValueError
        For a negative address, other sizes, more than 32 lanes or a mask of another shape.
    """
    lanes, on = _lanes(addresses, itemsize, active)
    ordered = np.sort(lanes, axis=-1)  # sectors, lines and bytes are all in this order
    any_on = on.any(axis=-1)

    def covered(granule: int) -> Ints:
        first, last = ordered // granule, (ordered + (itemsize - 1)) // granule
        new = last[..., 1:] - np.maximum(first[..., 1:] - 1, last[..., :-1])
        total = last[..., 0] - first[..., 0] + 1 + new.sum(axis=-1)
        return np.where(any_on, total, 0)

    return GlobalAccess(covered(SECTOR_BYTES), covered(LINE_BYTES),
                        on.sum(axis=-1, dtype=np.int64) * itemsize, covered(1))


@dataclass(frozen=True)
class SharedAccess:
    """What requests to shared memory take; one entry per warp, 0 without an active lane.

    Attributes
    ----------
    wavefronts : array of int
        Turns that the access takes, one a clock.
    extra_wavefronts : array of int
        Those that bank conflicts add to what the size of the elements needs anyway.
    """

    wavefronts: Ints
    extra_wavefronts: Ints


def shared_access(addresses: ArrayLike, itemsize: int,
                  active: ArrayLike | None = None) -> SharedAccess:
    """Wavefronts of shared-memory accesses: the most distinct words that fall into one bank.

    Elements of 8 and 16 bytes are served a half and a quarter of a warp at a time. NVIDIA has not
    published this for current chips; it is what measurements agree on.

    Parameters, shapes and errors as `global_access`.

    Examples
    --------
    A row of a 32 x 32 tile of floats, a column, and a column after padding each row to 33 floats:

    >>> lanes = np.arange(32)
    >>> shared_access([4 * lanes, 4 * 32 * lanes, 4 * 33 * lanes], 4).wavefronts.tolist()
    [1, 32, 1]
    """
    lanes, on = _lanes(addresses, itemsize, active)
    shape, width = lanes.shape[:-1], lanes.shape[-1]
    turns = max(1, itemsize // BANK_BYTES)
    size = -(-width // turns)
    if width % turns:  # a partial warp: lanes that are off fill the last turn
        missing = [(0, 0)] * (lanes.ndim - 1) + [(0, size * turns - width)]
        lanes, on = np.pad(lanes, missing, mode="edge"), np.pad(on, missing)
    lanes, on = lanes.reshape(-1, size), on.reshape(-1, size)
    lanes = _fill(lanes, on)
    first = lanes // BANK_BYTES
    words = (first[..., None] + np.arange(turns)).reshape(len(first), size * turns)
    if (lanes + itemsize - 1 >= (first + turns) * BANK_BYTES).any():  # not aligned to its size
        words = np.concatenate([words, (lanes + itemsize - 1) // BANK_BYTES], axis=-1)
    words.sort(axis=-1)
    new = np.ones(words.shape, dtype=bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    banks = words % BANKS + BANKS * np.arange(len(words))[:, None]
    counts = np.bincount(banks[new], minlength=BANKS * len(words)).reshape(len(words), BANKS)
    used = on.any(axis=-1)
    per_turn = np.where(used, counts.max(axis=-1, initial=0), 0).reshape(*shape, turns)
    total = np.asarray(per_turn.sum(axis=-1))
    return SharedAccess(total, total - used.reshape(*shape, turns).sum(axis=-1))


def _lanes(addresses: ArrayLike, itemsize: int,
           active: ArrayLike | None) -> tuple[Ints, NDArray[np.bool_]]:
    """Addresses with lanes that are off put where an active lane of the warp is, and the mask."""
    lanes = np.asarray(addresses)
    if not np.issubdtype(lanes.dtype, np.integer) or lanes.ndim == 0 or not (
            1 <= lanes.shape[-1] <= 32):
        raise ValueError("addresses must be integers of shape (..., lanes), 1 to 32 lanes; got "
                         f"{lanes.dtype} of shape {lanes.shape}")
    if itemsize not in (1, 2, 4, 8, 16):
        raise ValueError(f"itemsize must be 1, 2, 4, 8 or 16 bytes; got itemsize={itemsize!r}")
    on = np.ones(lanes.shape, dtype=bool) if active is None else np.asarray(active, dtype=bool)
    if on.shape != lanes.shape:
        raise ValueError(f"active has shape {on.shape}, addresses have {lanes.shape}; they must "
                         "be equal")
    lanes = lanes.astype(np.int64, copy=False)
    if active is not None:
        lanes = _fill(lanes, on)
    if lanes.size and lanes.min() < 0:
        raise ValueError(f"addresses must not be negative; got {lanes.min()}")
    return lanes, on


def _fill(lanes: Ints, on: NDArray[np.bool_]) -> Ints:
    if on.all():
        return lanes
    some = np.take_along_axis(lanes, on.argmax(axis=-1, keepdims=True), axis=-1)
    some = np.where(on.any(axis=-1, keepdims=True), some, 0)
    return np.where(on, lanes, some)
