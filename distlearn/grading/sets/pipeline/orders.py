"""Notebook pipeline_2: schedules written from their rule, with their time and memory."""

from __future__ import annotations

from collections.abc import Callable

from distlearn.grading.answer import Actions, Count, Number
from distlearn.grading.array_answer import Array
from distlearn.grading.question import Case, Mistake, Question


def _interleaved(
    p: int, m: int, v: int, r: int, warmup: int, *, group: int = 0, backward_chunks: int = -1,
    stage: Callable[[int], int] | None = None,
) -> list[str]:
    """Interleaved 1F1B with what people change by mistake."""
    place = stage or (lambda chunk: chunk * p + r)
    size = group or p
    turns = [(c, i) for g in range(0, m, size) for c in range(v)
             for i in range(g, min(g + size, m))]
    forward = [f"F{place(c)}.{i}" for c, i in turns]
    back = [f"B{place(v - 1 - c if backward_chunks < 0 else c)}.{i}" for c, i in turns]
    warmup = max(0, min(warmup, m * v))
    actions = forward[:warmup]
    for f, b in zip(forward[warmup:], back, strict=False):
        actions += (f, b)
    return actions + back[m * v - warmup :]


def _zb(p: int, m: int, r: int, warmup: int, held: int) -> list[str]:
    """ZB-H1 with another warm-up or another number of weight gradients held back."""
    actions = [f"F{r}.{i}" for i in range(min(warmup, m))]
    for i in range(m):
        if warmup + i < m:
            actions.append(f"F{r}.{warmup + i}")
        actions.append(f"I{r}.{i}")
        if i >= held:
            actions.append(f"W{r}.{i - held}")
    return actions + [f"W{r}.{i}" for i in range(max(m - held, 0), m)]


def _over(p: int, bound: int, kept: Callable[[int], int], paired: Callable[[int], int]
          ) -> list[list[int]]:
    return [[x, paired(x), kept(x) - bound] for x in range(p) if kept(x) > bound]


WARMUP = Question(
    id="pipeline/warmup",
    title="The interleaved warm-up",
    function="warmup_forwards",
    parameters=("p", "m", "v", "r"),
    answer=Count(),
    points=3,
    sheet=2,
    cases=(
        Case((4, 8, 2, 0), 10),
        Case((4, 8, 2, 3), 4),
        Case((2, 4, 3, 1), 4),
        Case((4, 4, 2, 0), 8),
    ),
    mistakes=(
        Mistake(lambda p, m, v, r: min((p - 1 - r) + (v - 1) * p, m * v),
                "The way to the last rank counts twice: the forward travels there, and the "
                "gradient has to come back."),
        Mistake(lambda p, m, v, r: min(2 * (p - 1 - r), m * v),
                "Before the last chunk gets its first input, a rank runs p microbatches on each of "
                "the v - 1 chunks before it."),
        Mistake(lambda p, m, v, r: 2 * (p - 1 - r) + (v - 1) * p,
                "There are no more than m v forwards: with few microbatches the warm-up is all of "
                "them."),
        Mistake(lambda p, m, v, r: min(2 * r + (v - 1) * p, m * v),
                "The ranks are the wrong way round: rank 0 warms up longest."),
        Mistake(lambda p, m, v, r: min(2 * (p - 1 - r) + v * p, m * v),
                "One group too many: the last chunk's first forward already belongs to the steady "
                "state."),
        Mistake(lambda p, m, v, r: min(2 * (p - 1 - r) + (v - 1) * p + 1, m * v),
                "Off by one: the first forward of the steady state is not part of the warm-up."),
    ),
)

