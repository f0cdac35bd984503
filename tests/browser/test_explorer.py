"""The pipeline explorer inside the built book: every control, every schedule, against Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from distlearn.pipeline import NAMES, Costs, Timeline, build, simulate
from distlearn.plots import describe
from distlearn.plots.numbers import number, percent
from distlearn.widgets.pipeline_explorer import ENDS
from distlearn.widgets.variants import VARIANTS, options_of
from tests.browser.conftest import BOOK

PLACES = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
SLIDERS = ("p", "m", "v", "limit", "F", "B", "W", "comm")
# what floats above the page and would be in the pictures
HIDE = ".bd-header-article, #pst-skip-link, #pst-back-to-top { display: none !important }"
READ = """face => {
    var text = selector => face.querySelector(selector).textContent;
    var controls = {};
    face.querySelectorAll(".dl-controls [name]").forEach(c => {
        controls[c.name] = isNaN(c.value) || c.name === "option" ? c.value : Number(c.value);
    });
    controls.v = Number(face.querySelector("[name=v]").parentNode.querySelector("output").value);
    return {
        controls: controls, message: text(".dl-message"),
        said: [...face.querySelectorAll(".dl-numbers dt")].map(
            name => [name.textContent, name.nextElementSibling.textContent]),
        peaks: (face.querySelector(".dl-numbers div:last-child dd:last-child") || {}).textContent,
        picture: (face.querySelector("svg desc") || {}).textContent,
        calls: [...face.querySelectorAll(".dl-call code")].map(code => code.textContent)
    };
}"""

CHOOSE = """(face, keys) => keys.map(([schedule, option]) => {
    [["schedule", schedule], ["option", option]].forEach(([name, value]) => {
        var list = face.querySelector(`[name=${name}]`);
        if (list.value === value) { return; }
        list.value = value;
        list.dispatchEvent(new Event("input"));
    });
    return (READ)(face);
})""".replace("READ", READ)


@dataclass(frozen=True)
class Controls:
    """What the explorer's controls say."""

    schedule: str
    option: str
    p: int
    m: int
    v: int
    limit: float
    F: float
    B: float
    W: float
    comm: float
    zoom: int


@lru_cache
def python(c: Controls) -> Timeline | str:
    """What the library says of it; the times are those of a whole rank."""
    options = options_of(c.option)
    if c.limit and c.schedule in ("zb_1p", "zb_2p", "zb_auto", "dapple") and not c.option:
        options["mem_limit"] = c.limit
    try:
        schedule = build(c.schedule, c.p, c.m, c.v, **options)
        each = schedule.v * schedule.slices
        return simulate(schedule, Costs(F=c.F / each, B=c.B / each, W=c.W / each, comm=c.comm))
    except ValueError as error:
        return str(error)


@lru_cache
def copied(call: str) -> Timeline:
    """What a reader gets who runs the copied call."""
    return eval(call, {"build": build, "simulate": simulate, "Costs": Costs})  # type: ignore[no-any-return]


def check(face: Any) -> Controls:
    """Bubble, peak, makespan and the rest are those of Python for what the controls say."""
    return check_seen(face.evaluate(READ))


def check_seen(seen: Any) -> Controls:
    """The same of what was read before."""
    controls = Controls(**seen["controls"])
    timeline = python(controls)
    if seen["message"].startswith("this page has the orders of"):
        last_p, last_m = ENDS[f"{controls.schedule} {controls.option}".strip()]
        assert controls.p > last_p or controls.m > last_m, controls
        return controls
    if isinstance(timeline, str):
        assert seen["message"] == timeline, controls
        return controls
    assert not seen["message"], controls
    each = timeline.schedule.v * timeline.schedule.slices
    peaks = [number(peak / each) for peak in timeline.peak_activations]
    assert dict(seen["said"]) == {
        "makespan": number(timeline.makespan, 6),
        "bubble / makespan": percent(timeline.bubble_fraction),
        "bubble / ideal": percent(timeline.bubble_over_ideal),
        "peak activations": number(max(timeline.peak_activations) / each),
    }, controls
    assert f"from rank 0 on: {', '.join(peaks)}" in seen["peaks"]
    assert seen["picture"] == describe(timeline)
    call, command = seen["calls"]
    assert copied(call).events == timeline.events
    assert command.startswith(f"distlearn schedule {controls.schedule} -p {controls.p} ")
    return controls


@pytest.fixture(scope="session")
def holder() -> str:
    """The page that holds the explorer, wherever the book has it."""
    page, *_ = [path for path in BOOK.rglob("*.html")
               if 'aria-label="Pipeline explorer"' in path.read_text(encoding="utf-8")]
    return str(page.relative_to(BOOK))


