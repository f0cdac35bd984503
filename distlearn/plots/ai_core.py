"""The core of an Ascend as a picture: its memories, the pipes between them, and its units."""

from __future__ import annotations

from matplotlib.figure import Figure

from distlearn.hardware import DeviceSpec, device
from distlearn.hardware import ai_core as find_core
from distlearn.plots.boxes import SMALL, arrow, box, canvas, line, note, shade


def ai_core(spec: DeviceSpec | str = "Ascend-910B2") -> Figure:
    """Draw one AI core: buffers with their sizes, pipes as arrows.

    Returns
    -------
    Figure
        Its label is the text alternative, `ai_core_text`.

    Raises
    ------
    KeyError, ValueError
        For a device that is not in the catalogue, or has no AI cores.
    """
    spec = device(spec) if isinstance(spec, str) else spec
    core = find_core(spec)
    size = {name: f"{name}\n{nbytes // 1024} KiB" for name, nbytes in core.buffers.items()}
    figure, axes = canvas(6.0, 4.2, (24, 16.8))
    figure.set_label(ai_core_text(spec))
    store, unit = shade("W", 3), shade("F", 0)
    box(axes, (0.3, 1.6), (3.6, 14.7), f"global\nmemory\n\n{spec.memory_type}\n"
        f"{spec.memory_bytes / 2**30:g} GiB\n\nbehind L2\n{spec.l2_bytes / 2**20:g} MiB",
        fill=shade(), fontsize=SMALL)
    box(axes, (5.4, 1.6), (18.3, 9.4), dashed=core.split)
    note(axes, (14.5, 0.8), "cube core" if core.split else "one AI core", bold=True)
    box(axes, (6.2, 2.6), (3.4, 5.0), size["L1"], fill=store, fontsize=SMALL)
    box(axes, (12.0, 2.6), (3.0, 2.0), size["L0A"], fill=store, fontsize=SMALL)
    box(axes, (12.0, 5.6), (3.0, 2.0), size["L0B"], fill=store, fontsize=SMALL)
    box(axes, (16.6, 3.6), (3.0, 3.0), "cube\nunit", fill=unit)
    box(axes, (21.0, 3.6), (2.3, 3.0), size["L0C"], fill=store, fontsize=SMALL)
    box(axes, (6.2, 8.7), (3.4, 1.7), "scalar unit: S", fill=unit, fontsize=SMALL)
    arrow(axes, (3.9, 5.1), (6.2, 5.1), "MTE2", shift=(-0.25, -0.4))
    for y in (3.6, 6.6):
        arrow(axes, (9.6, y), (12.0, y), "MTE1", shift=(0, -0.4))
        arrow(axes, (15.0, y), (16.6, 4.6 if y < 5 else 5.6))
    arrow(axes, (19.6, 5.1), (21.0, 5.1), "M", shift=(0, -0.4))
    line(axes, [(22.1, 6.6), (22.1, 9.9), (10.4, 9.9), (10.4, 8.15), (4.9, 8.15)])
    arrow(axes, (4.9, 8.15), (3.9, 8.15))
    note(axes, (16.2, 9.45), "FIXP: casts, scales, Nz to ND", fontsize=SMALL)
    many = f"{core.vector_cores} vector cores, each:" if core.split else "in the same core:"
    box(axes, (5.4, 12.4), (18.3, 3.9), dashed=core.split)
    note(axes, (14.5, 11.75), many, bold=True)
    box(axes, (8.2, 13.3), (3.6, 2.1), size["UB"], fill=store, fontsize=SMALL)
    box(axes, (14.4, 13.3), (4.2, 2.1), "vector unit\n256 B / clock", fill=unit,
        fontsize=SMALL)
    arrow(axes, (3.9, 13.8), (8.2, 13.8), "MTE2", shift=(0.75, -0.4))
    arrow(axes, (8.2, 15.0), (3.9, 15.0), "MTE3", shift=(0.75, 0.5))
    arrow(axes, (11.8, 14.35), (14.4, 14.35), "V", shift=(0, -0.4), both=True)
    return figure


def ai_core_text(spec: DeviceSpec | str) -> str:
    """What the figure shows, in words. Errors as `ai_core`.

    Examples
    --------
    >>> ai_core_text("Ascend-910B2")[:66]
    'One AI core of Ascend-910B2. Cube core: MTE2 copies from global me'
    """
    spec = device(spec) if isinstance(spec, str) else spec
    core = find_core(spec)
    kib = {name: nbytes // 1024 for name, nbytes in core.buffers.items()}
    where = "Cube core: " if core.split else ""
    vector = (f"Beside it {core.vector_cores} vector cores of their own, each" if core.split
              else "In the same core a vector unit")
    return (f"One AI core of {spec.name}. {where}MTE2 copies from global memory to L1 "
            f"({kib['L1']} KiB), MTE1 from there to L0A and L0B ({kib['L0A']} and {kib['L0B']} "
            f"KiB), the cube unit M multiplies these into L0C ({kib['L0C']} KiB), and FIXP brings "
            f"results back to global memory. {vector} with UB ({kib['UB']} KiB), which MTE2 fills "
            "and MTE3 empties.")