INTERLEAVED = Question(
    id="pipeline/interleaved",
    title="The interleaved order of one rank",
    function="order_interleaved",
    parameters=("p", "m", "v", "r"),
    answer=Actions(),
    points=5,
    sheet=2,
    cases=(
        Case((2, 2, 2, 1), ["F1.0", "F1.1", "F3.0", "B3.0", "F3.1", "B3.1", "B1.0", "B1.1"]),
        Case((2, 4, 2, 1), ["F1.0", "F1.1", "F3.0", "B3.0", "F3.1", "B3.1", "F1.2", "B1.0",
                            "F1.3", "B1.1", "F3.2", "B3.2", "F3.3", "B3.3", "B1.2", "B1.3"]),
        Case((2, 2, 2, 0), ["F0.0", "F0.1", "F2.0", "F2.1", "B2.0", "B2.1", "B0.0", "B0.1"]),
        Case((1, 2, 2, 0), ["F0.0", "F1.0", "B1.0", "F0.1", "B0.0", "F1.1", "B1.1", "B0.1"]),
    ),
    mistakes=(
        Mistake(lambda p, m, v, r: _interleaved(p, m, v, r, 2 * (p - 1 - r) + (v - 1) * p,
                                                backward_chunks=1),
                "Backwards go through the chunks from the last one to the first."),
        Mistake(lambda p, m, v, r: _interleaved(p, m, v, r, 2 * (p - 1 - r) + (v - 1) * p,
                                                stage=lambda chunk: r * v + chunk),
                "The stages of rank r are r, r + p, r + 2p, ...: not v neighbours."),
        Mistake(lambda p, m, v, r: _interleaved(p, m, v, r, 2 * (p - 1 - r) + (v - 1) * p,
                                                group=m),
                "Microbatches take turns in groups of p, not all m on one chunk: that is "
                "breadth-first."),
        Mistake(lambda p, m, v, r: _interleaved(p, m, v, r, p - 1 - r),
                "This is the warm-up of plain 1F1B; see the question before."),
    ),
    without=("build", "definition"),
)

ZB_H1 = Question(
    id="pipeline/zb_h1",
    title="The ZB-H1 order of one rank",
    function="order_zb_h1",
    parameters=("p", "m", "r"),
    answer=Actions(),
    points=5,
    sheet=2,
    cases=(
        Case((3, 3, 1), ["F1.0", "F1.1", "I1.0", "F1.2", "I1.1", "W1.0", "I1.2", "W1.1", "W1.2"]),
        Case((3, 3, 0), ["F0.0", "F0.1", "F0.2", "I0.0", "W0.0", "I0.1", "W0.1", "I0.2", "W0.2"]),
        Case((2, 3, 1), ["F1.0", "I1.0", "F1.1", "I1.1", "W1.0", "F1.2", "I1.2", "W1.1", "W1.2"]),
        Case((4, 2, 3), ["F3.0", "I3.0", "F3.1", "I3.1", "W3.0", "W3.1"]),
    ),
    mistakes=(
        Mistake(lambda p, m, r: _zb(p, m, r, p - 1 - r, 0),
                "Every W follows its I at once here. Rank r holds back r of them: they fill the "
                "gaps at the end."),
        Mistake(lambda p, m, r: _zb(p, m, r, p - 1 - r, p - 1 - r),
                "The wrong way round: rank 0 holds back nothing, the last rank p - 1."),
        Mistake(lambda p, m, r: _zb(p, m, r, p - 1 - r, r + 1),
                "One W too many is held back: rank r holds back r, not r + 1."),
        Mistake(lambda p, m, r: _zb(p, m, r, p - 1 - r, m),
                "All W wait until the end here. That keeps all m activations; hold back only r."),
        Mistake(lambda p, m, r: _zb(p, m, r, p - r, r),
                "One forward too many before the first I: the warm-up is that of 1F1B, p - 1 - r."),
        Mistake(lambda p, m, r: [x.replace("I", "B") for x in _zb(p, m, r, p - 1 - r, m)
                                 if x[0] != "W"],
                "This is 1F1B. ZB-H1 splits each B into I and W."),
    ),
    without=("build", "definition"),
)

ZB_BUBBLE = Question(
    id="pipeline/zb_bubble",
    title="The bubble of ZB-H1",
    function="zb_h1_idle",
    parameters=("p", "m", "F", "I", "W"),
    answer=Number(),
    points=3,
    sheet=2,
    cases=(
        Case((4, 8, 1.0, 1.0, 1.0), 3.0),
        Case((4, 8, 3.0, 2.0, 1.0), 12.0),
        Case((3, 6, 2.0, 3.0, 1.5), 7.0),
        Case((1, 4, 1.0, 1.0, 1.0), 0.0),
    ),
    mistakes=(
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + I + W),
                "This is the bubble of 1F1B, where W is part of the backward. In ZB-H1, W fills "
                "some of it."),
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + I),
                "A rank waits for F + I on the way there and back, but meanwhile it runs the "
                "p - 1 W that it or the ranks before it held back."),
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + I - 2 * W),
                "This is ZB-H2, which keeps up to 2p - 1 activations. H1 has room for half as "
                "many W in the bubble."),
        Mistake(lambda p, m, F, I, W: p * (F + I - W),
                "Off by one: there are p - 1 hops from the first rank to the last."),
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + I - W) / (
            m * (F + I + W) + (p - 1) * (F + I - W)),
                "This is a share of the step; asked for is the idle time itself."),
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + 2 * I - W),
                "I counts once: B is already split into I and W here."),
        Mistake(lambda p, m, F, I, W: (p - 1) * (F + I + W) / 3,
                "A third of 1F1B's bubble is right only if F, I and W take equally long."),
    ),
)

