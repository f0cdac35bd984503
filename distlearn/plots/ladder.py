"""The GEMM ladder under a device's roofs: what each rung asks of memory, and how fast it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from distlearn.hardware import DeviceSpec, device
from distlearn.kernels.gemm import GEMM
from distlearn.kernels.timing import Prediction
from distlearn.kernels.timing.predict import L2_BYTES_PER_CLOCK
from distlearn.plots.decades import mark_decades
from distlearn.plots.palette import PALETTE, SERIES
from distlearn.plots.picture import Picture

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#555555"
_COLOURS = {light: SERIES[light] for light in (_BLUE, _ORANGE, _GREY)}
_LIGHT = PALETTE["light"]


class Step(NamedTuple):
    """A rung on a device.

    Attributes
    ----------
    name : str
    intensity : float
        FLOP per byte that the SMs ask of caches and memory: 32 bytes for each sector.
    gflops : float
        Predicted.
    published : float or None
        Measured by others, GFLOP/s, where the size is theirs.
    prediction : Prediction
        All that the time model says.
    """

    name: str
    intensity: float
    gflops: float
    published: float | None
    prediction: Prediction


def ladder_steps(spec: DeviceSpec | str, size: int = 4096, names: Sequence[str] | None = None
                 ) -> list[Step]:
    """Each rung's place in `ladder`: the float32 ones by default.

    Raises
    ------
    KeyError
        For a name that is no rung or no device.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    if names is None:
        names = [name for name, rung in GEMM.items() if rung.dtype == "float32"]
    steps = []
    for name in names:
        told = GEMM[name].predict(size, size, size, spec)
        published = GEMM[name].published.get(spec.name) if size == 4096 else None
        steps.append(Step(name, told.flops / told.requested_bytes, told.gflops, published,
                          told))
    return steps


def ladder(spec: DeviceSpec | str = "RTX-A6000", size: int = 4096,
           names: Sequence[str] | None = None, *, steps: Sequence[Step] | None = None) -> Figure:
    """Draw the rungs as points over arithmetic intensity, under the device's roofs.

    The intensity counts what the SMs ask for, before any cache. So there are two slopes: what
    device memory can deliver, and what L2 can. A point above the first lives off the caches.

    Parameters
    ----------
    spec : DeviceSpec or str
    size : int
        M = N = K.
    names : sequence of str, optional
        Rungs; all that compute in float32 by default.
    steps : sequence of Step, optional
        What `ladder_steps` said for this device and size, to save asking again.

    Returns
    -------
    Figure
        Its label is the text alternative, `ladder_text`.

    Raises
    ------
    KeyError
        As `ladder_steps`.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    steps = ladder_steps(spec, size, names) if steps is None else steps
    figure = Picture(8.0, 5.5, dark=_COLOURS)
    figure.set_label(ladder_text(spec, steps, size))
    axes = figure.add_subplot()
    peak = spec.peak_flops("float32", "vector") / 1e9
    left = min(step.intensity for step in steps) / 2
    right = max(step.intensity for step in steps) * 40
    cache = spec.cores * L2_BYTES_PER_CLOCK * spec.clock_hz / 1e9
    for bandwidth, dash, label in (
            (spec.memory_bytes_per_s / 1e9, "-", f"{spec.memory_type}: "),
            (cache, (0, (6, 2)), "L2 (model): ")):
        ridge = min(peak / bandwidth, right)
        axes.plot([left, ridge, right], [left * bandwidth, ridge * bandwidth, peak], color=_GREY,
                  linestyle=dash, linewidth=1.5, label=f"{label}{bandwidth:,.0f} GB/s")
    axes.plot([s.intensity for s in steps], [s.gflops for s in steps], linestyle="none",
              marker="o", markersize=7, color=_BLUE, label="predicted", zorder=4)
    measured = [(s.intensity, s.published) for s in steps if s.published]
    if measured:
        axes.plot(*zip(*measured, strict=True), linestyle="none", marker="D", markersize=8,
                  markerfacecolor="none", markeredgecolor=_ORANGE, markeredgewidth=1.6,
                  label="published", zorder=5)
    lowest = min([s.gflops for s in steps] + [y for _, y in measured]) / 2
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(lowest, peak * 2),
             xlabel="FLOP per byte that the SMs ask for", ylabel="GFLOP/s")
    _name(axes, steps, right)
    mark_decades(axes)
    axes.legend(loc="upper left", framealpha=0.9, edgecolor="none", fontsize="small")
    axes.set_title(f"The GEMM ladder on {spec.name}, {size} x {size} x {size}, float32", loc="left")
    return figure


def _name(axes: Axes, steps: Sequence[Step], right: float) -> None:
    """Names at the right of the points, one below the other where they would overlap."""
    low = None
    for step in sorted(steps, key=lambda s: -s.gflops):
        height = step.gflops if low is None else min(step.gflops, low / 1.22)
        low = height
        axes.annotate(step.name, (step.intensity, step.gflops), xytext=(right / 9, height),
                      textcoords="data", va="center", fontsize="small", color=_LIGHT["text"],
                      arrowprops={"arrowstyle": "-", "color": _LIGHT["muted"], "linewidth": 0.6})


def ladder_text(spec: DeviceSpec | str, steps: Sequence[Step], size: int) -> str:
    """What the figure shows, in words."""
    spec = device(spec) if isinstance(spec, str) else spec
    peak = spec.peak_flops("float32", "vector") / 1e9
    lines = [f"GEMM ladder on {spec.name}, size {size}, under a roof of {peak:,.0f} GFLOP/s."]
    for step in steps:
        text = (f"{step.name}: {step.intensity:.3g} FLOP per byte, {step.gflops:,.0f} GFLOP/s "
                "predicted")
        if step.published:
            text += f", {step.published:,.0f} published"
        lines.append(text + ".")
    return "\n".join(lines)
