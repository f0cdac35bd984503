"""The memory hierarchy as bars: how much each level holds, and how much it delivers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from distlearn.hardware import DeviceSpec, MemoryLevel, device, memory_hierarchy
from distlearn.plots.palette import PALETTE
from distlearn.plots.picture import Picture

_LIGHT = PALETTE["light"]
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def memory_levels(spec: DeviceSpec | str = "A100-SXM4-80GB") -> Figure:
    """Draw each level of `distlearn.hardware.memory_hierarchy` as two bars, both logarithmic.

    Returns
    -------
    Figure
        Its label is the text alternative, `memory_levels_text`.

    Raises
    ------
    KeyError
        For a device that is not in the catalogue.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    levels = memory_hierarchy(spec)
    figure = Picture(6.0, 0.9 + 0.32 * len(levels))
    figure.set_label(memory_levels_text(spec))
    sizes, speeds = figure.subplots(1, 2, sharey=True)
    rows = range(len(levels))
    _bars(sizes, [level.total_bytes or 0 for level in levels], [_size(level) for level in levels],
          _LIGHT["W"])
    _bars(speeds, [level.bytes_per_s or 0 for level in levels],
          [_speed(level) for level in levels], _LIGHT["F"])
    sizes.set_yticks(rows, [level.name for level in levels], fontsize=8)
    sizes.invert_yaxis()
    sizes.set_title("holds, all of them together", fontsize=8.5)
    speeds.set_title("delivers, all of them together", fontsize=8.5)
    return figure


def memory_levels_text(spec: DeviceSpec | str) -> str:
    """What the figure shows, in words. Errors as `memory_levels`.

    Examples
    --------
    >>> print(memory_levels_text("A100-SXM4-80GB").splitlines()[2])
    shared memory: 108 x 164 KiB, 19.5 TB/s.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    lines = [f"Memories of {spec.name}, nearest first."]
    for level in memory_hierarchy(spec):
        lines.append(f"{level.name}: {', '.join(filter(None, (_size(level), _speed(level))))}.")
    return "\n".join(lines)


def _bars(axes: Axes, values: list[float], texts: list[str], colour: str) -> None:
    known = [value for value in values if value]
    left, right = min(known) / 4, max(known) * 60
    for row, (value, text) in enumerate(zip(values, texts, strict=True)):
        if value:
            axes.barh(row, value - left, left=left, height=0.62, color=colour)
        axes.text((value or left) * 1.3, row, text or "not published", va="center", fontsize=7.5,
                  color=_LIGHT["text" if text else "muted"])
    axes.set(xscale="log", xlim=(left, right))
    axes.minorticks_off()
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)


def _size(level: MemoryLevel) -> str:
    if level.bytes is None:
        return "outside"
    for unit, name in _UNITS:
        if level.bytes >= unit:
            return f"{level.count} x {level.bytes / unit:g} {name}" if level.count > 1 else (
                f"{level.bytes / unit:g} {name}")
    return f"{level.count} x {level.bytes} bytes"


def _speed(level: MemoryLevel) -> str:
    if level.bytes_per_s is None:
        return ""
    if level.bytes_per_s >= 1e12:
        return f"{level.bytes_per_s / 1e12:.3g} TB/s"
    return f"{level.bytes_per_s / 1e9:.3g} GB/s"
