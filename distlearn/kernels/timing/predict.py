"""The time of a launch: warps queue for an SM's pipes, and blocks wait for memory in between.

1. **Occupancy** says how many blocks an SM holds.
2. **Pipes**: a block needs each of them for some clocks: its schedulers to issue and to address
   (four, each with its own warps), the load/store units to take the 32 addresses of an instruction,
   L1 to look up the tags of lines, L1 and shared memory to bring the data, the way to L2 for
   sectors.
3. **Queues**: a warp hands its accesses over and goes on (NVIDIA staff, developer forum, "How does
   the LSU execute load/store instructions in the Ampere architecture?", 2023): it goes from pipe to
   pipe with its arithmetic and with its accesses at the same time, these wait for shared memory in
   between (Little's law: so long, for so many loads at a time), and the later of both counts. Mean
   value analysis says how many warps get through per clock, from one alone to so many that the
   busiest pipe never rests.
4. **Latency**: between barriers a block does that; then it waits for device memory. If there are no
   barriers, each warp waits for itself.
5. **Waves**: blocks beyond what all SMs hold at once wait for the next wave; the last may be small.
6. **Device memory** carries what is used at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distlearn.hardware import DeviceSpec, Occupancy
from distlearn.hardware import device as find_device
from distlearn.kernels.counters import WARP
from distlearn.kernels.timing.network import Station, alternating, throughput
from distlearn.kernels.timing.resources import Resources
from distlearn.kernels.timing.work import LOADS_IN_FLIGHT, Work, sector_bytes

# Of an SM, the same for every kernel. Clocks as microbenchmarks of an idle chip find them: device
# memory 300 to 500 (Jia et al., arXiv:1804.06826; Abdelkhalik et al., arXiv:2208.11174), a shared
# load 24, and 26 with 16 bytes a lane (Huerta et al., MICRO 2025, table 2: an RTX A6000).
GLOBAL_LATENCY = 500.0
SHARED_LATENCY = 24.0
SCHEDULERS = 4
# What is left of a scheduler's clocks. Address arithmetic and loops, which are not counted, take 2
# to 10 % (as nvcc 13.0 compiles the published ladder), conflicts in the register file and clocks
# below the boost clock the rest. Told by NVIDIA's own library on an RTX A6000, which is no rung:
# 23,250 GFLOP/s (Boehm, 2022), 60 % of the peak, with 92 % multiply-adds in a tile of 128 x 128.
ISSUE_SHARE = 0.65
L2_BYTES_PER_CLOCK = 64.0
L1_BYTES_PER_CLOCK = 128.0  # as shared memory: see `distlearn.kernels.simt.compiled`
# Addresses that each quarter of an SM takes per clock, and that the SM takes. Measured on an RTX
# A6000 (8.6): one access in four clocks a quarter, one in two clocks from all of them (Huerta et
# al., MICRO 2025, section 5.4). For 8.0, NVIDIA's staff says one access a clock (the thread named
# above). The others have no source: small SMs are taken to be as that of 8.6, large as that of 8.0.
ADDRESSES = 8
LOAD_STORE_UNITS = {"7.5": 16, "8.6": 16, "8.9": 16, "12.0": 16}


@dataclass(frozen=True)
class Prediction:
    """What the time model says of a launch on a device.

    Attributes
    ----------
    device : str
    time_s : float
    flops : float
        Floating-point operations of the launch.
    bound : str
        The pipe that is busiest: "issue", "arithmetic", "address", "load/store", "tags", "shared",
        "l2" or "memory"; "latency" if even that one rests more than half of the time.
    occupancy : Occupancy
    resources : Resources
    pipes : mapping of str to float
        Clocks of an SM that a block needs of each pipe.
    wait_clocks : float
        Clocks that a block (without barriers: a warp) waits for memory.
    waves : float
        Blocks over those that the device holds at once.
    memory_s : float
        Seconds for what is used to pass between device memory and chip once.
    requested_bytes : float
        What the SMs ask of the caches and the memory: 32 for each sector.
    """

    device: str
    time_s: float
    flops: float
    bound: str
    occupancy: Occupancy
    resources: Resources
    pipes: Mapping[str, float]
    wait_clocks: float
    waves: float
    memory_s: float
    requested_bytes: float

    @property
    def gflops(self) -> float:
        """GFLOP/s."""
        return self.flops / self.time_s / 1e9

    def __str__(self) -> str:
        held, pipes = self.occupancy, sorted(self.pipes.items(), key=lambda item: -item[1])
        registers, shared = self.resources
        clocks = ", ".join(f"{name} {count:,.0f}" for name, count in pipes)
        return (
            f"on {self.device}: {seconds(self.time_s)}, {self.gflops:,.0f} GFLOP/s, bound by "
            f"{self.bound}\n"
            f"  occupancy     {held.fraction:.1%}: blocks per SM {held.blocks_per_sm}, warps "
            f"{held.warps_per_sm}; limited by {held.limiter}\n"
            f"  block         {registers} registers a thread, {shared:,} shared bytes\n"
            f"  waves         {self.waves:.2f}\n"
            f"  clocks/block  {clocks}; waits {self.wait_clocks:,.0f}")


def seconds(value: float) -> str:
    """A time to print.

    >>> seconds(1.5e-5), seconds(0.0693)
    ('15 us', '69.3 ms')
    """
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"


def predict(work: Work, needs: Resources, device: DeviceSpec | str, dtype: object = "float32"
            ) -> Prediction:
    """The time of a launch.

    Parameters
    ----------
    work : Work
    needs : Resources
        Registers of a thread and shared bytes of a block.
    device : DeviceSpec or str
        A GPU of the catalogue.
    dtype : str or numpy dtype
        Format of the arithmetic (for tensor cores: of their operands).

    Raises
    ------
    KeyError
        For a device that is not in the catalogue.
    ValueError
        If it is no GPU, has no rate for the format, or one block does not fit on an SM.
    """
    spec = device if isinstance(device, DeviceSpec) else find_device(device)
    held = spec.occupancy(threads_per_block=work.threads,
                          registers_per_thread=needs.registers_per_thread,
                          shared_bytes_per_block=needs.shared_bytes_per_block)
    if not held.blocks_per_sm:
        raise ValueError(f"a block of {work.threads} threads with {needs.registers_per_thread} "
                         f"registers each and {needs.shared_bytes_per_block} shared bytes does not "
                         f"fit on an SM of {spec.name}")
    pipes = _pipes(work, spec, dtype)
    busy, busiest = max((clocks, name) for name, clocks in pipes.items())
    barriers = work.counts["barrier_warps"] / work.warps
    # A barrier is passed, and the first loads after it have no arithmetic beside them.
    wait = work.round_trips * GLOBAL_LATENCY + barriers * 2 * SHARED_LATENCY
    clocks = _clocks(work, pipes, wait)
    slots = spec.cores * held.blocks_per_sm
    full, rest = divmod(work.blocks, slots)
    total = full * clocks(held.blocks_per_sm)
    if rest:
        total += clocks(-(-rest // spec.cores))
    memory_s = work.memory_bytes / spec.memory_bytes_per_s
    time_s = max(total / spec.clock_hz, memory_s)
    resident = min(held.blocks_per_sm, -(-work.blocks // spec.cores))
    if time_s == memory_s:
        bound = "memory"
    else:
        bound = "latency" if 2 * resident * busy < clocks(resident) else busiest
    flops = (work.counts["flops"] + work.counts.get("tensor_flops", 0)) * work.blocks
    return Prediction(spec.name, time_s, flops, bound, held, needs, pipes, wait,
                      work.blocks / slots, memory_s, sector_bytes(work.counts) * work.blocks)


def _pipes(work: Work, spec: DeviceSpec, dtype: object) -> dict[str, float]:
    """Clocks of an SM that a block needs of each of its pipes."""
    counts = work.counts
    global_requests = counts["global_load_requests"] + counts["global_store_requests"]
    shared_requests = counts["shared_load_requests"] + counts["shared_store_requests"]
    requests = global_requests + shared_requests + counts["atomic_requests"]
    tensor = counts.get("tensor_flops", 0.0)
    # A multiply and an add are one instruction; a global access needs its address computed.
    instructions = (counts["flops"] / (2 * WARP) + global_requests + requests
                    + counts["branches"] + counts["barrier_warps"] + tensor / 4096)
    arithmetic = counts["flops"] / spec.rate("float32" if tensor else dtype, "vector"
                                             ).flop_per_clock
    if tensor:
        arithmetic = max(arithmetic, tensor / spec.rate(dtype, "matrix").flop_per_clock)
    return {
        "issue": instructions / SCHEDULERS / ISSUE_SHARE,
        "arithmetic": arithmetic,
        "address": requests * WARP / ADDRESSES / SCHEDULERS,
        "load/store": requests * WARP / load_store_units(spec),
        # Up to four tags a clock if their sets differ (NVIDIA staff, the thread named above); rows
        # of a matrix that are a power of two apart share one.
        "tags": counts["global_load_lines"] + counts["global_store_lines"],
        "shared": counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
        + sector_bytes(counts) / L1_BYTES_PER_CLOCK
        + counts["atomic_requests"] + counts["atomic_conflicts"],
        "l2": sector_bytes(counts) / L2_BYTES_PER_CLOCK,
    }


def load_store_units(spec: DeviceSpec) -> int:
    """Addresses that the load/store units of an SM take per clock."""
    return LOAD_STORE_UNITS.get(spec.sm.compute_capability, WARP)


def _clocks(work: Work, pipes: Mapping[str, float], wait: float) -> Callable[[int], float]:
    """Clocks until so many blocks on one SM have finished."""
    counts, shared = work.counts, ("load/store", "tags", "shared", "l2")
    scheduler = max(pipes["issue"], pipes["arithmetic"]) * SCHEDULERS
    address = pipes["address"] * SCHEDULERS
    inside = counts["shared_load_requests"] / LOADS_IN_FLIGHT * SHARED_LATENCY
    hidden = work.hidden_round_trips * GLOBAL_LATENCY

    def blocks_per_clock(blocks: int, warps: int, waiting: float) -> float:
        """If so many warps of each block share its work; ``waiting``: clocks of a warp."""
        accesses = [Station(address / warps, SCHEDULERS),
                    *(Station(pipes[name] / warps) for name in shared)]
        return throughput(blocks * warps, [Station(scheduler / warps, SCHEDULERS)], waiting,
                          accesses, inside / warps) / warps

    def clocks(blocks: int) -> float:
        if not counts["barrier_warps"]:
            return blocks / blocks_per_clock(blocks, work.warps, wait)
        rates = [0.0, *(1 / sum(share / blocks_per_clock(n, warps, 0.0)
                                for warps, share in work.busy.items())
                        for n in range(1, blocks + 1))]
        return max(blocks / alternating(rates, wait), hidden)
    return clocks
