"""The roofline figure: attainable FLOP/s over arithmetic intensity, kernels as points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from distlearn.hardware import DeviceSpec, Work, device, dtype_name
from distlearn.hardware import roofline as limits
from distlearn.hardware.devices import Unit
from distlearn.plots.decades import mark_decades
from distlearn.plots.palette import PALETTE, SERIES
from distlearn.plots.picture import Picture

# The colours of `SERIES`, each with a marker and a dash of its own.
_Style = tuple[str, str, str | tuple[int, tuple[float, ...]]]
_STYLES: tuple[_Style, ...] = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", (0, (6, 2))),
    ("#007A5A", "^", (0, (4, 1.5, 1, 1.5))),
    ("#AA4499", "D", (0, (2, 1.5))),
    ("#555555", "v", (0, (8, 2, 1, 2, 1, 2))),
)
_LIGHT = PALETTE["light"]


def roofline(devices: DeviceSpec | str | Iterable[DeviceSpec | str],
             points: Sequence[Work] = (), *, dtype: object = "float16",
             unit: Unit | None = None, title: str | None = None) -> Figure:
    """Draw the roof of each device, with its ridge point, and each kernel under it.

    Parameters
    ----------
    devices : DeviceSpec, str or iterable of these
        One to five devices, or their names in the catalogue.
    points : sequence of Work
        Kernels, such as ``gemm(4096, 4096, 4096)``. Each stands on every device at its intensity
        (FLOP per byte) and at the most FLOP/s it can reach there, in its own number format and on
        its own unit.
    dtype, unit
        Number format and unit of the roofs, as in ``DeviceSpec.rate``.
    title : str, optional

    Returns
    -------
    Figure
        Log-log. Its label (``figure.get_label()``) is the text alternative, `roofline_text`.

    Raises
    ------
    KeyError, ValueError
        As ``hardware.roofline``; also for no devices, or more than five.
    """
    specs, works = _read(devices), list(points)
    text = roofline_text(specs, works, dtype=dtype, unit=unit)
    figure = Picture(8.0, 5.0, dark=SERIES)
    figure.set_label(text)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity (FLOP per byte)",
             ylabel="attainable TFLOP/s")
    roofs = [limits(spec, 1, 1, dtype, unit) for spec in specs]
    spots = [[_spot(spec, work) for spec in specs] for work in works]
    xs = [roof.ridge for roof in roofs] + [x for row in spots for x, _ in row]
    left, right = min(0.3, min(xs) / 3), max(3000.0, max(xs) * 8)
    peaks = [spec.peak_flops(dtype, unit) for spec in specs]
    lowest = min([*(spec.memory_bytes_per_s * left for spec in specs),
                  *(y / 2 for row in spots for _, y in row)])
    axes.set(xlim=(left, right), ylim=(lowest / 1e12, max(peaks) / 1e12 * (30 if works else 4)))
    for style, spec, roof, peak in zip(_STYLES, specs, roofs, peaks, strict=False):
        _draw_roof(axes, spec, roof.ridge, peak / 1e12, style)
    _label_ridges(axes, [(roof.ridge, peak / 1e12, style[0])
                         for roof, peak, style in zip(roofs, peaks, _STYLES, strict=False)])
    for work, row in zip(works, spots, strict=True):
        _draw_work(axes, work.name, [(x, y / 1e12) for x, y in row])
    mark_decades(axes)
    axes.spines[["bottom", "left"]].set_color(_LIGHT["muted"])
    axes.tick_params(which="both", color=_LIGHT["muted"])
    axes.legend(loc="lower right", framealpha=0.9, edgecolor="none")
    axes.set_title(title if title is not None else f"Roofline, {dtype_name(dtype)}", loc="left")
    return figure


def roofline_text(devices: DeviceSpec | str | Iterable[DeviceSpec | str],
                  points: Sequence[Work] = (), *, dtype: object = "float16",
                  unit: Unit | None = None) -> str:
    """What the figure shows, in words: its text alternative. Arguments and errors as `roofline`.

    Examples
    --------
    >>> from distlearn.hardware import gemm
    >>> print(roofline_text("A100-SXM4-80GB", [gemm(256, 256, 256)]))
    Roofline, log-log: attainable FLOP/s over arithmetic intensity, float16.
    A100-SXM4-80GB: rises with 2,039 GB/s to 312 TFLOP/s, ridge at 153 FLOP per byte.
    GEMM 256 (85.3 FLOP per byte): 174 TFLOP/s on A100-SXM4-80GB, memory-bound.
    """
    specs = _read(devices)
    name = dtype_name(dtype)
    lines = [f"Roofline, log-log: attainable FLOP/s over arithmetic intensity, {name}."]
    for spec in specs:
        ridge = limits(spec, 1, 1, dtype, unit).ridge
        lines.append(
            f"{spec.name}: rises with {spec.memory_bytes_per_s / 1e9:,.0f} GB/s to "
            f"{spec.peak_flops(dtype, unit) / 1e12:.4g} TFLOP/s, ridge at {ridge:.3g} FLOP per "
            "byte.")
    for work in points:
        parts = []
        for spec in specs:
            x, y = _spot(spec, work)
            bound = limits(spec, *work[1:]).bound
            parts.append(f"{y / 1e12:.3g} TFLOP/s on {spec.name}, {bound}-bound")
        lines.append(f"{work.name} ({x:.3g} FLOP per byte): {'; '.join(parts)}.")
    return "\n".join(lines)


def _read(devices: DeviceSpec | str | Iterable[DeviceSpec | str]) -> list[DeviceSpec]:
    items = [devices] if isinstance(devices, DeviceSpec | str) else list(devices)
    if not 1 <= len(items) <= len(_STYLES):
        raise ValueError(f"a roofline figure takes 1 to {len(_STYLES)} devices; got {len(items)}")
    return [device(item) if isinstance(item, str) else item for item in items]


def _spot(spec: DeviceSpec, work: Work) -> tuple[float, float]:
    """A kernel's intensity, and the FLOP/s it reaches at most. Log axes need both above 0."""
    if not (work.flops > 0 and work.bytes > 0):
        raise ValueError(f"a point needs flops > 0 and bytes > 0; {work.name!r} has "
                         f"flops={work.flops!r} bytes={work.bytes!r}")
    roof = limits(spec, *work[1:])
    return roof.intensity, work.flops / roof.time_s


