"""The time of a launch: blocks queue for an SM's pipes, and wait for memory in between.

1. **Occupancy** says how many blocks an SM holds.
2. **Throughput**: a block needs each pipe of the SM for some clocks (instruction issue, arithmetic,
   L1 and shared memory, its way to L2). The busiest is the bottleneck, ``s`` clocks a block.
3. **Latency** (Little's law): between its turns a block waits ``Z`` clocks for memory. ``n``
   customers that alternate between one server and a wait are the simplest closed queueing network;
   its mean value analysis (Reiser and Lavenberg, Journal of the ACM 27(2), 1980) gives how many
   finish per clock: ``1 / s`` if there are many, ``n / (Z + s)`` if there are few. Customers are
   blocks if barriers hold their warps together, else warps.
4. **Waves**: blocks beyond what all SMs hold at once wait for the next wave; the last may be small.
5. **Device memory** carries what is used at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distlearn.hardware import DeviceSpec, Occupancy
from distlearn.hardware import device as find_device
from distlearn.kernels.counters import WARP
from distlearn.kernels.timing.resources import Resources
from distlearn.kernels.timing.work import Work, sector_bytes

# Of an SM, the same for every device and kernel. Clocks as microbenchmarks find them (Jia et al.,
# arXiv:1804.06826; Abdelkhalik et al., arXiv:2208.11174): a shared load 20 to 30, device memory
# 300 to 500 when it is idle, and more when others use it too.
GLOBAL_LATENCY = 600.0
SHARED_LATENCY = 30.0
SCHEDULERS = 4
ISSUE_SHARE = 0.8  # of clocks in which a scheduler finds a warp that is ready
L2_BYTES_PER_CLOCK = 64.0


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
        The pipe that is busiest: "issue", "arithmetic", "shared", "l2" or "memory"; "latency" if a
        block waits longer than it works.
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
    wait = work.round_trips * GLOBAL_LATENCY + barriers * SHARED_LATENCY
    hidden = work.hidden_round_trips * GLOBAL_LATENCY

    def clocks(blocks: int) -> float:
        """Until so many blocks on one SM have finished."""
        if barriers:
            return max(_closed_network(blocks, busy, wait), hidden)
        return _closed_network(blocks * work.warps, busy / work.warps, wait)

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
    elif resident * busy < (wait + busy if barriers else wait):
        bound = "latency"
    else:
        bound = busiest
    flops = (work.counts["flops"] + work.counts.get("tensor_flops", 0)) * work.blocks
    return Prediction(spec.name, time_s, flops, bound, held, needs, pipes, wait,
                      work.blocks / slots, memory_s, sector_bytes(work.counts) * work.blocks)


def _pipes(work: Work, spec: DeviceSpec, dtype: object) -> dict[str, float]:
    """Clocks of an SM that a block needs of each of its pipes."""
    counts = work.counts
    global_requests = counts["global_load_requests"] + counts["global_store_requests"]
    shared_requests = counts["shared_load_requests"] + counts["shared_store_requests"]
    tensor = counts.get("tensor_flops", 0.0)
    # A multiply and an add are one instruction; a global access needs its address computed.
    instructions = (counts["flops"] / (2 * WARP) + 2 * global_requests + shared_requests
                    + counts["branches"] + counts["barrier_warps"] + counts["atomic_requests"]
                    + tensor / 4096)
    arithmetic = counts["flops"] / spec.rate("float32" if tensor else dtype, "vector"
                                             ).flop_per_clock
    if tensor:
        arithmetic = max(arithmetic, tensor / spec.rate(dtype, "matrix").flop_per_clock)
    return {
        "issue": instructions / SCHEDULERS / ISSUE_SHARE,
        "arithmetic": arithmetic,
        "shared": counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
        + counts["global_load_lines"] + counts["global_store_lines"]
        + counts["atomic_requests"] + counts["atomic_conflicts"],
        "l2": sector_bytes(counts) / L2_BYTES_PER_CLOCK,
    }


def _closed_network(customers: int, service: float, wait: float) -> float:
    """Clocks in which each of the customers is served once, in the long run.

    >>> _closed_network(1, 10, 90), round(_closed_network(1000, 10, 90))
    (100.0, 10000)
    """
    queue, cycle = 0.0, 0.0
    for n in range(1, customers + 1):
        response = service * (1 + queue)
        cycle = wait + response
        queue = n * response / cycle if cycle else 0.0
    return float(cycle)
