"""What one SM (streaming multiprocessor) holds, per compute capability.

NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities": the technical specifications per compute
capability; allocation units from the occupancy calculator that comes with the CUDA toolkit.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True)
class SMLimits:
    """The resources of one SM, and how they are handed out.

    An SM has four sub-partitions, each with a warp scheduler, its own quarter of the registers and
    of the lanes. A "streaming processor" (CUDA core) is one lane of their arithmetic units: it has
    no scheduler and no program counter of its own.

    Attributes
    ----------
    compute_capability : str
    warps : int
        Warps of 32 threads that can be resident at once.
    blocks : int
        Blocks that can be resident at once.
    shared_bytes : int
        Shared memory at its largest setting; the rest of the same memory is the L1 cache.
    carveouts : tuple of int
        The settings, bytes.
    barriers : int or None
        Barriers of the SM; each block uses one. None where they are never the limit.
    shared_unit, shared_reserved : int
        A block's shared memory is rounded up to this unit, after adding what the system reserves,
        bytes.
    registers, register_unit, max_registers_per_thread : int
        32-bit registers; a warp's are rounded up to the unit.
    subpartitions, warp_size, max_threads_per_block : int
    shared_per_block : int
        Bytes a block may have without asking for more.
    """

    compute_capability: str
    warps: int
    blocks: int
    shared_bytes: int
    carveouts: tuple[int, ...]
    barriers: int | None
    shared_unit: int = 128
    shared_reserved: int = 1024
    registers: int = 65_536
    register_unit: int = 256
    max_registers_per_thread: int = 255
    subpartitions: int = 4
    warp_size: int = 32
    max_threads_per_block: int = 1024
    shared_per_block: int = 48 * KIB

    @property
    def threads(self) -> int:
        """Threads that can be resident at once."""
        return self.warps * self.warp_size

    @property
    def shared_per_block_optin(self) -> int:
        """Bytes a block may have if its launch asks for them."""
        return self.shared_bytes - self.shared_reserved


_VOLTA = (0, 8, 16, 32, 64, 96)
_LARGE = (0, 8, 16, 32, 64, 100, 132, 164)
_SMALL = (0, 8, 16, 32, 64, 100)
_HOPPER = (*_LARGE, 196, 228)

# compute capability: warps, blocks, carveouts in KiB, barriers
_TABLE: dict[str, tuple[int, int, tuple[int, ...], int | None]] = {
    "7.0": (64, 32, _VOLTA, None),
    "7.2": (64, 32, _VOLTA, None),
    "7.5": (32, 16, (32, 64), None),
    "8.0": (64, 32, _LARGE, None),
    "8.6": (48, 16, _SMALL, None),
    "8.7": (48, 16, _LARGE, None),
    "8.9": (48, 24, _SMALL, None),
    "9.0": (64, 32, _HOPPER, 64),
    "10.0": (64, 32, _HOPPER, 64),
    "10.3": (64, 32, _HOPPER, 64),
    "11.0": (48, 24, _HOPPER, 24),
    "12.0": (48, 24, _SMALL, 24),
    "12.1": (48, 24, _SMALL, 24),
}


def sm_limits(compute_capability: str) -> SMLimits:
    """The limits of an SM of this compute capability, 7.0 to 12.1.

    Raises
    ------
    ValueError
        For a compute capability that is not known, with those that are.

    Examples
    --------
    >>> a100 = sm_limits("8.0")
    >>> a100.threads, a100.registers * 4 // 1024, a100.shared_bytes // 1024, a100.blocks
    (2048, 256, 164, 32)
    """
    key = str(compute_capability)
    if key not in _TABLE:
        raise ValueError(f"compute_capability must be one of {', '.join(_TABLE)}; got "
                         f"{compute_capability!r}")
    warps, blocks, carveouts, barriers = _TABLE[key]
    old = key.startswith("7.")
    return SMLimits(key, warps, blocks, carveouts[-1] * KIB, tuple(k * KIB for k in carveouts),
                    barriers, shared_unit=256 if old else 128, shared_reserved=0 if old else 1024)