def _draw_roof(axes: Axes, spec: DeviceSpec, ridge: float, peak: float, style: _Style) -> None:
    color, marker, dash = style
    left, right = axes.get_xlim()
    axes.plot([left, ridge, right], [peak * left / ridge, peak, peak], color=color, linestyle=dash,
              linewidth=2, marker=marker, markevery=[],  # the marker shows in the legend only
              label=f"{spec.name}: {peak:.4g} TFLOP/s, "
                    f"{spec.memory_bytes_per_s / 1e9:,.0f} GB/s")
    axes.plot([ridge], [peak], linestyle="none", marker="o", markersize=9, markerfacecolor="white",
              markeredgecolor=color, markeredgewidth=2, zorder=4)


def _label_ridges(axes: Axes, ridges: Iterable[tuple[float, float, str]]) -> None:
    """Write each ridge below its point; one that is close to its left neighbour goes lower."""
    previous, drop = 0.0, 0
    for ridge, peak, color in sorted(ridges):
        drop = drop + 1 if ridge < previous * 1.35 else 0
        previous = ridge
        axes.annotate(f"ridge {ridge:.3g}", (ridge, peak), xytext=(0, -9 - 52 * drop), rotation=90,
                      textcoords="offset points", ha="center", va="top", color=color,
                      fontsize="small", zorder=6,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85})


def _draw_work(axes: Axes, name: str, spots: Sequence[tuple[float, float]]) -> None:
    x, ys = spots[0][0], [y for _, y in spots]
    axes.plot([x, x], [min(ys), max(ys)], color=_LIGHT["muted"], linewidth=0.8, zorder=1)
    for (_, y), (color, marker, _) in zip(spots, _STYLES, strict=False):
        axes.plot([x], [y], marker=marker, markersize=7, color=color, markeredgecolor="white",
                  zorder=5, linestyle="none")
    axes.annotate(name, (x, max(ys)), xytext=(0, 8), textcoords="offset points", rotation=90,
                  ha="center", va="bottom", fontsize="small", color=_LIGHT["text"])
