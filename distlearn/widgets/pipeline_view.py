"""What the pipeline explorer says about one setting: picture, numbers, orders, the call to copy.

All texts are made here, for both faces; ``pipeline_view.js`` makes the same ones on a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from distlearn.pipeline import Costs, Timeline, bubble_time, build, simulate
from distlearn.plots import describe, timeline_svg
from distlearn.plots.numbers import number, percent

FORMULAS = {
    "gpipe": "(p-1)(F+B)",
    "1f1b": "(p-1)(F+B)",
    "interleaved_1f1b": "(p-1)(F+B)/v",
    "zb_h1": "(p-1)(F+I) - (min(m,p)-1)W",
    "pipedream": "(p-1)(F+B)",
}
"""The idle time of a rank in the times of whole ranks, as `bubble_time` computes it."""


@dataclass(frozen=True)
class Setting:
    """What the controls say. Times are of a whole rank: all its v stages, one microbatch.

    Attributes
    ----------
    schedule : str
    p, m, v : int
        Ranks, microbatches, stages per rank.
    F, B : float
        Time of a rank's forward and full backward of one microbatch; a stage takes 1/v of it.
    W : float or None
        The part of B that is the weight gradient, for schedules that split the backward.
    comm : float
        Time of one transfer, whatever v is.
    """

    schedule: str
    p: int
    m: int
    v: int
    F: float
    B: float
    W: float | None
    comm: float

    def costs(self) -> Costs:
        """The times of one stage."""
        F, B = self.F / self.v, self.B / self.v
        if self.W is None:
            return Costs(F=F, B=B, comm=self.comm)
        return Costs(F=F, B=B, W=self.W / self.v, comm=self.comm)


@dataclass(frozen=True)
class View:
    """Texts about a setting, HTML each, `status` and `message` plain. With a message: only that."""

    message: str = ""
    picture: str = ""
    numbers: str = ""
    orders: str = ""
    call: str = ""
    command: str = ""
    status: str = ""


def look_at(setting: Setting, *, width: int = 760, tooltips: bool = True) -> View:
    """Build, simulate and describe; what is refused comes back as the view's message."""
    s = setting
    try:
        schedule = build(s.schedule, p=s.p, m=s.m, v=s.v)
        timeline = simulate(schedule, s.costs())
    except ValueError as error:
        return View(message=str(error), status=str(error))
    return View(
        picture=timeline_svg(timeline, width=width, tooltips=tooltips),
        numbers=_numbers(timeline) + _comparison(setting, timeline),
        orders=_orders(timeline),
        call=_call(setting),
        command=_command(setting),
        status=describe(timeline),
    )


def _numbers(timeline: Timeline) -> str:
    v = timeline.schedule.v
    peaks = [number(peak / v) for peak in timeline.peak_activations]
    in_span = percent(timeline.span_bubble_over_ideal)
    return "<dl>" + "".join(
        f'<div><dt>{name}</dt><dd class="dl-value">{value}</dd><dd>{more}</dd></div>'
        for name, value, more in (
            ("makespan", number(timeline.makespan, 6),
             f"ideal {number(timeline.ideal, 6)}: the mean work of a rank"),
            ("bubble / makespan", percent(timeline.bubble_fraction),
             f"idle share; {percent(timeline.span_bubble_fraction)} of the longest rank's span"),
            ("bubble / ideal", percent(timeline.bubble_over_ideal),
             f"idle over work, as in Megatron-LM; {in_span} within that span"),
            ("peak activations", number(max(timeline.peak_activations) / v),
             f"whole microbatches; from rank 0 on: {', '.join(peaks)}"),
        )
    ) + "</dl>"


def _comparison(setting: Setting, timeline: Timeline) -> str:
    """The closed formula beside the simulation, or why it does not apply."""
    formula = FORMULAS.get(setting.schedule)
    if formula is None:
        return ""
    s = setting
    simulated = number(max(timeline.makespan - timeline.ideal, 0.0))
    try:
        closed = number(bubble_time(s.schedule, p=s.p, m=s.m, v=s.v, costs=s.costs()))
    except ValueError as error:
        verdict = f"does not apply: {escape(str(error))}"
    else:
        verdict = f"gives {closed}"
    other = "" if formula == FORMULAS["1f1b"] else (
        f" 1F1B with free transfers would idle {FORMULAS['1f1b']} = "
        f"{number((s.p - 1) * (s.F + s.B))}.")
    return (f"<p>Idle time of a rank: {simulated} on average in this simulation; "
            f"the closed formula {escape(formula)} {verdict}.{other}</p>")


def _orders(timeline: Timeline) -> str:
    return "".join(
        f"<p><b>rank {rank}</b> " + ", ".join(
            f"{event.action} ({number(event.start)} to {number(event.end)})"
            for event in timeline.rank_events(rank)) + "</p>"
        for rank in range(timeline.schedule.p)
    )


def _call(s: Setting) -> str:
    sizes = f"p={s.p}, m={s.m}" + (f", v={s.v}" if s.v > 1 else "")
    share = f"/{s.v}" if s.v > 1 else ""
    times = [f"{name}={number(value, 12)}{share}"
             for name, value in (("F", s.F), ("B", s.B), ("W", s.W)) if value is not None]
    if s.comm:
        times.append(f"comm={number(s.comm, 12)}")
    return escape(f'simulate(build("{s.schedule}", {sizes}), Costs({", ".join(times)}))',
                  quote=False)


def _command(s: Setting) -> str:
    words = [f"distlearn schedule {s.schedule} -p {s.p} -m {s.m}"]
    if s.v > 1:
        words.append(f"-v {s.v}")
    words += [f"-{name} {number(value / s.v, 12)}"
              for name, value in (("F", s.F), ("B", s.B), ("W", s.W)) if value is not None]
    if s.comm:
        words.append(f"--comm {number(s.comm, 12)}")
    return " ".join(words)