MEMORY = Question(
    id="pipeline/memory",
    title="The memory of interleaving",
    function="interleaved_bytes",
    parameters=("p", "m", "v", "r", "model"),
    answer=Number(),
    points=4,
    sheet=2,
    cases=(
        Case((4, 8, 2, 0, 64.0), 88.0),
        Case((4, 8, 2, 3, 64.0), 40.0),
        Case((2, 8, 3, 0, 6.0), 7.0),
        Case((4, 4, 2, 0, 64.0), 64.0),
    ),
    mistakes=(
        Mistake(lambda p, m, v, r, model: model / p * min(2 * (p - 1 - r) + (v - 1) * p + 1, m * v),
                "A thin stage has 1/(p v) of the model's layers, not 1/p."),
        Mistake(lambda p, m, v, r, model: model / (p * v) * min(2 * (p - 1 - r) + (v - 1) * p,
                                                                m * v),
                "Off by one: after the warm-up comes one more forward before the first backward."),
        Mistake(lambda p, m, v, r, model: model / p * min(p - r, m),
                "This is plain 1F1B, p - r activations. Interleaving warms up longer."),
        Mistake(lambda p, m, v, r, model: model / (p * v) * (2 * (p - 1 - r) + (v - 1) * p + 1),
                "A rank has m v forwards in all, and cannot keep more activations than that."),
        Mistake(lambda p, m, v, r, model: min(2 * (p - 1 - r) + (v - 1) * p + 1, m * v),
                "This is a number of thin stages; multiply by the bytes that one leaves behind."),
        Mistake(lambda p, m, v, r, model: model / (p * v) * min(2 * r + (v - 1) * p + 1, m * v),
                "The ranks are the wrong way round: rank 0 keeps most."),
    ),
)

BPIPE = Question(
    id="pipeline/bpipe",
    title="BPipe's pairs",
    function="bpipe_pairs",
    parameters=("p",),
    answer=Array(noun="a list of [rank, partner, number over the bound]"),
    points=4,
    sheet=2,
    cases=(
        Case((4,), [[0, 3, 1]]),
        Case((8,), [[0, 7, 3], [1, 6, 2], [2, 5, 1]]),
        Case((7,), [[0, 6, 2], [1, 5, 1]]),
        Case((2,), []),
    ),
    mistakes=(
        Mistake(lambda p: _over(p, (p + 2) // 2, lambda x: p - x, lambda x: p - 1 - x),
                "The bound is rounded up: ceil((p + 2)/2)."),
        Mistake(lambda p: _over(p, -(-(p + 2) // 2), lambda x: p - x, lambda x: p - x),
                "Off by one: the partner of rank x is p - 1 - x, so that 0 goes with the last."),
        Mistake(lambda p: _over(p, -(-(p + 2) // 2), lambda x: p - x, lambda x: (x + p // 2) % p),
                "Rank x is paired with p - 1 - x, the fullest with the emptiest, not with the rank "
                "half a pipeline away."),
        Mistake(lambda p: _over(p, -(-(p + 1) // 2), lambda x: p - x, lambda x: p - 1 - x),
                "A pair keeps p + 1 together, half of it each; and one more slot is needed to swap "
                "through. So the bound is ceil((p + 2)/2)."),
        Mistake(lambda p: _over(p, -(-(p + 2) // 2), lambda x: p - 1 - x, lambda x: p - 1 - x),
                "In 1F1B rank x keeps p - x activations: its warm-up of p - 1 - x and one more."),
        Mistake(lambda p: [[x, p - 1 - x, max(0, p - x - -(-(p + 2) // 2))]
                           for x in range(p // 2)],
                "Only ranks that are over the bound evict; leave out the others."),
    ),
)

QUESTIONS = (WARMUP, INTERLEAVED, ZB_H1, ZB_BUBBLE, MEMORY, BPIPE)