def walk_through_the_list(page: Any, face: Any) -> None:
    """All schedules with the arrow keys, at the sizes the page begins with."""
    before = check(face)
    face.locator("select[name=schedule]").focus()
    page.keyboard.press("Home")
    found = [check(face)]
    for _ in NAMES[1:]:
        page.keyboard.press("ArrowDown")
        found.append(check(face))
        assert face.locator(".dl-message").is_hidden(), found[-1]  # none refuses those sizes
    assert sorted(c.schedule for c in found) == sorted(NAMES)
    assert {replace(c, schedule="", v=0) for c in found} == {replace(before, schedule="", v=0)}


def use_the_keyboard(page: Any, face: Any) -> None:
    """Type a name, Tab from control to control, arrow keys on each."""
    face.locator("select[name=schedule]").focus()
    page.keyboard.type("interleaved_z")
    at = check(face)
    assert at.schedule == "interleaved_zero_bubble"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert check(face).option == "group=6"
    page.keyboard.press("ArrowUp")
    for name in SLIDERS:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == name
        page.keyboard.press("ArrowLeft" if name in ("B", "m") else "ArrowRight")
        after = check(face)
        assert replace(after, **{name: getattr(at, name)}) == at != after
        at = after
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert check(face).zoom == 2


def use_the_mouse(page: Any, face: Any) -> None:
    """Drag every slider somewhere else."""
    face.locator("select[name=zoom]").select_option("1")
    face.locator("select[name=schedule]").select_option("interleaved_1f1b")
    at = check(face)
    for name in SLIDERS:
        slider = face.locator(f"input[name={name}]")
        if name == "W":
            assert slider.is_disabled()  # no halves to share
            continue
        slider.evaluate("e => e.scrollIntoView({block: 'center'})")  # not below the page's bar
        box = slider.bounding_box()
        page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2, steps=3)
        page.mouse.up()
        assert getattr(check(face), name) > getattr(at, name)
    face.locator("input[name=p]").fill("4")
    face.locator("input[name=m]").fill("8")


def read_the_picture(page: Any, face: Any) -> None:
    """Point at a box, walk on with the arrow keys, open the orders, copy both calls."""
    timeline = python(check(face))
    assert isinstance(timeline, Timeline)
    picture, words = face.locator(".dl-scroll"), face.locator(".dl-pointed")
    picture.scroll_into_view_if_needed()
    first, second = timeline.rank_events(0)[:2]
    row = picture.locator("svg > rect.dl-idle").nth(1).bounding_box()
    middle = (first.start + first.end) / 2 / timeline.makespan
    page.mouse.move(row["x"] + middle * row["width"], row["y"] + row["height"] / 2)
    said = f"{first.action}: forward, stage 0, microbatch 0; rank 0, from 0 to "
    assert words.inner_text().startswith(said)
    picture.focus()
    page.keyboard.press("ArrowRight")
    assert words.inner_text().startswith(f"{second.action}: ")
    page.keyboard.press("ArrowDown")
    assert "; rank 1, from " in words.inner_text()

    face.locator("summary").click()
    assert face.locator(".dl-orders p").count() == 4
    event = timeline.rank_events(3)[-1]
    assert face.locator(".dl-orders p").last.inner_text().endswith(
        f"{event.action} ({number(event.start)} to {number(event.end)})")
    page.keyboard.press("Enter")
    assert not face.locator(".dl-orders").is_visible()

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for call in face.locator(".dl-call").all():
        call.locator("button").click()
        call.get_by_text("copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == call.locator(
            "code").inner_text()


def go_through_all_options(face: Any) -> None:
    """Every schedule with every option, at other sizes and times and with a limit."""
    face.locator("[name=schedule]").select_option("zb_h1")  # has all controls but v
    for name, value in (("p", 4), ("m", 6), ("F", 1.5), ("B", 2.6), ("W", 1.2), ("comm", 0.3),
                        ("limit", 3)):
        face.locator(f"[name={name}]").fill(str(value))
    keys = [(name, option) for name in NAMES for option in ("", *VARIANTS.get(name, ()))]
    found = [check_seen(seen) for seen in face.evaluate(CHOOSE, keys)]
    assert [(controls.schedule, controls.option) for controls in found] == keys
    refused = sum(isinstance(python(controls), str) for controls in found)
    assert 1 <= refused <= 8  # the library's own words, such as m % p == 0


@pytest.mark.parametrize(("theme", "width"), PLACES)
def test_every_schedule_and_control(
    visit: Callable[..., Any], holder: str, shots: Path, theme: str, width: int
) -> None:
    with visit(holder, theme=theme, width=width) as page:
        face = page.get_by_role("group", name="Pipeline explorer").first
        face.scroll_into_view_if_needed()
        walk_through_the_list(page, face)
        if (theme == "light") == (width == 1280):  # each theme and each width, once
            use_the_keyboard(page, face)
            use_the_mouse(page, face)
            read_the_picture(page, face)
        elif width == 1280:
            go_through_all_options(face)
        face.screenshot(path=shots / f"explorer-{theme}-{width}.png", style=HIDE)
