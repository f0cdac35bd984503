"""What a launch did and what it would take: counters beside the profiler's names, and a time."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distlearn.kernels.counters import NSIGHT, WARP, Counters
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


BAR = 10
# From little to much: a terminal's colour of 256, and the same as CSS. One hue, so that only the
# lightness tells (Brewer's "Oranges"): it reads the same to the colour-blind and in print.
SHADES = ((230, "#fff5eb"), (223, "#fdd0a2"), (215, "#fdae6b"), (208, "#f16913"))

# What a line occupies, in turns of the units of a multiprocessor: a wavefront or a sector passes
# through the memory pipe in one, a warp's arithmetic, test or barrier through the scheduler.
_TURNS = ("shared_load_wavefronts", "shared_store_wavefronts", "global_load_sectors",
          "global_store_sectors", "branches", "barrier_warps", "atomic_requests",
          "atomic_conflicts")


def costs(by_line: Mapping[int, Mapping[str, int]]) -> dict[int, tuple[float, Mapping[str, int]]]:
    """Each line's share of what all lines occupy, and its counters.

    Counted are sectors, wavefronts, tests, arrivals at barriers, atomics one after another, and
    floating-point operations by the warp (a fused multiply-add of 16 x 16 fragments by the 64 that
    a warp starts at once).
    """
    turns = {line: sum(counts.get(name, 0) for name in _TURNS) + counts.get("flops", 0) / WARP
             + counts.get("tensor_flops", 0) / (WARP * 2 * 64) for line, counts in by_line.items()}
    total = sum(turns.values()) or 1.0
    return {line: (turns[line] / total, counts) for line, counts in by_line.items()}


def _shade(share: float) -> int:
    return sum(share > step for step in (0.05, 0.15, 0.3))


def _counts(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name}={count:,}" for name, count in counts.items())


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

    def listing(self, colour: bool = False) -> str:
        """The source, each line with its share of the cost, a bar and the counters it is charged.

        Parameters
        ----------
        colour : bool
            Put the background of the costly lines in shades, by terminal escapes; the bar and the
            percentage say the same without.
        """
        rows = costs(self.counters.by_line)
        text = []
        for number, line in self._lines():
            share, counts = rows.get(number, (0.0, {}))
            bar = "#" * math.ceil(share * BAR)
            row = f"{number:5d}  {f'{share:5.1%}' if counts else '':>5}  {bar:<{BAR}}  {line:<72}"
            if colour and share:
                row = f"\x1b[48;5;{SHADES[_shade(share)][0]}m\x1b[30m{row}\x1b[0m"
            text.append((row + "  " + _counts(counts)).rstrip())
        return "\n".join(text)

    def _lines(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.source.rstrip().splitlines(), self.first_line)

    def _repr_html_(self) -> str:
        """Shown by notebooks: the table of counters, and the source shaded by cost."""
        rows = costs(self.counters.by_line)
        lines = []
        for number, line in self._lines():
            share, counts = rows.get(number, (0.0, {}))
            shade = f"background:{SHADES[_shade(share)][1]};color:#000" if share else ""
            said = f"{share:.1%}" if counts else ""
            lines.append(
                f"<tr><td style='text-align:right'>{number}</td><td style='text-align:right'>{said}"
                f"</td><td style='text-align:left;{shade}'><code style='white-space:pre;"
                f"background:none;color:inherit'>{html.escape(line)}</code></td>"
                f"<td style='text-align:left'>{html.escape(_counts(counts))}</td></tr>")
        headings = "".join(f"<th scope='col' style='text-align:{side}'>{name}</th>"
                           for name, side in (("line", "right"), ("share", "right"),
                                              ("source", "left"), ("counted", "left")))
        # JupyterLab gives a fixed width to code alone, not to pre, and aligns headings right.
        return (
            f"<pre><code style='white-space:pre;background:none;color:inherit'>"
            f"{html.escape(str(self))}</code></pre><table><caption>Share of the requests, "
            "wavefronts, sectors and operations of a launch that each line is charged; the darker, "
            f"the more.</caption><thead><tr>{headings}</tr></thead><tbody>" + "".join(lines)
            + "</tbody></table>")

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
