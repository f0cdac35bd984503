"""The memories of a device, from the registers outwards: how large, how many, how fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from distlearn.hardware.ai_core import ai_core
from distlearn.hardware.devices import DeviceSpec, device


@dataclass(frozen=True)
class MemoryLevel:
    """One level of the hierarchy.

    Attributes
    ----------
    name : str
    scope : str
        Who shares one of them.
    count : int
        How many a device has.
    bytes : int or None
        Capacity of one; None for what lies outside of the device.
    bytes_per_s : float or None
        Bandwidth of all of them together, one direction; None where it is not published.
    origin : str
        The source of the bandwidth, or the arithmetic behind it.
    """

    name: str
    scope: str
    count: int
    bytes: int | None
    bytes_per_s: float | None
    origin: str

    @property
    def total_bytes(self) -> int | None:
        """Capacity of all of them together."""
        return None if self.bytes is None else self.count * self.bytes


def memory_hierarchy(spec: DeviceSpec | str) -> tuple[MemoryLevel, ...]:
    """The memories of a device, nearest first.

    Raises
    ------
    KeyError
        For a name that is not in the catalogue.

    Examples
    --------
    All registers of an A100 together are more than half of its level-2 cache:

    >>> for level in memory_hierarchy("A100-SXM4-80GB")[:3]:
    ...     print(f"{level.name}: {level.total_bytes / 2**20:.1f} MiB, "
    ...           f"{level.bytes_per_s / 1e12:.1f} TB/s")
    registers: 27.0 MiB, 117.0 TB/s
    shared memory: 17.3 MiB, 19.5 TB/s
    L2: 40.0 MiB, 7.2 TB/s
    """
    spec = device(spec) if isinstance(spec, str) else spec
    return (
        *(_gpu(spec) if spec.compute_capability is not None else _npu(spec)),
        MemoryLevel(spec.memory_type, "device", 1, spec.memory_bytes, spec.memory_bytes_per_s,
                    spec.sources["memory_bytes_per_s"]),
        *([MemoryLevel(f"other devices ({spec.link_type})", "node", 1, None,
                       spec.link_bytes_per_s, spec.sources["link_bytes_per_s"])]
          if spec.link_bytes_per_s else []),
        MemoryLevel(f"host ({spec.host_type})", "node", 1, None, spec.host_bytes_per_s,
                    spec.sources["host_bytes_per_s"]),
    )


def _gpu(spec: DeviceSpec) -> Iterator[MemoryLevel]:
    lanes = spec.rate("float32", "vector").flop_per_clock // 2
    per_clock = spec.cores * spec.clock_hz
    yield MemoryLevel("registers", "thread (a quarter of an SM holds them)", spec.cores,
                      spec.sm.registers * 4, 12.0 * lanes * per_clock,
                      f"3 operands of 4 bytes for each of {lanes} float32 lanes and clock")
    yield MemoryLevel("shared memory", "block", spec.cores, spec.sm.shared_bytes,
                      128.0 * per_clock, "32 banks, a word of 4 bytes each per clock")
    l2 = spec.l2_bytes_per_clock
    yield MemoryLevel("L2", "device", 1, spec.l2_bytes, l2 * spec.clock_hz if l2 else None,
                      spec.sources["l2_bytes_per_clock"] if l2 else "not published")


def _npu(spec: DeviceSpec) -> Iterator[MemoryLevel]:
    core = ai_core(spec)
    per_clock = spec.cores * core.clock_hz
    step = "the cube unit reads one fractal of 512 bytes of each operand per clock"
    yield MemoryLevel("L0A", "cube core", spec.cores, core.buffers["L0A"], 512.0 * per_clock, step)
    yield MemoryLevel("L0B", "cube core", spec.cores, core.buffers["L0B"], 512.0 * per_clock, step)
    yield MemoryLevel("L0C", "cube core", spec.cores, core.buffers["L0C"], 1024.0 * per_clock,
                      "the cube unit adds to 16 x 16 float32 per clock")
    yield MemoryLevel("L1", "cube core", spec.cores, core.buffers["L1"],
                      core.rates["L1-L0A"] * per_clock, f"to L0A; {core.source}")
    vectors = spec.cores * core.vector_cores
    yield MemoryLevel("UB", "vector core", vectors, core.buffers["UB"],
                      256.0 * vectors * core.clock_hz, "256 bytes per vector instruction and clock")
    yield MemoryLevel("L2", "device", 1, spec.l2_bytes, core.rates["global-L1"] * per_clock,
                      f"to L1; {core.source}")
