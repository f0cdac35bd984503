"""What the pipeline explorer says about one setting: picture, numbers, orders, the call to copy.

All texts are made here, for both faces; ``pipeline_view.js`` makes the same ones on a page.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from inspect import signature
from typing import Any

from distlearn.pipeline import Costs, Timeline, bubble_time, build, definition, simulate
from distlearn.plots import describe, timeline_svg
from distlearn.plots.numbers import number, percent
from distlearn.widgets.variants import limit_on_page, mem_limit, options_of

FORMULAS = {
    "gpipe": "(p-1)(F+B)",
    "1f1b": "(p-1)(F+B)",
    "interleaved_1f1b": "(p-1)(F+B)/v",
    "zb_h1": "(p-1)(F+I) - (min(m,p)-1)W",
    "dapple": "(p-1)(F+B)",
    "pipedream": "(p-1)(F+B)",
    "pipedream_2bw": "(p-1)(F+B)",
    "pipemare": "(p-1)(F+B)",
    "xpipe": "(p-1)(F+B)",
}
"""The idle time of a rank in the times of whole ranks, as `bubble_time` computes it."""


NOTES = {
    "times": "<p>This order comes from a search. Here it was made for F = I = W and free "
             "transfers; in JupyterLab it is searched again for the times that you set.</p>",
    "limit": "<p>This page has no order for that limit; the one shown keeps to the schedule's own. "
             "In JupyterLab an order is made for every limit.</p>",
}
"""What a page says of a schedule whose order depends on the times, or on a limit."""
MADE_FOR = "F=1,I=1,W=1"
"""The times for which a page has the orders of a search."""


@dataclass(frozen=True)
class Traits:
    """What the controls have to know of a schedule.

    Attributes
    ----------
    v : bool
        Whether there are stages per rank to choose; ``fixed`` is their number if not.
    W : bool
        Whether it has a backward in two halves.
    slices, batches : int
        Parts of a sequence, and batches of m microbatches in one run.
    partner : bool
        Whether rank r swaps with rank p-1-r.
    searched : bool
        Whether the order is searched for the times.
    limited : bool
        Whether the search takes a memory limit.
    """

    v: bool
    fixed: int
    W: bool
    slices: int
    batches: int
    partner: bool
    searched: bool
    limited: bool


@lru_cache
def traits_of(name: str, option: str = "") -> Traits:
    """Look at the schedule's definition and at a small one, made with an option of `VARIANTS`."""
    parameters = signature(definition(name)).parameters
    options = options_of(option)
    small = build(name, p=4, m=8, **options)  # sizes that every schedule takes
    stages = {small.v}
    for v in (1, 2, 4) if "v" in parameters and name != "mario" else ():  # its base has one stage
        with contextlib.suppress(ValueError):
            stages.add(v if v in stages else build(name, p=4, m=8, v=v, **options).v)
    return Traits(
        v=len(stages) > 1, fixed=small.v,
        W=any(part.kind == "I" for row in small.ranks for a in row for part in a.parts),
        slices=small.slices, batches=small.batches, partner=bool(small.partner),
        searched="costs" in parameters and option != "prepose=false" and (
            "method" not in parameters or option == "method=heuristic"),
        limited="mem_limit" in parameters)


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
    limit : float
        Whole microbatches' activations that a rank has room for; 0 for no limit.
    option : str
        An option of the schedule, as in `VARIANTS`; "" for none.
    """

    schedule: str
    p: int
    m: int
    v: int
    F: float
    B: float
    W: float | None
    comm: float
    limit: float = 0.0
    option: str = ""

    @property
    def traits(self) -> Traits:
        """Those of the schedule with its option."""
        return traits_of(self.schedule, self.option)

    @property
    def pieces(self) -> int:
        """How many actions a rank's work on one microbatch is cut into: v, times slices."""
        return self.v * self.traits.slices

    def costs(self) -> Costs:
        """The times of one stage."""
        F, B = self.F / self.pieces, self.B / self.pieces
        if self.W is None:
            return Costs(F=F, B=B, comm=self.comm)
        return Costs(F=F, B=B, W=self.W / self.pieces, comm=self.comm)


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


