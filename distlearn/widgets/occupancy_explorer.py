"""The occupancy explorer: how many blocks of a kernel an SM holds, and what allows no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from distlearn.hardware import best_block, device, devices
from distlearn.plots.numbers import percent
from distlearn.widgets.lane_patterns import counted
from distlearn.widgets.panel import Panel, View, choice, field, one_of, slider, whole

MOST_SHARED = 233_472  # bytes; the largest of any SM
GPUS = tuple(spec.name for spec in devices() if spec.compute_capability)


class OccupancyExplorer(Panel):
    """Blocks and warps on an SM, the limiting resource, and the curve against block size.

    Parameters
    ----------
    device : str
        A GPU of the catalogue.
    threads : int
        Threads of a block, 32 to 1024 in steps of 32.
    registers : int
        Registers of a thread, 0 to 255.
    shared : int
        Shared memory of a block in bytes, 0 to 233,472.

    Raises
    ------
    KeyError
        For a device that is not in the catalogue.
    ValueError
        For a device that is no GPU, or a value out of range.

    Examples
    --------
    >>> OccupancyExplorer("RTX-A6000", 1024, 37, 8192).status[:84]
    'RTX-A6000 holds 1 block of 1024 threads on an SM: 32 of 48 warps, 66.7 % occupancy. '
    """

    label = "Occupancy of an SM"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "player.js", "panel.js", "occupancy.js", "occupancy_explorer.js")
    mount = "mountOccupancyExplorer"
    picture = ("Occupancy against block size; left and right change the block by a warp, up and "
               "down the registers")
    hint = ("Click a bar for its block size, or use ← →; ↑ ↓ change the registers. Dark: this "
            "block size.")

    def __init__(self, device: str = "RTX-A6000", threads: int = 256, registers: int = 64,
                 shared: int = 8192) -> None:
        super().__init__(
            device=one_of("device", find(device), GPUS),
            threads=whole("threads", threads, 32, 1024, 32),
            registers=whole("registers", registers, 0, 255),
            shared=whole("shared", shared, 0, MOST_SHARED))

    def controls(self) -> Sequence[str]:
        """Device and what a block needs."""
        s = self.setting
        return (choice("device", s["device"], GPUS),
                slider("threads", s["threads"], 32, 1024, 32, "a block"),
                slider("registers", s["registers"], 0, 255, note="a thread"),
                field("shared", s["shared"], 0, MOST_SHARED, note="bytes a block"))

    def view(self) -> View:
        """What `distlearn.hardware.occupancy` says."""
        s, spec = self.setting, device(self.setting["device"])
        needs = {"registers_per_thread": s["registers"], "shared_bytes_per_block": s["shared"]}
        held, sm = spec.occupancy(threads_per_block=s["threads"], **needs), spec.sm
        try:
            best = str(best_block(compute_capability=sm.compute_capability, **needs)[0])
        except ValueError:
            best = "none"
        limits = ", ".join(f"{name} {most}" for name, most in held.limits.items()
                           if most is not None)
        limiter = ("cannot launch" if not held.blocks_per_sm
                   else held.limiter.replace("|", " and "))
        share = percent(held.fraction)
        return View(
            (("active blocks", str(held.blocks_per_sm), f"on an SM, at most {sm.blocks}"),
             ("active warps", str(held.warps_per_sm), f"on an SM, at most {sm.warps}"),
             ("occupancy", share, "active over possible warps"),
             ("limited by", limiter, f"blocks allowed: {limits}"),
             ("a block takes", f"{held.registers_per_block} registers", (
                 f"of {sm.registers}; {held.shared_bytes_per_block} of {sm.shared_bytes} shared "
                 "bytes")),
             ("best block", best, "threads, most resident")),
            f"{spec.name} holds {counted(held.blocks_per_sm, 'block')} of {s['threads']} threads "
            f"on an SM: {held.warps_per_sm} of {sm.warps} warps, {share} occupancy. "
            f"Limit: {limiter}; blocks allowed by {limits}.")

    def static_data(self) -> dict[str, Any]:
        """Also the limits of an SM of each device."""
        return {**super().static_data(), "sms": {name: asdict(device(name).sm) for name in GPUS}}


def find(name: str) -> str:
    """A device's name as the catalogue writes it."""
    return device(name).name
