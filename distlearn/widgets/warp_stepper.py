"""The warp stepper: a warp goes through a kernel, line by line, with masks and registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, ClassVar

import numpy as np

from distlearn.kernels.oracle import Recording
from distlearn.plots.numbers import number
from distlearn.widgets.panel import Panel, View, choice, one_of, steps_of, whole
from distlearn.widgets.warp_kernels import examples

CURRENT = ' class="dl-now" aria-current="step"'
OPERATIONS = {"R": "reads", "W": "writes", "A": "changes"}


class WarpStepper(Panel):
    """One warp, one statement after the other: active lanes, registers, shared memory.

    Parameters
    ----------
    recordings : Recording or mapping of str to Recording, optional
        What `distlearn.kernels.oracle.record` has recorded, by names to choose from. Default: five
        examples.
    kernel : str, optional
        The name to begin with; default: the first.
    step, lane : int
        The step and the lane to begin with.

    Raises
    ------
    ValueError
        For a name, step or lane that there is not.

    Examples
    --------
    >>> WarpStepper(step=2).status[:59]
    'Step 2 of 5, before line 4: v = x[i] * 2. 16 of 32 lanes ac'
    """

    label = "A warp, step by step"
    scripts: ClassVar[Sequence[str]] = ("numbers.js", "player.js", "panel.js", "warp_stepper.js")
    mount = "mountWarpStepper"
    picture = ("Lanes, registers and shared memory; left and right go through the steps, up and "
               "down choose a lane")
    hint = ("← → go through the steps, ↑ ↓ or a click choose a lane. Dark: active lanes. Tinted: "
            "what the last step changed. Framed: what this step reads and (dashed) writes in "
            "shared memory.")

    def __init__(self, recordings: Recording | Mapping[str, Recording] | None = None,
                 kernel: str | None = None, step: int = 0, lane: int = 0) -> None:
        if recordings is None:
            recordings = examples()
        elif isinstance(recordings, Recording):
            recordings = {recordings.name: recordings}
        if not recordings:
            raise ValueError("recordings must not be empty; got {}")
        self.recordings = dict(recordings)
        names = list(self.recordings)
        name = one_of("kernel", names[0] if kernel is None else kernel, names)
        one = self.recordings[name]
        super().__init__(kernel=name, step=whole("step", step, 0, len(one.steps) - 1),
                         lane=whole("lane", lane, 0, one.threads - 1))

    @property
    def one(self) -> Recording:
        """The recording that is shown."""
        return self.recordings[self.setting["kernel"]]

    def controls(self) -> Sequence[str]:
        """Which kernel."""
        return (choice("kernel", self.setting["kernel"], list(self.recordings)),)

    def extra(self) -> str:
        """Buttons, the slider and the listing."""
        one, now = self.one, self.one.steps[self.setting["step"]].line
        lines = "".join(
            f'<span{CURRENT if one.first_line + i == now else ""}>'
            f"{one.first_line + i:4} {escape(text)}\n</span>"
            for i, text in enumerate(one.source.splitlines()))
        return (f'{steps_of(self.setting["step"], len(one.steps) - 1)}'
                f'<div class="dl-source" tabindex="0" role="group" aria-label="Source">{lines}'
                "</div>")

    def view(self) -> View:
        """The step that is shown."""
        data, lane = _short(self.one), self.setting["lane"]
        at, last = self.setting["step"], len(data["steps"]) - 1
        step = data["steps"][at]
        lanes = step["lanes"]
        text = data["source"][step["line"] - data["first"]].strip() if step["line"] else ""
        mask = sum(1 << n for n in lanes)
        held = "; ".join(f"{name} = {values[lane]}" for name, values in step["registers"].items()
                         if values[lane] is not None)
        touched = ", ".join(f"{OPERATIONS[op]} {array}[{element}]"
                            for who, op, array, element in step["touches"] if who == lane)
        active = lane in lanes
        where = (f"before line {step['line']}: {text}." if step["line"]
                 else "at the end." if data["complete"] else "where the recording stops.")
        doing = "takes part" if active else "is masked off" if step["line"] else "is done"
        return View(
            (("step", f"{at} of {last}", "statements of the warp"),
             ("active lanes", f"{len(lanes)} of {data['threads']}", f"mask 0x{mask:08X}"),
             (f"lane {lane}", "active" if active else "off", touched or "touches no memory")),
            f"Step {at} of {last}, {where} {len(lanes)} of {data['threads']} lanes active. Lane "
            f"{lane} {doing}: {held or 'no registers yet'}.",
            data["error"] if at == last else "")

    def static_data(self) -> dict[str, Any]:
        """Also every step of every recording, as what changes from step to step."""
        return {**super().static_data(),
                "recordings": {name: _packed(one) for name, one in self.recordings.items()}}


@lru_cache(maxsize=32)
def _short(one: Recording) -> dict[str, Any]:
    """A recording as a page shows it: values as text."""
    return {
        "source": one.source.splitlines(), "first": one.first_line, "threads": one.threads,
        "complete": one.complete, "error": str(one.error) if one.error else "",
        "steps": [{"line": step.line, "lanes": list(step.lanes),
                   "registers": {name: [_text(v) for v in values]
                                 for name, values in step.registers.items()},
                   "shared": {name: [_text(v) for v in values]
                              for name, values in step.shared.items()},
                   "touches": [list(touch) for touch in step.touches]} for step in one.steps]}


def _packed(one: Recording) -> dict[str, Any]:
    """The same, with only those registers and arrays of a step that differ from before."""
    data = dict(_short(one))
    packed: list[dict[str, Any]] = []
    before: dict[str, dict[str, Any]] = {"registers": {}, "shared": {}}
    for step in data["steps"]:
        packed.append({**step, **{
            kind: {name: values for name, values in step[kind].items()
                   if known.get(name) != values} for kind, known in before.items()}})
        before = {kind: step[kind] for kind in before}
    return {**data, "steps": packed}


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return "(" + ", ".join(str(_text(item)) for item in value) + ")"
    if isinstance(value, bool | int | np.integer):
        return str(value)
    real = float(value)
    return number(real) if np.isfinite(real) else str(real)