def look_at(setting: Setting, *, width: int = 760, tooltips: bool = True,
            search: bool = False) -> View:
    """Build, simulate and describe; what is refused comes back as the view's message.

    With ``search``, orders that depend on times and memory limit are made for those of the
    setting; without, as on a page: for the default times, and for a limit if the page has it.
    """
    s, traits = setting, setting.traits
    options: dict[str, Any] = options_of(s.option)
    limited = traits.limited and s.limit and (
        search or (not s.option and limit_on_page(s.schedule, s.p, s.m, s.limit)))
    if limited:
        options["mem_limit"] = mem_limit(s.schedule, s.limit)
    notes = "" if search else (NOTES["times"] if traits.searched else "") + (
        NOTES["limit"] if traits.limited and s.limit and not limited else "")
    try:
        if search and traits.searched:
            options["costs"] = s.costs()
        schedule = build(s.schedule, p=s.p, m=s.m, v=s.v, **options)
        timeline = simulate(schedule, s.costs())
    except ValueError as error:
        return View(message=str(error), status=str(error))
    return View(
        picture=timeline_svg(timeline, width=width, tooltips=tooltips, limit=s.limit),
        numbers=_numbers(timeline, s.limit)
        + ("" if s.option or limited else _comparison(setting, timeline)) + notes,
        orders=_orders(timeline),
        call=_call(setting, options),
        command=_command(setting, options),
        status=describe(timeline),
    )


def _numbers(timeline: Timeline, limit: float) -> str:
    v = timeline.schedule.v * timeline.schedule.slices
    peaks = [number(peak / v) for peak in timeline.peak_activations]
    over = [str(rank) for rank, peak in enumerate(timeline.peak_activations) if peak / v > limit]
    verdict = "" if not limit else (
        f"; over the limit of {number(limit)} on rank {', '.join(over)}" if over
        else f"; within the limit of {number(limit)}")
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
             f"whole microbatches; from rank 0 on: {', '.join(peaks)}{verdict}"),
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
            f"{escape(str(event.action))} ({number(event.start)} to {number(event.end)})"
            for event in timeline.rank_events(rank)) + "</p>"
        for rank in range(timeline.schedule.p)
    )


def _call(s: Setting, options: dict[str, Any]) -> str:
    sizes = f"p={s.p}, m={s.m}" + (f", v={s.v}" if s.v > 1 else "")
    times = [f"{name}={time}" for name, time in _times(s)]
    costs = f"Costs({', '.join(times)})"
    for key, value in options.items():
        if key != "costs":
            sizes += f", {key}=" + (f'"{value}"' if isinstance(value, str) else
                                    str(value) if isinstance(value, bool) else number(value, 12))
    if "costs" in options:
        sizes, costs = f"{sizes}, costs=(c := {costs})", "c"
    return escape(f'simulate(build("{s.schedule}", {sizes}), {costs})', quote=False)


def _times(s: Setting) -> list[tuple[str, str]]:
    """Each time as it is to be written: the share of one action, exactly."""
    share = f"/{s.pieces}" if s.pieces > 1 else ""
    times = [(name, number(value, 12) + share)
             for name, value in (("F", s.F), ("B", s.B), ("W", s.W)) if value is not None]
    return [*times, ("comm", number(s.comm, 12))] if s.comm else times


def _command(s: Setting, options: dict[str, Any]) -> str:
    words = [f"distlearn schedule {s.schedule} -p {s.p} -m {s.m}"]
    if s.v > 1:
        words.append(f"-v {s.v}")
    words += [f"-o {s.option}"] if s.option else []
    if "mem_limit" in options:
        words.append(f"-o mem_limit={number(options['mem_limit'], 12)}")
    words += [f"{'--' if len(name) > 1 else '-'}{name} {time}" for name, time in _times(s)]
    if s.traits.searched and "costs" not in options:
        words.append(f"--made-for {MADE_FOR}")
    return " ".join(words)
