"""The pipeline explorer: choose a schedule, sizes and times; see time, bubble and memory."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any, ClassVar

import ipywidgets

from distlearn.pipeline import Costs, build, definition
from distlearn.plots import KIND_NAMES
from distlearn.plots.look import ATTRIBUTES, STYLE
from distlearn.plots.numbers import number
from distlearn.widgets.face import Face, face_style, without_style
from distlearn.widgets.orders import catalogue
from distlearn.widgets.pipeline_view import FORMULAS, Setting, View, look_at

SCHEDULES = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "pipedream")
"""What the explorer offers by default: orders that its script can draw, for any p and m."""
ZOOMS = (1, 2, 4)
_WIDTH = 760
_FAR = {"p": 64, "m": 512, "v": 27}  # of pages that a reader would still wait for
_LABELS = {
    "p": ("p", "ranks"),
    "m": ("m", "microbatches"),
    "v": ("v", "stages per rank"),
    "F": ("F", "forward"),
    "B": ("B", "backward"),
    "W": ("W", "weight part of B"),
    "comm": ("comm", "transfer"),
}


class PipelineExplorer(Face):
    """An interactive timeline of a pipeline schedule.

    F, B and W are the times of a whole rank's layers for one microbatch; each of its v stages
    takes 1/v of them, so that schedules with different v do the same work. A transfer takes
    ``comm``, whatever v is.

    Parameters
    ----------
    schedule : str
        The schedule to begin with.
    p, m, v : int
        Ranks, microbatches, stages per rank (v is used by schedules that have it).
    F, B, I, W : float, optional
        Times of forward, backward and its halves, as `Costs` reads them: B = I + W.
    comm : float
        Time of a transfer between ranks.
    schedules : sequence of str
        The schedules to choose from. Default: all.
    max_p, max_m, max_v : int
        Ends of the sliders. The page carries every order up to them.

    Raises
    ------
    ValueError
        For a value outside the ranges, naming it, and for a schedule that has more than whole
        F, B, I and W on one copy of the model: `distlearn.plots.timeline` draws those. What a
        schedule itself refuses, for example ``m % p`` of the interleaved one, is shown in place of
        the picture.

    Examples
    --------
    >>> explorer = PipelineExplorer("1f1b", p=4, m=8)
    >>> explorer.view.status[:64]
    'Schedule 1f1b with p=4 ranks, m=8 microbatches, v=1 stage per ra'
    """

    label = "Pipeline explorer"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "simulate.js", "timeline_svg.js", "pipeline_view.js", "copy_text.js",
        "pipeline_explorer.js",
    )
    mount = "mountPipelineExplorer"

    def __init__(self, schedule: str = "1f1b", p: int = 4, m: int = 8, v: int = 2, *,
                 F: float = 1.0, B: float | None = None, I: float | None = None,
                 W: float | None = None, comm: float = 0.0, schedules: Sequence[str] = SCHEDULES,
                 max_p: int = 8, max_m: int = 32, max_v: int = 4) -> None:
        names = tuple(schedules)
        for name in (*names, schedule):
            definition(name)  # says which names there are
            _refuse_what_cannot_be_shown(name)
        if schedule not in names:
            raise ValueError(f"schedule must be one of {', '.join(names)}; got {schedule!r}")
        self._names = names
        self._most = {"p": max_p, "m": max_m, "v": max_v}
        for key, end in self._most.items():
            if isinstance(end, bool) or not isinstance(end, int) or not 1 <= end <= _FAR[key]:
                raise ValueError(
                    f"max_{key} must be an integer from 1 to {_FAR[key]}; got {end!r}")
        for key, value in (("p", p), ("m", m), ("v", v)):
            if isinstance(value, bool) or not isinstance(value, int) or (
                    not 1 <= value <= self._most[key]):
                raise ValueError(f"the explorer shows {key} from 1 to {self._most[key]} "
                                 f"(max_{key}); got {key}={value!r}")
        costs = Costs(F=F, B=B, I=I, W=W, comm=comm)  # type: ignore[arg-type]
        costs_F, costs_B, _, costs_W = Costs(costs.F, costs.B, costs.I, costs.W).uniform()
        self._first = {"p": p, "m": m, "v": v, "F": costs_F, "B": costs_B, "W": costs_W,
                       "comm": costs.one_comm()}
        self._controls: dict[str, Any] = {"schedule": ipywidgets.Dropdown(
            options=names, value=schedule, description="schedule")}
        for key in ("p", "m", "v"):
            self._controls[key] = ipywidgets.IntSlider(
                value=self._first[key], min=1, max=self._most[key], description=_label(key))
        for key in ("F", "B", "W", "comm"):
            least, most, step = _range(self._first[key])
            self._controls[key] = ipywidgets.FloatSlider(
                value=self._first[key], min=least, max=most, step=step, description=_label(key),
                readout_format=f".{len(number(step, 12).partition('.')[2])}f")
        self._controls["zoom"] = ipywidgets.Dropdown(
            options=[(f"{zoom}x", zoom) for zoom in ZOOMS], value=1, description="zoom")
        for control in self._controls.values():
            control.style.description_width = "9.5em"
            control.layout.width = "24em"
            control.observe(self._update, "value")
        self._shown = ipywidgets.HTML()
        self._orders = ipywidgets.HTML()
        self._details = ipywidgets.Accordion(
            children=[self._orders], titles=["Order of every rank, with times"],
            selected_index=None)
        self._details.observe(self._update, "selected_index")
        self.view = View()
        controls = ipywidgets.HBox(list(self._controls.values()))
        controls.layout.flex_flow = "row wrap"
        super().__init__([controls, self._shown, self._details])
        self._update()

    @property
    def setting(self) -> Setting:
        """What the controls say now; v and W only where the schedule has them."""
        at = {key: control.value for key, control in self._controls.items()}
        traits = _traits(at["schedule"])
        times = {key: round(float(at[key]), 9) for key in ("F", "B", "W", "comm")}
        return Setting(at["schedule"], at["p"], at["m"], at["v"] if traits["v"] else 1,
                       times["F"], times["B"], times["W"] if traits["W"] else None, times["comm"])

    def _update(self, change: Any = None) -> None:
        traits = _traits(self._controls["schedule"].value)
        self._controls["v"].disabled = not traits["v"]
        self._controls["W"].disabled = not traits["W"]
        self.view = view = look_at(self.setting, width=_WIDTH * self._controls["zoom"].value)
        if view.message:
            body = f'<div class="dl-message" role="alert">{escape(view.message)}</div>'
        else:
            body = (f'<div class="dl-scroll" tabindex="0">{without_style(view.picture)}</div>'
                    f'<div class="dl-numbers">{view.numbers}</div>{_calls(view, copy=False)}')
        self._shown.value = f'<div class="dl-face"><style>{face_style()}</style>{body}</div>'
        opened = self._details.selected_index is not None
        self._orders.value = view.orders if opened else ""

    def static_body(self, ident: str) -> str:
        """Controls, picture and numbers of the setting that the controls show now."""
        view = look_at(self.setting, width=_WIDTH)
        traits = _traits(self._controls["schedule"].value)
        parts = ['<div class="dl-controls">', _select(
            "schedule", "schedule", [(name, name) for name in self._names],
            self._controls["schedule"].value)]
        for key in ("p", "m", "v", "F", "B", "W", "comm"):
            control = self._controls[key]
            used = traits.get(key, True)
            value = number(control.value, 12)
            name, words = _LABELS[key]
            parts.append(
                f'<label class="dl-control"><span><b>{name}</b> <small>{words}</small></span>'
                f'<input type="range" name="{key}" min="{control.min}" max="{control.max}" '
                f'step="{control.step}" value="{value}" autocomplete="off"'
                f"{'' if used else ' disabled'}><output>{value if used else '–'}</output></label>")
        parts.append(_select("zoom", "zoom", [(str(zoom), f"{zoom}x") for zoom in ZOOMS], "1"))
        hidden = "" if view.message else " hidden"
        parts.append(
            f'</div>\n<div><div class="dl-message" role="alert"{hidden}>{escape(view.message)}'
            "</div>\n"
            '<div class="dl-result">'
            f'<div class="dl-scroll" tabindex="0" role="group" aria-describedby="{ident}-pointed" '
            'aria-label="Timeline; the arrow keys walk through the boxes">'
            f"{without_style(view.picture)}</div>\n"
            f'<p class="dl-pointed" id="{ident}-pointed" aria-live="polite">'
            "Point at a box, or walk through them with the arrow keys.</p>\n"
            f'<div class="dl-numbers">{view.numbers}</div>\n{_calls(view, copy=True)}\n'
            "<details><summary>Order of every rank, with times</summary>"
            f'<div class="dl-orders" tabindex="0">{view.orders}</div></details></div></div>\n'
            '<p class="dl-unseen" role="status"></p>')
        return "".join(parts)

    def static_data(self) -> dict[str, Any]:
        """Orders for all settings, and the constants of the drawing."""
        return {
            "look": {"style": STYLE, "attributes": ATTRIBUTES, "kinds": dict(KIND_NAMES)},
            "formulas": FORMULAS,
            "traits": {name: _traits(name) for name in self._names},
            "catalogue": _catalogue(self._names, *self._most.values()),
        }


def _label(key: str) -> str:
    return " ".join(_LABELS[key])


def _range(value: float) -> tuple[float, float, float]:
    """Ends and step of a slider on which the value lies: 0 to 4 in tenths where that will do."""
    most, step = 4.0, 0.1
    while most < value:
        most *= 2
    while step > 1e-9 and abs(round(value / step) * step - value) > 1e-12:
        step /= 10
    return 0.0, most, round(step, 12)


def _select(name: str, label: str, options: Sequence[tuple[str, str]], value: str) -> str:
    rows = "".join(f'<option value="{key}"{" selected" if key == value else ""}>{text}</option>'
                   for key, text in options)
    return (f'<label class="dl-control"><span><b>{label}</b></span>'
            f'<select name="{name}" autocomplete="off">{rows}</select></label>')


def _calls(view: View, *, copy: bool) -> str:
    button = '<button type="button">copy</button>' if copy else ""
    return "".join(f'<div class="dl-call"><code>{text}</code>{button}</div>'
                   for text in (view.call, view.command))


@lru_cache
def _refuse_what_cannot_be_shown(name: str) -> None:
    """The page's script knows no pairs, swaps, recomputations, slices or copies of the model."""
    schedule = build(name, p=4, m=8)  # sizes that every schedule takes
    more = {action.kind for row in schedule.ranks for action in row} - set("FBIW")
    reasons = [*sorted(more)] + ["slices"] * (schedule.slices > 1) + (
        ["copies of the model"] * bool(schedule.copies))
    if reasons:
        raise ValueError(f"the explorer cannot show {name}, which has {', '.join(reasons)}; "
                         "distlearn.plots.timeline draws it")


@lru_cache
def _traits(name: str) -> dict[str, bool]:
    """Whether the schedule has stages per rank to choose (v), and a backward in two halves (W)."""
    split = any(action.kind == "I" for row in build(name, p=2, m=2).ranks for action in row)
    return {"v": "v" in inspect.signature(definition(name)).parameters, "W": split}


@lru_cache
def _catalogue(names: tuple[str, ...], max_p: int, max_m: int, max_v: int) -> dict[str, Any]:
    vs = {name: range(1, max_v + 1) if _traits(name)["v"] else range(1, 2) for name in names}
    return catalogue(names, range(1, max_p + 1), range(1, max_m + 1), vs)
