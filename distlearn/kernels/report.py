"""What a launch did and what it would take: counters beside the profiler's names, and a time."""

from __future__ import annotations

from dataclasses import dataclass

from distlearn.kernels.counters import NSIGHT, Counters
from distlearn.kernels.timing import Prediction
from distlearn.kernels.timing.predict import seconds

# Ratios that say more than their parts: name, counter, per counter, Nsight Compute's name.
_RATIOS = (
    ("sectors per global load", "global_load_sectors", "global_load_requests",
     "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
    ("sectors per global store", "global_store_sectors", "global_store_requests",
     "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"),
    # Without bank conflicts 1; 2 and 4 where lanes read 8 and 16 bytes.
    ("wavefronts per shared load", "shared_load_wavefronts", "shared_load_requests",
     "beyond 1: l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    ("wavefronts per shared store", "shared_store_wavefronts", "shared_store_requests",
     "beyond 1: l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
)


@dataclass(frozen=True)
class LaunchReport:
    """What a launch did. ``print(report)`` shows it all, `listing` where in the source.

    Attributes
    ----------
    kernel : str
    grid, block : tuple of int
        (x, y, z).
    counters : Counters
        By name, and per source line; see `distlearn.kernels.counters`. None are counted on a GPU.
    source : str
    first_line : int
        Line of the file on which ``source`` begins.
    prediction : Prediction or None
        Time and occupancy on a device, if one was named.
    measured_s : float or None
        Seconds that the kernel took, if it ran on a GPU.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counters: Counters
    source: str
    first_line: int
    prediction: Prediction | None = None
    measured_s: float | None = None

    def listing(self) -> str:
        """The source, each line with the counters it is charged."""
        return "\n".join(
            f"{number:5d}  {line:<72}" + "  ".join(
                f"{name}={count:,}" for name, count in
                self.counters.by_line.get(number, {}).items())
            for number, line in enumerate(self.source.rstrip().splitlines(), self.first_line)
        )

    def __str__(self) -> str:
        rows = [(name, f"{count:,}", NSIGHT.get(name, "")) for name, count in self.counters.items()
                if count]
        rows += [(name, f"{self.counters[top] / self.counters[bottom]:.2f}", nsight)
                 for name, top, bottom, nsight in _RATIOS if self.counters[bottom]]
        text = [f"{self.kernel}: grid {self.grid}, block {self.block}"]
        if rows:
            names, counts = (max(len(row[n]) for row in rows) for n in (0, 1))
            text.append(f"  {'counter':<{names}}  {'count':>{counts}}  in Nsight Compute")
            text += [f"  {name:<{names}}  {count:>{counts}}  {nsight}".rstrip()
                     for name, count, nsight in rows]
        if self.measured_s is not None:
            text.append(f"measured: {seconds(self.measured_s)}")
        if self.prediction is not None:
            text.append(str(self.prediction))
        return "\n".join(text)
