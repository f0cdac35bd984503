"""The pipeline explorer: choose a schedule, sizes and times; see time, bubble and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from html import escape
from typing import Any, ClassVar

import ipywidgets

from distlearn.pipeline import NAMES, Costs, definition
from distlearn.plots import KIND_NAMES
from distlearn.plots.look import ATTRIBUTES, RECOMPUTATION_STYLE, STYLE
from distlearn.plots.numbers import number
from distlearn.widgets.face import Face, face_style, without_style
from distlearn.widgets.orders import catalogue
from distlearn.widgets.pipeline_view import (
    FORMULAS,
    MADE_FOR,
    NOTES,
    Setting,
    View,
    look_at,
    traits_of,
)
from distlearn.widgets.variants import LIMIT_ENDS, VARIANTS, page_limits

GROUPS = {
    "one after the other": ("gpipe", "1f1b", "dapple", "bpipe"),
    "several stages per rank": ("interleaved_1f1b", "breadth_first", "hanayo", "1f1b_v", "gis",
                                "gis_h"),
    "split backward": ("zb_h1", "zb_h2", "zb_1p", "zb_2p", "zb_auto", "interleaved_zero_bubble",
                       "zb_v", "v_half", "v_min", "v_auto"),
    "two directions": ("chimera", "dualpipe", "dualpipe_v"),
    "slices, recomputation": ("seq1f1b", "terapipe", "mario"),
    "without a flush": ("pipedream", "pipedream_2bw", "pipemare", "xpipe", "amdp"),
}
"""The list of schedules as the explorer shows it; others than these come at its end."""
SCHEDULES = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "pipedream")
"""Schedules of which a page carries all orders."""
ENDS = {name: (8, 12) for name in NAMES if name not in SCHEDULES} | {
    "mario": (6, 10), "v_auto": (4, 8)} | {
    f"{name} {option}": (6, 10) for name in NAMES for option in VARIANTS.get(name, ())} | {
    f"{name} mem_limit={limit:g}": ends for name, ends in LIMIT_ENDS.items()
    for limit in page_limits(name)}
"""Last p and m for which a page carries the orders of the other ones, with options or a limit."""
ZOOMS = (1, 2, 4)
_WIDTH = 760
_FAR = {"p": 64, "m": 512, "v": 27}  # of pages that a reader would still wait for
_LABELS = {
    "p": ("p", "ranks"),
    "m": ("m", "microbatches"),
    "v": ("v", "stages per rank"),
    "limit": ("limit", "activations"),
    "F": ("F", "forward"),
    "B": ("B", "backward"),
    "W": ("W", "weight part of B"),
    "comm": ("comm", "transfer"),
}


class PipelineExplorer(Face):
    """An interactive timeline of a pipeline schedule.

    F, B and W are the times of a whole rank's layers for one microbatch; each of its v stages
    takes 1/v of them, so that schedules with different v do the same work. A transfer takes
    ``comm``, whatever v is. Moving an activation to a partner or to the host takes no time, a
    recomputation takes F, a merged pair as long as its parts.

    In JupyterLab Python computes everything. A page carries the orders; those of a search are made
    for equal times there, and the page says so.

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
    limit : float
        Activations, in whole microbatches, that a rank has room for; 0 for no limit.
    option : str
        An option of the schedule, one of its `VARIANTS`, such as ``overlap=true``; "" for none.
    schedules : sequence of str
        The schedules to choose from. Default: all.
    max_p, max_m, max_v : int
        Ends of the sliders. The page carries every order up to them.

    Raises
    ------
    ValueError
        For a value outside the ranges, naming it. What a schedule itself refuses, for example
        ``m % p`` of the interleaved one, is shown in place of the picture.

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
                 W: float | None = None, comm: float = 0.0, limit: float = 0.0, option: str = "",
                 schedules: Sequence[str] = NAMES, max_p: int = 8, max_m: int = 32,
                 max_v: int = 4) -> None:
        names = tuple(schedules)
        for name in (*names, schedule):
            definition(name)  # says which names there are
        if schedule not in names:
            raise ValueError(f"schedule must be one of {', '.join(names)}; got {schedule!r}")
        offered = ("", *VARIANTS.get(schedule, ()))
        if option not in offered:
            raise ValueError(f"the explorer offers for {schedule} the options "
                             f"{', '.join(offered[1:]) or 'none'}; got option={option!r}")
        self._names = tuple(dict.fromkeys(
            name for group in (*GROUPS.values(), names) for name in group if name in names))
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
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not (
                0 <= limit <= 2 * max_p and limit * 2 % 1 == 0):
            raise ValueError("limit must be a multiple of 0.5 from 0 (none) to 2 * max_p = "
                             f"{2 * max_p}; got {limit!r}")
        costs = Costs(F=F, B=B, I=I, W=W, comm=comm)  # type: ignore[arg-type]
        costs_F, costs_B, _, costs_W = Costs(costs.F, costs.B, costs.I, costs.W).uniform()
        self._first = {"p": p, "m": m, "v": v, "F": costs_F, "B": costs_B, "W": costs_W,
                       "comm": costs.one_comm()}
        self._controls: dict[str, Any] = {"schedule": ipywidgets.Dropdown(
            options=self._names, value=schedule, description="schedule"),
            "option": ipywidgets.Dropdown(
                options=_options(schedule), value=option, description="option")}
        for key in ("p", "m", "v"):
            self._controls[key] = ipywidgets.IntSlider(
                value=self._first[key], min=1, max=self._most[key], description=_label(key))
        self._controls["limit"] = ipywidgets.FloatSlider(
            value=limit, min=0, max=2 * max_p, step=0.5, description=_label("limit"),
            readout_format=".1f")
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
        traits = traits_of(at["schedule"], at["option"])
        times = {key: round(float(at[key]), 9) for key in ("F", "B", "W", "comm")}
        return Setting(at["schedule"], at["p"], at["m"], at["v"] if traits.v else traits.fixed,
                       times["F"], times["B"], times["W"] if traits.W else None, times["comm"],
                       float(at["limit"]), at["option"])

    def _update(self, change: Any = None) -> None:
        schedule, option = self._controls["schedule"].value, self._controls["option"]
        if option.options != _options(schedule):
            option.options = _options(schedule)  # also goes back to the first: calls this again
        option.disabled = len(option.options) == 1
        traits = traits_of(schedule, option.value)
        self._controls["v"].disabled = not traits.v
        self._controls["W"].disabled = not traits.W
        self.view = view = look_at(self.setting, width=_WIDTH * self._controls["zoom"].value,
                                   search=True)
        if view.message:
            body = f'<div class="dl-message" role="alert">{escape(view.message)}</div>'
        else:
            body = (f'<div class="dl-scroll" tabindex="0">{without_style(view.picture)}</div>'
                    f'<div class="dl-numbers">{view.numbers}</div>{_calls(view, copy=False)}')
        self._shown.value = f'<div class="dl-face"><style>{face_style()}</style>{body}</div>'
        opened = self._details.selected_index is not None
        self._orders.value = view.orders if opened else ""

    def saved_html(self) -> str:
        """Picture and numbers of the setting; the orders for a page take some seconds to make."""
        return f"{self._shown.value}\n<p>Run the cell for controls.</p>"

    def static_body(self, ident: str) -> str:
        """Controls, picture and numbers of the setting that the controls show now."""
        view = look_at(self.setting, width=_WIDTH)
        traits = self.setting.traits
        options = _options(self._controls["schedule"].value)
        parts = ['<div class="dl-controls">', self._select_schedule(), _select(
            "option", "option", [(value, text) for text, value in options],
            self._controls["option"].value, disabled=len(options) == 1)]
        for key in ("p", "m", "v", "limit", "F", "B", "W", "comm"):
            control = self._controls[key]
            used = getattr(traits, key, True)
            value = number(control.value, 12)
            says = value if used else str(traits.fixed) if key == "v" else "–"
            says = "none" if key == "limit" and not control.value else says
            name, words = _LABELS[key]
            parts.append(
                f'<label class="dl-control"><span><b>{name}</b> <small>{words}</small></span>'
                f'<input type="range" name="{key}" min="{control.min}" max="{control.max}" '
                f'step="{control.step}" value="{value}" autocomplete="off"'
                f"{'' if used else ' disabled'}><output>{says}</output></label>")
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

    def _select_schedule(self) -> str:
        value, groups, left = self._controls["schedule"].value, [], list(self._names)
        for label, members in (*GROUPS.items(), ("more", self._names)):
            names = [name for name in left if name in members]
            left = [name for name in left if name not in names]
            options = "".join(_option(name, name, value) for name in names)
            groups += [f'<optgroup label="{label}">{options}</optgroup>'] if names else []
        return ('<label class="dl-control"><span><b>schedule</b></span><select name="schedule" '
                f'autocomplete="off">{"".join(groups)}</select></label>')

    def static_data(self) -> dict[str, Any]:
        """Orders for all settings, and the constants of the drawing."""
        return {
            "look": {"style": STYLE, "attributes": ATTRIBUTES, "kinds": dict(KIND_NAMES),
                     "recomputation": RECOMPUTATION_STYLE},
            "formulas": FORMULAS,
            "notes": NOTES,
            "madeFor": MADE_FOR,
            "variants": {name: VARIANTS.get(name, ()) for name in self._names},
            "limits": {name: [*LIMIT_ENDS[name], page_limits(name)[0]]
                       for name in self._names if name in LIMIT_ENDS},
            "traits": {key: asdict(traits_of(*key.split(" "))) for key in _keys(self._names)},
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


def _options(schedule: str) -> tuple[tuple[str, str], ...]:
    """What the list of options shows, and the values behind it."""
    return (("none", ""), *((option, option) for option in VARIANTS.get(schedule, ())))


def _keys(names: Sequence[str]) -> list[str]:
    """Schedules, alone and with each option."""
    return [" ".join(filter(None, (name, option)))
            for name in names for option in ("", *VARIANTS.get(name, ()))]


def _select(name: str, label: str, options: Sequence[tuple[str, str]], value: str, *,
            disabled: bool = False) -> str:
    rows = "".join(_option(key, text, value) for key, text in options)
    return (f'<label class="dl-control"><span><b>{label}</b></span>'
            f'<select name="{name}" autocomplete="off"{" disabled" if disabled else ""}>{rows}'
            "</select></label>")


def _option(key: str, text: str, value: str) -> str:
    return f'<option value="{key}"{" selected" if key == value else ""}>{text}</option>'


def _calls(view: View, *, copy: bool) -> str:
    button = '<button type="button">copy</button>' if copy else ""
    return "".join(f'<div class="dl-call"><code>{text}</code>{button}</div>'
                   for text in (view.call, view.command))


@lru_cache
def _catalogue(names: tuple[str, ...], max_p: int, max_m: int, max_v: int) -> dict[str, Any]:
    keys = [*_keys(names), *(f"{name} mem_limit={limit:g}" for name in names if name in LIMIT_ENDS
                             for limit in page_limits(name))]
    vs = {}
    for key in keys:
        traits = traits_of(*key.partition(" mem_limit")[0].split(" "))
        vs[key] = range(1, max_v + 1) if traits.v else [traits.fixed]
    return catalogue(keys, range(1, max_p + 1), range(1, max_m + 1), vs, ENDS)
