"""The explorer's JavaScript says what the Python says: every number, event and character."""

from __future__ import annotations

import html
import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from distlearn.pipeline import NAMES, Action, Costs, Timeline, build, simulate
from distlearn.plots import timeline_svg
from distlearn.plots.numbers import fixed, number, percent, ticks
from distlearn.widgets import PipelineExplorer
from distlearn.widgets.orders import decode
from distlearn.widgets.pipeline_explorer import ENDS, SCHEDULES
from distlearn.widgets.pipeline_view import Setting, look_at, traits_of
from distlearn.widgets.variants import VARIANTS
from tests.widgets.pages import Scripts, scripts

TIMES = [0.0, 0.1, 0.25, 0.3, 0.7, 1.0, 1.1, 1.5, 2.0, 2.3, 3.0, 4.0]
SETTINGS = 450


@pytest.fixture(scope="module")
def page() -> Iterator[Scripts]:
    with scripts(PipelineExplorer()) as found:
        yield found


def test_a_page_stays_small(page: Scripts) -> None:
    assert len(page.data) < 950_000  # bytes; an eighth of them once compressed


def random_settings() -> list[Setting]:
    chance = random.Random(20)
    settings = []
    for _ in range(SETTINGS):
        name = chance.choice([*SCHEDULES, "interleaved_1f1b", "zb_h1", *NAMES])
        p = chance.choice([chance.randint(1, 4), chance.randint(1, 8)])
        m = chance.choice([chance.randint(1, 8), chance.randint(1, 32)])
        option = chance.choice(("", "", *VARIANTS.get(name, ())))
        ends = ENDS.get(f"{name} {option}".strip())
        if ends:
            p, m = min(p, ends[0]), min(m, ends[1])
        if name == "interleaved_1f1b" and chance.random() < 0.8:
            m = max(m // p, 1) * p
        settings.append(Setting(
            name, p, m,
            v=chance.randint(1, 4) if traits_of(name, option).v else traits_of(name, option).fixed,
            F=chance.choice(TIMES), B=chance.choice(TIMES),
            W=chance.choice(TIMES[:8]) if traits_of(name, option).W else None,
            comm=chance.choice([0.0, 0.0, *TIMES[:7]]),
            limit=chance.choice([0.0, 0.0, 0.5, 1.5, 2.0, 3.0, 9.0]),
            option=option,
        ))
    return settings


def test_views_and_timelines_are_equal(page: Scripts) -> None:
    chance = random.Random(21)
    shown = refused = 0
    for setting in random_settings():
        options = {"width": chance.choice([320, 366, 700, 760, 1432, 3040]),
                   "tooltips": chance.random() < 0.3}
        view = asdict(look_at(setting, **options))
        twin = page.call(f"""(function (setting) {{
            var view = lookAt(data, setting, {json.dumps(options)}), t = view.timeline;
            if (!t) {{ return [view, null]; }}
            view.orders = ordersOf(t);
            delete view.timeline;
            t.curves = t.rows.map(function (row, rank) {{ return memoryCurve(t, rank); }});
            delete t.rows;
            delete t.schedule;
            delete t.redone;
            t.events.forEach(function (e) {{ delete e.parts; }});
            return [view, t];
        }})({json.dumps(asdict(setting))})""")
        if view["message"]:
            refused += 1
            assert twin == [{"message": view["message"], "status": view["status"]}, None], setting
            continue
        shown += 1
        assert twin[0] == view, setting
        call = html.unescape(view["call"])  # what a reader copies is what the page has drawn
        assert_same(eval(call, {"build": build, "simulate": simulate, "Costs": Costs}), twin[1])
    assert shown >= 300
    assert refused >= 20


def assert_same(timeline: Timeline, twin: dict[str, Any]) -> None:
    assert [[e.rank, str(e.action), e.start, e.end] for e in timeline.events] == [
        [e["rank"], e['name'], e["start"], e["end"]]
        for e in twin["events"]
    ]
    assert twin["makespan"] == timeline.makespan
    assert twin["longestSpan"] == timeline.longest_span
    assert twin["busy"] == list(timeline.busy)
    assert twin["peakActivations"] == list(timeline.peak_activations)
    assert twin["curves"] == [
        [list(point) for point in timeline.memory_curve(rank)]
        for rank in range(timeline.schedule.p)
    ]
    # Python 3.12 sums with less rounding than 3.11 and JavaScript do
    for name, value in (
        ("ideal", timeline.ideal),
        ("bubbleFraction", timeline.bubble_fraction),
        ("bubbleOverIdeal", timeline.bubble_over_ideal),
        ("spanBubbleFraction", timeline.span_bubble_fraction),
        ("spanBubbleOverIdeal", timeline.span_bubble_over_ideal),
    ):
        assert twin[name] == pytest.approx(value, rel=1e-12, abs=1e-12)


def test_odd_orders_are_read_alike(page: Scripts) -> None:
    orders = ["F3B.2B.1B.0", "((FFa)2F)2Fa3B.4Ba.1Ba", "F.3F.0W2(I)1(IFb)2"]
    for order in orders:
        actions = page.call(f"decodeOrder({json.dumps(order)}, [1, 4, 6]).map(function (a) {{ "
                            "delete a.parts; return a; })")
        placement = [1, 0, 1, 1, 0, 1, 0]  # rank 0 holds stages 1, 4, 6
        assert [Action(a["kind"], a["stage"], a["microbatch"]) for a in actions] == decode(
            [order, ""], placement)[0]


def test_a_stuck_order_is_refused(page: Scripts) -> None:
    stuck = {"name": "mine", "p": 1, "m": 1, "v": 1, "placement": [0]}
    message = page.call(f"""(function (schedule) {{
        schedule.ranks = [decodeOrder("BF", [0])];
        try {{ simulate(schedule, {{F: 1, B: 1, I: 1, W: 1, R: 1, comm: 0}}); }}
        catch (error) {{ return error.message; }}
    }})({json.dumps(stuck)})""")
    assert message == "deadlock on rank 0"


@pytest.mark.parametrize("memory", [True, False])
def test_pictures_with_title_and_unit_are_equal(page: Scripts, memory: bool) -> None:
    setting = Setting("zb_h1", 3, 7, 1, F=1.5, B=2.0, W=0.75, comm=0.25)
    timeline = simulate(build("zb_h1", 3, 7), setting.costs())
    options = {"width": 640, "memory": memory, "title": 'a <b> & "c"', "unit": "µs <"}
    twin = page.call(
        f"timelineSvg(timelineOf(data, {json.dumps(asdict(setting))}), data.look, "
        f"{json.dumps(options)})")
    assert twin == timeline_svg(timeline, **options)  # type: ignore[arg-type]


def test_numbers_are_written_alike(page: Scripts) -> None:
    chance = random.Random(3)
    values = [0.0, 0.125, 0.0625, 0.1 + 0.2, 1e-9, 1e9, 1234567.5, 99999.5, 9.9996e-5, 1e22]
    values += [10 ** chance.uniform(-12, 12) for _ in range(300)]
    values += [chance.randint(0, 400) / 16 for _ in range(100)]
    expected = [[number(x), number(x, 12), percent(min(x, 1e6)), fixed(min(x, 1e6), 2)]
                for x in values]
    assert page.call(
        f"{json.dumps(values)}.map(function (x) {{ var y = Math.min(x, 1e6); "
        "return [number(x), number(x, 12), percent(y), fixed(y, 2)]; })") == expected
    spans = [10 ** chance.uniform(-6, 8) for _ in range(100)]
    assert page.call(f"{json.dumps(spans)}.map(function (x) {{ return ticks(x, 9.5); }})") == [
        ticks(x, 9.5) for x in spans]
    floats = [0.0, 1.0, 33.0, 0.1, 1e-4, 1.5e-5, 3e-7, 123.456, 1e15, 0.1 + 0.7]
    assert page.call(f"{json.dumps(floats)}.map(pythonFloat)") == [repr(x) for x in floats]
