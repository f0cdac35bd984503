"""One SM and the device around it, from the catalogue: schedulers, lanes, registers, memories."""

from __future__ import annotations

from matplotlib.figure import Figure

from distlearn.hardware import DeviceSpec, device
from distlearn.plots.boxes import SMALL, arrow, box, canvas, note, shade


def multiprocessor(spec: DeviceSpec | str = "A100-SXM4-80GB") -> Figure:
    """Draw an SM of a GPU: its sub-partitions, what they share, and what all SMs share.

    Returns
    -------
    Figure
        Its label is the text alternative, `multiprocessor_text`.

    Raises
    ------
    KeyError, ValueError
        For a device that is not in the catalogue, or no GPU.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    sm = spec.sm
    lanes = _lanes(spec)
    parts = sm.subpartitions
    figure, axes = canvas(6.0, 4.4, (24, 17.6))
    figure.set_label(multiprocessor_text(spec))
    box(axes, (0.2, 1.5), (15.6, 15.9))
    note(axes, (8, 0.8), f"one SM of {spec.cores}", bold=True)
    for part in range(parts):
        x, y = 0.7 + part % 2 * 7.5, 1.9 + part // 2 * 5.7
        box(axes, (x, y), (7.1, 5.4))
        box(axes, (x + 0.25, y + 0.25), (6.6, 0.95), "warp scheduler", fill=shade("B", 3),
            fontsize=SMALL)
        box(axes, (x + 0.25, y + 1.3), (6.6, 0.95),
            f"registers, {sm.registers * 4 // parts // 1024} KiB", fill=shade("W", 3),
            fontsize=SMALL)
        columns = min(16, lanes)
        width = 6.6 / columns
        for lane in range(lanes):
            box(axes, (x + 0.25 + lane % columns * width, y + 2.35 + lane // columns * 0.55),
                (width, 0.55), fill=shade("F", 2))
        note(axes, (x + 3.55, y + 3.85), f"{lanes} lanes for float32", fontsize=SMALL)
        box(axes, (x + 0.25, y + 4.2), (6.6, 0.95), _tensor(spec), fill=shade("I", 2),
            fontsize=SMALL)
    box(axes, (0.7, 13.5), (14.6, 1.5),
        f"shared memory and L1 cache: up to {sm.shared_bytes // 1024} KiB shared",
        fill=shade("W", 3), fontsize=SMALL)
    note(axes, (8, 16.1), f"holds {sm.warps} warps = {sm.threads:,} threads, "
         f"{sm.blocks} blocks at most", fontsize=SMALL)
    note(axes, (20.3, 0.8), "the device", bold=True)
    box(axes, (17.4, 1.5), (5.9, 4.6), f"{spec.cores} SMs\n{spec.cores * parts * lanes:,} "
        f"lanes\n{spec.cores * sm.threads:,} threads", fill=shade("F", 3), fontsize=SMALL)
    box(axes, (17.4, 7.3), (5.9, 2.6), f"L2 cache\n{spec.l2_bytes / 2**20:g} MiB",
        fill=shade("W", 3), fontsize=SMALL)
    box(axes, (17.4, 11.1), (5.9, 2.6), f"{spec.memory_type}\n"
        f"{spec.memory_bytes / 2**30:g} GiB", fill=shade("W", 3), fontsize=SMALL)
    box(axes, (17.4, 14.9), (5.9, 2.5), f"host\n{spec.host_type}", fill=shade(),
        fontsize=SMALL)
    for y in (6.1, 9.9, 13.7):
        arrow(axes, (20.35, y), (20.35, y + 1.2), both=True)
    return figure


def multiprocessor_text(spec: DeviceSpec | str) -> str:
    """What the figure shows, in words. Errors as `multiprocessor`.

    Examples
    --------
    >>> print(multiprocessor_text("A100-SXM4-80GB"))
    One of 108 SMs of A100-SXM4-80GB: 4 sub-partitions, each with a warp scheduler, 64 KiB of \
registers, 16 float32 lanes and a tensor core of 256 multiply-adds per clock in float16. The SM \
has up to 164 KiB of shared memory and holds 64 warps, 2,048 threads. All SMs share an L2 cache of \
40 MiB and 80 GiB of HBM2e; the host is reached by PCIe 4.0 x16.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    sm = spec.sm
    return (f"One of {spec.cores} SMs of {spec.name}: {sm.subpartitions} sub-partitions, each with "
            f"a warp scheduler, {sm.registers * 4 // sm.subpartitions // 1024} KiB of registers, "
            f"{_lanes(spec)} float32 lanes and a {_tensor(spec, ' of ', 's')} per clock in "
            f"float16. The SM has up to {sm.shared_bytes // 1024} KiB of shared memory and holds "
            f"{sm.warps} warps, {sm.threads:,} threads. All SMs share an L2 cache of "
            f"{spec.l2_bytes / 2**20:g} MiB and {spec.memory_bytes / 2**30:g} GiB of "
            f"{spec.memory_type}; the host is reached by {spec.host_type}.")


def _lanes(spec: DeviceSpec) -> int:
    """Float32 lanes of a sub-partition: a multiply-add is 2 FLOP."""
    return spec.rate("float32", "vector").flop_per_clock // 2 // spec.sm.subpartitions


def _tensor(spec: DeviceSpec, joined: str = ": ", plural: str = "s") -> str:
    rate = spec.rate("float16", "matrix").flop_per_clock // 2 // spec.sm.subpartitions
    return f"tensor core{joined}{rate} multiply-add{plural}"
