"""The roofline explorer: a matrix product and the rungs of the GEMM ladder under a roof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from distlearn.hardware import DeviceSpec, device, itemsize, roofline
from distlearn.hardware.devices import Unit
from distlearn.kernels.timing import Prediction
from distlearn.kernels.timing.network import STEPS
from distlearn.kernels.timing.predict import (
    ADDRESSES,
    GLOBAL_LATENCY,
    ISSUE_SHARE,
    L1_BYTES_PER_CLOCK,
    L2_BYTES_PER_CLOCK,
    SCHEDULERS,
    SHARED_LATENCY,
    load_store_units,
)
from distlearn.kernels.timing.work import LOADS_IN_FLIGHT
from distlearn.plots.numbers import number, percent
from distlearn.widgets.ladder_work import RUNGS, Line, line_of
from distlearn.widgets.occupancy_explorer import GPUS, find
from distlearn.widgets.panel import Panel, View, choice, field, one_of, whole

UNITS: dict[str, Unit] = {"float32": "vector", "float16": "matrix"}
MOST = 16_384
_COUNTED = ("flops", "tensor_flops", "barrier_warps", "global_load_requests",
            "global_store_requests", "global_load_sectors", "global_store_sectors",
            "global_load_lines", "global_store_lines", "shared_load_requests",
            "shared_store_requests", "shared_load_wavefronts", "shared_store_wavefronts",
            "branches", "atomic_requests", "atomic_conflicts")


class RooflineExplorer(Panel):
    """C (M, N) = A (M, K) B (K, N) on a device: the roof, and what each rung is predicted to reach.

    A rung's intensity counts what the SMs ask of caches and memory, so that a point above the
    memory's slope lives off the caches.

    Parameters
    ----------
    device : str
        A GPU of the catalogue.
    dtype : str
        ``float32`` (vector units) or ``float16`` (matrix units; rungs before the last use vector
        units).
    M, N, K : int
        Multiples of 128 from 128 to 16,384.
    rung : str, optional
        The chosen rung, one of ``distlearn.widgets.ladder_work.RUNGS[dtype]``; default: the last.

    Raises
    ------
    KeyError
        For a device that is not in the catalogue.
    ValueError
        For a value out of range, or a device that is no GPU.

    Examples
    --------
    >>> RooflineExplorer(rung="register_2d").view().numbers[3][:2]
    ('register_2d', '14534 GFLOP/s')
    """

    label = "Roofline of a matrix product"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "player.js", "panel.js", "occupancy.js", "ladder.js", "roofline_explorer.js")
    mount = "mountRooflineExplorer"
    picture = ("GFLOP/s over FLOP per byte; left and right choose a rung, up and down double and "
               "halve M, N and K")
    hint = ("Click a point or use ← → to choose a rung; ↑ ↓ double and halve all sizes. Line: "
            "device memory. Dashed: L2. Ring: the product itself, each byte moved once.")

    def __init__(self, device: str = "RTX-A6000", dtype: str = "float32", M: int = 4096,
                 N: int = 4096, K: int = 4096, rung: str | None = None) -> None:
        rungs = RUNGS[one_of("dtype", dtype, RUNGS)]
        super().__init__(
            device=one_of("device", find(device), GPUS), dtype=dtype,
            M=whole("M", M, 128, MOST, 128), N=whole("N", N, 128, MOST, 128),
            K=whole("K", K, 128, MOST, 128),
            rung=one_of("rung", rungs[-1] if rung is None else rung, rungs))

    def controls(self) -> Sequence[str]:
        """Device, format, sizes, rung."""
        s = self.setting
        return (choice("device", s["device"], GPUS), choice("dtype", s["dtype"], list(RUNGS)),
                choice("rung", s["rung"], RUNGS[s["dtype"]]),
                *(field(name, s[name], 128, MOST, 128) for name in "MNK"))

    def view(self) -> View:
        """The roof and the chosen rung."""
        s, spec = self.setting, device(self.setting["device"])
        M, N, K, dtype, unit = s["M"], s["N"], s["K"], s["dtype"], UNITS[s["dtype"]]
        flops, size = 2 * M * N * K, itemsize(dtype)
        roof = roofline(spec, flops, (M * K + K * N + M * N) * size, dtype, unit)
        peak, reach = spec.peak_flops(dtype, unit), flops / roof.time_s
        told = predicted(line_of(s["rung"], dtype), M, N, K, spec)
        if told is None:
            reached, note, traffic = "no rate", f"{spec.name} has no vector rate for {dtype}", ""
        else:
            reached = f"{number(told.gflops, 5)} GFLOP/s"
            note = f"predicted; bound by {told.bound}; {percent(told.gflops * 1e9 / peak)} of peak"
            traffic = f" at {number(told.flops / told.requested_bytes)} FLOP per byte asked for"
        words = (f"{spec.name}, {dtype}, {M} x {N} x {K}: the roof allows "
                 f"{number(reach / 1e9, 5)} GFLOP/s, bound by {roof.bound}. {s['rung']}: "
                 f"{reached}{traffic}.")
        bandwidth = number(spec.memory_bytes_per_s / 1e9)
        return View(
            (("peak", f"{number(peak / 1e9, 5)} GFLOP/s", f"{dtype}, {unit} units"),
             ("ridge", number(roof.ridge), f"FLOP per byte; memory {bandwidth} GB/s"),
             ("this product", number(roof.intensity), (
                 f"FLOP per byte; at least {number(roof.time_s * 1e3)} ms, bound by "
                 f"{roof.bound}")),
             (s["rung"], reached, note)), words)

    def static_data(self) -> dict[str, Any]:
        """Also the devices, the rungs' work and the constants of the time model."""
        return {
            **super().static_data(), "units": UNITS,
            "sizes": {dtype: itemsize(dtype) for dtype in RUNGS},
            "model": {"globalLatency": GLOBAL_LATENCY, "sharedLatency": SHARED_LATENCY,
                      "schedulers": SCHEDULERS, "issueShare": ISSUE_SHARE,
                      "addresses": ADDRESSES, "l1": L1_BYTES_PER_CLOCK,
                      "l2": L2_BYTES_PER_CLOCK, "loadsInFlight": LOADS_IN_FLIGHT,
                      "steps": STEPS},
            "devices": {name: _figures(device(name)) for name in GPUS},
            "rungs": {dtype: [_numbers(name, dtype) for name in names]
                      for dtype, names in RUNGS.items()}}


