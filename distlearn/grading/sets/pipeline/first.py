"""Notebook pipeline_1: the bubble, 1F1B, peak activations, a deadlock, interleaving."""

from __future__ import annotations

from distlearn.grading.answer import Actions, Count, Number
from distlearn.grading.question import Case, Mistake, Question


def _order(p: int, m: int, r: int, extra: int = 0, shift: int = 0) -> list[str]:
    """1F1B with ``extra`` more warm-up forwards and microbatches counted from ``shift``."""
    warmup = max(0, min(p - 1 - r + extra, m))
    actions = [f"F{r}.{i + shift}" for i in range(warmup)]
    for i in range(m):
        if warmup + i < m:
            actions.append(f"F{r}.{warmup + i + shift}")
        actions.append(f"B{r}.{i + shift}")
    return actions


def _kept(actions: list[str], frees: str, release_first: bool = False) -> int:
    kept = peak = 0
    for k, action in enumerate(actions):
        kept += action[0] == "F"
        kept -= action[0] in frees
        early = release_first and k + 1 < len(actions) and actions[k + 1][0] in frees
        peak = max(peak, kept - early)
    return peak


def _before_first_backward(actions: list[str]) -> int:
    count = 0
    for action in actions:
        if not action.startswith("F"):
            break
        count += 1
    return count


BUBBLE = Question(
    id="pipeline/bubble",
    title="The bubble",
    function="bubble_fraction",
    parameters=("p", "m"),
    answer=Number(),
    points=2,
    cases=(
        Case((4, 8), 3 / 11),
        Case((2, 2), 1 / 3),
        Case((8, 1), 7 / 8),
        Case((1, 5), 0.0),
    ),
    mistakes=(
        Mistake(lambda p, m: (p - 1) / m,
                "This is idle time over useful time, Megatron-LM's (p-1)/m. Asked for is the idle "
                "share of the whole step: divide by the time that passes, bubble included."),
        Mistake(lambda p, m: p / (m + p),
                "Off by one: the first microbatch passes p - 1 ranks before the last one starts, "
                "not p."),
        Mistake(lambda p, m: (p - 1) / (m + p),
                "Off by one in the denominator: m slots of work and p - 1 idle ones pass."),
        Mistake(lambda p, m: p / (m + p - 1),
                "Off by one in the numerator: a rank idles for p - 1 slots, not p."),
        Mistake(lambda p, m: m / (m + p - 1),
                "This is the share of the step in which a rank works; the bubble is the rest."),
        Mistake(lambda p, m: 2 * (p - 1) / (m + 2 * (p - 1)),
                "The ramp up and the ramp down together cost p - 1 slots of F + B: each is counted "
                "in full here."),
        Mistake(lambda p, m: (m - 1) / (m + p - 1),
                "p and m are swapped: more microbatches make the bubble smaller."),
    ),
)

ORDER = Question(
    id="pipeline/order",
    title="The 1F1B order of one rank",
    function="order_1f1b",
    parameters=("p", "m", "r"),
    answer=Actions(),
    points=4,
    cases=(
        Case((4, 4, 2), ["F2.0", "F2.1", "B2.0", "F2.2", "B2.1", "F2.3", "B2.2", "B2.3"]),
        Case((2, 3, 1), ["F1.0", "B1.0", "F1.1", "B1.1", "F1.2", "B1.2"]),
        Case((4, 2, 0), ["F0.0", "F0.1", "B0.0", "B0.1"]),
        Case((1, 2, 0), ["F0.0", "B0.0", "F0.1", "B0.1"]),
    ),
    mistakes=(
        Mistake(lambda p, m, r: _order(p, m, r, extra=1),
                "One forward too many before the first backward: rank r warms up with p - 1 - r."),
        Mistake(lambda p, m, r: _order(p, m, r, extra=-1),
                "One forward too few before the first backward: rank r warms up with p - 1 - r."),
        Mistake(lambda p, m, r: _order(p, m, p - 1 - r) if r == p - 1 - r else
                [f"{x[0]}{r}.{x.split('.')[1]}" for x in _order(p, m, p - 1 - r)],
                "The ranks are the wrong way round: rank 0 warms up longest, the last rank not at "
                "all."),
        Mistake(lambda p, m, r: [f"{k}{r}.{i}" for k in "FB" for i in range(m)],
                "This is GPipe: all forwards, then all backwards. 1F1B starts a backward as soon "
                "as one can run."),
        Mistake(lambda p, m, r: _order(p, m, r, shift=1),
                "Microbatches count from 0 here."),
        Mistake(lambda p, m, r: [f"{x[0]}{r + 1}.{x.split('.')[1]}" for x in _order(p, m, r)],
                "Stages count from 0 here: the stage of rank r is r."),
        Mistake(lambda p, m, r: _order(p, m, r)[: 2 * m - min(p - 1 - r, m)],
                "The backwards of the last microbatches are missing: after the last pair the "
                "pipeline has to drain."),
        Mistake(lambda p, m, r: [f"{k}{r}.{i}" for i in range(m) for k in "FB"],
                "Every rank here does F, B, F, B from the start. Only the last rank can: the "
                "others have nothing to go back with yet, and warm up first."),
    ),
    without=("build", "definition"),
)

