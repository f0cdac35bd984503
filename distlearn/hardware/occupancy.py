"""Occupancy: how many blocks and warps of a kernel one SM holds, and what stops it there.

The rules are those of the occupancy calculator in the CUDA toolkit (``cuda_occupancy.h``): each of
warps, registers, shared memory, blocks and barriers allows a number of blocks; the least counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from distlearn.hardware.compute_capability import SMLimits, sm_limits


@dataclass(frozen=True)
class Occupancy:
    """What one SM holds of a kernel.

    Attributes
    ----------
    blocks_per_sm, warps_per_sm : int
        Resident at once.
    fraction : float
        Resident warps over those that the SM could hold.
    limiter : str
        What allows no more blocks: ``"warps"``, ``"registers"``, ``"shared"``, ``"blocks"`` or
        ``"barriers"``, several joined by ``|`` if they tie. ``"cannot_launch"`` if one block alone
        needs more than there is; ``limits`` has a 0 for what is short.
    limits : mapping of str to int or None
        Blocks that each resource allows; None if the kernel does not use it.
    registers_per_block, shared_bytes_per_block : int
        What a block is given, after rounding up.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limiter: str
    limits: Mapping[str, int | None] = field(repr=False, hash=False)
    registers_per_block: int = field(repr=False)
    shared_bytes_per_block: int = field(repr=False)


class BestBlock(NamedTuple):
    """The block size with the best occupancy, and the smallest grid that fills the device."""

    threads_per_block: int
    min_grid_blocks: int


def occupancy(*, compute_capability: str, threads_per_block: int, registers_per_thread: int,
              shared_bytes_per_block: int = 0) -> Occupancy:
    """Blocks and warps of a kernel that are resident on one SM.

    Parameters
    ----------
    compute_capability : str
        Such as ``"8.0"``.
    threads_per_block : int
        1 to 1024.
    registers_per_thread : int
        0 to 255, as the compiler reports.
    shared_bytes_per_block : int
        Static and dynamic shared memory together.

    Raises
    ------
    ValueError
        Naming the argument that is out of range. (Too much for an SM is an answer, not an error:
        0 blocks, ``"cannot_launch"``.)

    Examples
    --------
    The shared-memory matrix product of a well-known ladder, on an RTX A6000: 1,024 threads of 37
    registers. A second block would need 16 more warps and 40,960 registers, and has neither.

    >>> occupancy(compute_capability="8.6", threads_per_block=1024, registers_per_thread=37,
    ...           shared_bytes_per_block=8192)
    Occupancy(blocks_per_sm=1, warps_per_sm=32, fraction=0.6666666666666666, \
limiter='warps|registers')
    """
    sm = sm_limits(compute_capability)
    _check("threads_per_block", threads_per_block, 1, sm.max_threads_per_block)
    _check("registers_per_thread", registers_per_thread, 0, sm.max_registers_per_thread)
    _check("shared_bytes_per_block", shared_bytes_per_block, 0)
    warps = -(-threads_per_block // sm.warp_size)
    by_registers, registers = _register_limit(sm, warps, registers_per_thread)
    by_shared, shared = _shared_limit(sm, shared_bytes_per_block)
    limits = {"warps": sm.warps // warps, "registers": by_registers, "shared": by_shared,
              "blocks": sm.blocks, "barriers": sm.barriers}
    blocks = min(limit for limit in limits.values() if limit is not None)
    limiter = "|".join(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / sm.warps,
                     limiter if blocks else "cannot_launch", MappingProxyType(limits), registers,
                     shared)


def best_block(*, compute_capability: str, registers_per_thread: int,
               shared_bytes_per_block: int = 0, sms: int = 1) -> BestBlock:
    """The block size that keeps most threads resident; of equal ones, the largest.

    Occupancy is not speed: the register-tiled kernels at the top of a GEMM ladder have low
    occupancy. Parameters and errors as `occupancy`; ``sms`` is the device's number of SMs.

    Raises
    ------
    ValueError
        Also if no block size can be launched.

    Examples
    --------
    >>> best_block(compute_capability="8.0", registers_per_thread=64, sms=108)
    BestBlock(threads_per_block=1024, min_grid_blocks=108)
    """
    sm = sm_limits(compute_capability)
    _check("sms", sms, 1)
    best, best_threads, best_blocks = 0, 0, 0
    for threads in range(sm.max_threads_per_block, 0, -sm.warp_size):
        held = occupancy(compute_capability=compute_capability, threads_per_block=threads,
                         registers_per_thread=registers_per_thread,
                         shared_bytes_per_block=shared_bytes_per_block).blocks_per_sm
        if held * threads > best:
            best, best_threads, best_blocks = held * threads, threads, held
    if not best:
        raise ValueError(f"shared_bytes_per_block = {shared_bytes_per_block} is more than a block "
                         f"can have on compute capability {compute_capability}: "
                         f"{sm.shared_per_block_optin}")
    return BestBlock(best_threads, best_blocks * sms)


def dynamic_shared_room(*, compute_capability: str, blocks_per_sm: int, threads_per_block: int,
                        registers_per_thread: int = 0, static_shared_bytes: int = 0,
                        reserve: bool = False) -> int | None:
    """Bytes of dynamic shared memory each block can have if so many must fit on an SM.

    None if they do not fit even with none. Other parameters and errors as `occupancy`.

    Parameters
    ----------
    reserve : bool
        From compute capability 8.0 on the system takes 1,024 bytes of each block's share. The
        toolkit's calculator leaves them in its answer, and so does this function by default: with
        all of it, one block less fits. True takes them out.

    Examples
    --------
    >>> two = {"compute_capability": "8.0", "blocks_per_sm": 2, "threads_per_block": 256}
    >>> dynamic_shared_room(**two), dynamic_shared_room(**two, reserve=True)
    (83968, 82944)
    """
    sm = sm_limits(compute_capability)
    _check("blocks_per_sm", blocks_per_sm, 1)
    now = occupancy(compute_capability=compute_capability, threads_per_block=threads_per_block,
                    registers_per_thread=registers_per_thread,
                    shared_bytes_per_block=static_shared_bytes)
    if now.blocks_per_sm < blocks_per_sm:
        return None
    share = sm.shared_bytes // blocks_per_sm // sm.shared_unit * sm.shared_unit
    if reserve:
        share -= sm.shared_reserved
    return min(share, sm.shared_per_block_optin) - static_shared_bytes


def _register_limit(sm: SMLimits, warps: int, registers_per_thread: int) -> tuple[int | None, int]:
    """Blocks that the registers allow, and the registers of one block."""
    per_warp = _round_up(registers_per_thread * sm.warp_size, sm.register_unit)
    if not per_warp:
        return None, 0
    # A launch is checked as if every sub-partition held as many warps as the fullest one.
    if per_warp * _round_up(warps, sm.subpartitions) > sm.registers:
        return 0, per_warp * warps
    warps_held = sm.registers // sm.subpartitions // per_warp * sm.subpartitions
    return warps_held // warps, per_warp * warps


def _shared_limit(sm: SMLimits, asked: int) -> tuple[int | None, int]:
    """Blocks that the shared memory allows, and the bytes of one block."""
    given = _round_up(asked + sm.shared_reserved, sm.shared_unit)
    if not given:
        return None, 0
    return (sm.shared_bytes // given if given <= sm.shared_bytes else 0), given


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _check(name: str, value: int, low: int, high: int | None = None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < low \
            or (high is not None and value > high):
        rule = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {rule}; got {name}={value!r}")