def predicted(line: Line, M: int, N: int, K: int, spec: DeviceSpec) -> Prediction | None:
    """None if the device has no rate for the format."""
    if not line.base.counts["tensor_flops"] and _rate(spec, str(line.rung.dtype)) is None:
        return None
    return line.predict(M, N, K, spec)


def _rate(spec: DeviceSpec, dtype: str, unit: Unit = "vector") -> float | None:
    found = [r for r in spec.rates if r.dtype == dtype and r.unit == unit]
    return spec.rate(dtype, unit).flop_per_clock if found else None


def _figures(spec: DeviceSpec) -> dict[str, Any]:
    """What the script needs to know of a device."""
    return {"cores": spec.cores, "clock": spec.clock_hz, "memory": spec.memory_bytes_per_s,
            "sm": asdict(spec.sm),
            "loadStore": load_store_units(spec),
            "matrix": _rate(spec, "float16", "matrix"),
            "vector": {dtype: _rate(spec, dtype) for dtype in RUNGS},
            "peak": {dtype: spec.peak_flops(dtype, unit) for dtype, unit in UNITS.items()}}


def _numbers(name: str, dtype: str) -> dict[str, Any]:
    """A rung's line: for each count of a block, its value at K = 1024 and what a step adds."""
    line = line_of(name, dtype)
    counts = {n: [line.base.counts[n], line.counts[n]] for n in _COUNTED}
    return {
        "name": name, "tile": line.rung.tile, "splits": line.rung.splits, "base": line.steps(1024),
        "threads": line.base.threads, "busy": list(line.base.busy.items()),
        "registers": line.needs.registers_per_thread,
        "shared": line.needs.shared_bytes_per_block, "size": line.rung.dtype.itemsize,
        "out": line.rung.result_dtype.itemsize,
        "counts": {n: pair for n, pair in counts.items() if any(pair)},
        "trips": [line.base.round_trips, line.round_trips],
        "hidden": [line.base.hidden_round_trips, line.hidden_round_trips]}