PEAK = Question(
    id="pipeline/peak",
    title="Peak activations",
    function="peak_activations",
    parameters=("actions",),
    answer=Count(),
    points=4,
    cases=(
        Case((["F0.0", "F0.1", "B0.0", "F0.2", "B0.1", "B0.2"],), 2),
        Case((["F0.0", "F0.1", "F0.2", "B0.0", "B0.1", "B0.2"],), 3),
        Case((["F1.0", "I1.0", "F1.1", "I1.1", "W1.0", "F1.2", "I1.2", "W1.1", "W1.2"],), 2),
        Case((["F0.0", "B0.0", "F0.1", "F0.2", "B0.1", "B0.2"],), 2),
        Case(([],), 0),
    ),
    mistakes=(
        Mistake(lambda a: _kept(a, "BI"),
                "I does not free the activation: W still needs it. Only B and W free one."),
        Mistake(lambda a: _kept(a, "B"),
                "W frees an activation too: it is the second half of a split backward."),
        Mistake(lambda a: _kept(a, "BIW"),
                "I and W together free one activation, not two: it goes with W."),
        Mistake(lambda a: sum(x.startswith("F") for x in a),
                "This counts all forwards; some activations are freed before others are made."),
        Mistake(_before_first_backward,
                "This counts the forwards before the first backward. The peak may come later."),
        Mistake(lambda a: sum(x[0] == "F" for x in a) - sum(x[0] in "BW" for x in a),
                "This is what is kept at the end; asked for is the most kept at any moment."),
        Mistake(lambda a: _kept(a, "BW", release_first=True),
                "Off by one: a B frees its activation when it ends, so what it uses still counts "
                "while it runs."),
        Mistake(lambda a: _kept(a, "BW") - 1,
                "Off by one: the activation that has just been made counts as well."),
    ),
)

DEADLOCK = Question(
    id="pipeline/deadlock",
    title="Find the deadlocked actions",
    function="stuck_actions",
    parameters=("ranks",),
    answer=Actions(noun="a list with one action per rank, or [] if all ranks finish"),
    points=6,
    cases=(
        Case(([["F0.0", "F0.1", "B0.0", "B0.1"], ["F1.0", "B1.0", "F1.1", "B1.1"]],), []),
        Case(([["F0.0", "B0.0", "F0.1", "B0.1"], ["F1.0", "F1.1", "B1.0", "B1.1"]],),
             ["B0.0", "F1.1"]),
        Case(([["F0.0", "F0.1", "B0.0", "B0.1"], ["F1.0", "B1.1", "F1.1", "B1.0"]],),
             ["B0.0", "B1.1"]),
        Case(([["F0.0", "B0.0"], ["F1.0", "B1.0"], ["F2.0", "B2.0"]],), []),
    ),
    mistakes=(
        Mistake(lambda ranks: [row[0] for row in ranks],
                "These are the first actions of the ranks. Run the schedule: as long as any rank "
                "can do its next action, let it."),
        Mistake(lambda ranks: [],
                "This schedule does not run to its end. Run it step by step: a rank waits as long "
                "as what its next action needs is not done."),
    ),
    without=("validate", "simulate"),
)

INTERLEAVING = Question(
    id="pipeline/interleaving",
    title="What interleaving gains",
    function="interleaving_gain",
    parameters=("p", "m", "v"),
    answer=Number(),
    points=4,
    cases=(
        Case((4, 8, 2), 22 / 19),
        Case((8, 8, 4), 20 / 13),
        Case((4, 4, 1), 1.0),
        Case((1, 6, 3), 1.0),
    ),
    mistakes=(
        Mistake(lambda p, m, v: (m + (p - 1) / v) / (m + p - 1),
                "This is the new time over the old one. A gain is the old time over the new one."),
        Mistake(lambda p, m, v: v,
                "The bubble shrinks v times, but the useful work does not: compare whole steps."),
        Mistake(lambda p, m, v: 1 / v,
                "This is how the bubble shrinks; compare the times of whole steps."),
        Mistake(lambda p, m, v: (m + p - 1) / (m / v + (p - 1) / v),
                "Each stage is v times thinner, but each rank has v of them: the useful work of a "
                "rank stays the same, only the bubble shrinks."),
        Mistake(lambda p, m, v: (m + p - 1) / (m + p / v - 1),
                "Off by one: the bubble is (p - 1)/v slots, not p/v - 1."),
        Mistake(lambda p, m, v: ((p - 1) / (m + p - 1)) / (((p - 1) / v) / (m + (p - 1) / v))
                if p > 1 else 1.0,
                "This compares the bubble fractions; compare the times of whole steps."),
        Mistake(lambda p, m, v: (p - 1) * (1 - 1 / v),
                "This is the time saved, in slots; asked for is how many times faster a step is."),
        Mistake(lambda p, m, v: (m + p - 1) / (m + (p - 1) / v) - 1,
                "This is what is gained on top of 1; a step that is no faster has gain 1."),
        Mistake(lambda p, m, v: (m + p - 1) / (v * m + p - 1),
                "The v stages of a rank together take as long as its one stage before: one of them "
                "takes 1/v of a slot."),
    ),
)

QUESTIONS = (BUBBLE, ORDER, PEAK, DEADLOCK, INTERLEAVING)
