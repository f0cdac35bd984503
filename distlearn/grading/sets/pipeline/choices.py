"""Notebook pipeline_3: outdated weights, a choice under a memory cap, a schedule of one's own."""

from __future__ import annotations

from distlearn.grading.answer import Number
from distlearn.grading.array_answer import Array
from distlearn.grading.design_answer import Choice, Design
from distlearn.grading.question import Case, Mistake, Question


def _bar(p: int, m: int, limit: int | None = None) -> dict[str, object]:
    """1F1B takes 3(m + p - 1); at most 2(p - 1) of that can be saved: any, half, all of it."""
    slow, gain = 3 * (m + p - 1), 2 * (p - 1)
    return {"ranks": p, "microbatches": m, "limit": p if limit is None else limit,
            "bars": [slow - 1, slow - gain // 2, slow - gain]}


def _two_bw(w: float, lr: float, targets: list[list[float]], late: int, summed: bool = False
            ) -> list[float]:
    """Weights after each batch, with a gradient ``late`` versions old."""
    weights = [w]
    for batch, items in enumerate(targets):
        read = weights[max(0, batch - late)]
        gradient = sum(read - x for x in items) / (1 if summed else len(items))
        weights.append(weights[-1] - lr * gradient)
    return weights[1:]


def options(p: int, batch: int, overhead: float) -> list[tuple[float, float, str, int]]:
    """(time, samples kept by the fullest rank, name, m) of all that can be chosen."""
    found = []
    for m in (m for m in range(1, batch + 1) if batch % m == 0):
        b, c = batch / m, overhead
        found.append(((m + p - 1) * (2 * c + 3 * b), min(p, m) * b, "1f1b", m))
        found.append((m * 3 * (c + b) + (2 * (p - 1) - (min(m, p) - 1)) * (c + b),
                      min(p, m) * b, "zb_h1", m))
        if m % p == 0:
            found.append(((4 * m + p - 1) * (2 * c + 0.75 * b), min(5 * p - 1, 4 * m) * b / 4,
                          "interleaved_1f1b", m))
    return found


def _chosen(p: int, batch: int, overhead: float, limit: float, *, least: str = "time",
            names: tuple[str, ...] = ("1f1b", "zb_h1", "interleaved_1f1b")) -> tuple[str, int]:
    """The best option by what people look at."""
    fits = [x for x in options(p, batch, overhead) if x[1] <= limit + 1e-9 and x[2] in names]
    keys = {"time": lambda x: (x[0], x[1]), "memory": lambda x: (x[1], x[0]),
            "most": lambda x: (-x[3], x[0])}
    best = min(fits, key=keys[least])
    return best[2], best[3]


VERSIONS = Question(
    id="pipeline/versions",
    title="Which weights a minibatch sees",
    function="weight_versions",
    parameters=("p", "m", "s"),
    answer=Array(noun="a list with one version per minibatch"),
    points=3,
    sheet=3,
    cases=(
        Case((4, 6, 0), [0, 0, 0, 0, 1, 2]),
        Case((4, 6, 2), [0, 0, 1, 2, 3, 4]),
        Case((4, 6, 3), [0, 1, 2, 3, 4, 5]),
        Case((4, 2, 0), [0, 0]),
    ),
    mistakes=(
        Mistake(lambda p, m, s: [max(0, i - s) for i in range(m)],
                "The stages are the wrong way round: the last stage has had every update, stage 0 "
                "misses most."),
        Mistake(lambda p, m, s: [max(0, i - (p - s)) for i in range(m)],
                "Off by one: when minibatch i enters stage s, p - 1 - s others are on their way, "
                "and all before them have been used for an update."),
        Mistake(lambda p, m, s: [i - (p - 1 - s) for i in range(m)],
                "There is no version before 0: the first minibatches use the initial weights."),
        Mistake(lambda p, m, s: list(range(m)),
                "These are the versions without a pipeline. Here minibatches enter before the "
                "updates of those ahead of them are done."),
        Mistake(lambda p, m, s: [max(0, i - (p - 1)) for i in range(m)],
                "This is vertical sync, where all stages use what stage 0 has."),
        Mistake(lambda p, m, s: [min(i, p - 1 - s) for i in range(m)],
                "This is how many updates are missing; asked for is the version that is used."),
    ),
)

STASH = Question(
    id="pipeline/stash",
    title="What stashing weighs",
    function="weight_bytes",
    parameters=("p", "s", "weights", "scheme"),
    answer=Number(),
    points=3,
    sheet=3,
    cases=(
        Case((4, 0, 100.0, "pipedream"), 400.0),
        Case((4, 2, 100.0, "pipedream"), 200.0),
        Case((4, 3, 100.0, "vertical_sync"), 400.0),
        Case((4, 1, 100.0, "2bw"), 200.0),
        Case((4, 1, 100.0, "flush"), 100.0),
    ),
    mistakes=(
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": p - 1 - s, "vertical_sync": p - 1, "2bw": 1, "flush": 0}[scheme],
                "The newest version counts as well: forwards use it."),
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": s + 1, "vertical_sync": p, "2bw": 2, "flush": 1}[scheme],
                "The stages are the wrong way round: stage 0 has most minibatches in flight, and "
                "so most versions."),
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": p, "vertical_sync": p, "2bw": 2, "flush": 1}[scheme],
                "Without vertical sync a stage keeps only as many versions as it has minibatches "
                "in flight: p - s."),
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": p - s, "vertical_sync": p - s, "2bw": 2, "flush": 1}[scheme],
                "With vertical sync every stage has to keep what stage 0 reads: p versions."),
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": p - s, "vertical_sync": p, "2bw": p - s, "flush": 1}[scheme],
                "2BW needs two versions, whatever the stage: that is its point."),
        Mistake(lambda p, s, weights, scheme: weights * {
            "pipedream": p - s, "vertical_sync": p, "2bw": 2, "flush": 2}[scheme],
                "With a flush, all microbatches of a step use one version."),
    ),
)

TWO_BW = Question(
    id="pipeline/two_bw",
    title="Training with weights one step old",
    function="train_2bw",
    parameters=("w", "lr", "batches"),
    answer=Array(noun="a list with the weight after each batch"),
    points=4,
    sheet=3,
    cases=(
        Case((0.0, 0.5, [[1.0, 3.0], [1.0, 3.0], [2.0, 2.0]]), [1.0, 2.0, 2.5]),
        Case((8.0, 1.0, [[4.0], [4.0], [4.0], [4.0]]), [4.0, 0.0, 0.0, 4.0]),
        Case((1.0, 0.25, [[5.0, 1.0, 3.0, 7.0]]), [1.75]),
        Case((2.0, 0.1, []), []),
    ),
    mistakes=(
        Mistake(lambda w, lr, b: _two_bw(w, lr, b, 0),
                "This is training without delay. In 2BW batch b uses the version before the "
                "newest, max(0, b - 1)."),
        Mistake(lambda w, lr, b: _two_bw(w, lr, b, 2),
                "Two steps late; 2BW is late by one."),
        Mistake(lambda w, lr, b: _two_bw(w, lr, b, 1, summed=True),
                "The gradient of a batch is the mean over its microbatches, not the sum."),
        Mistake(lambda w, lr, b: [w, *_two_bw(w, lr, b, 1)],
                "The initial weight is not asked for: one weight per batch."),
        Mistake(lambda w, lr, b: [2 * w - x for x in _two_bw(w, lr, b, 1)],
                "The step goes uphill: subtract the gradient."),
        Mistake(lambda w, lr, b: _two_bw(w, lr, b, len(b)),
                "Every gradient is taken at the initial weight here."),
    ),
)

CHOOSE = Question(
    id="pipeline/choose",
    title="Choose under a memory cap",
    function="choose",
    parameters=("p", "batch", "overhead", "limit"),
    answer=Choice(),
    points=5,
    sheet=3,
    cases=(
        Case((4, 16, 0.25, 16.0), ("zb_h1", 8)),
        Case((4, 16, 0.0, 16.0), ("interleaved_1f1b", 16)),
        Case((4, 16, 0.0, 4.5), ("zb_h1", 16)),
        Case((3, 12, 0.5, 5.0), ("1f1b", 12)),
        Case((4, 16, 4.0, 7.0), ("1f1b", 16)),
    ),
    mistakes=(
        Mistake(lambda p, batch, c, limit: _chosen(p, batch, c, 1e18),
                "This is the fastest of all, but it does not fit."),
        Mistake(lambda p, batch, c, limit: _chosen(p, batch, 0.0, limit),
                "This leaves out the overhead of every F, B, I and W."),
        Mistake(lambda p, batch, c, limit: _chosen(p, batch, c, limit, least="most"),
                "More microbatches make the bubble smaller, but each of them pays the overhead."),
        Mistake(lambda p, batch, c, limit: _chosen(p, batch, c, limit, least="memory"),
                "This is the smallest in memory; asked for is the fastest that fits."),
        Mistake(lambda p, batch, c, limit: _chosen(p, batch, c, limit, names=("1f1b",)),
                "This is the best of 1F1B; look at the other schedules as well."),
    ),
)

DESIGN = Question(
    id="pipeline/design",
    title="Beat 1F1B",
    function="design",
    parameters=("p", "m"),
    answer=Design(),
    points=6,
    sheet=3,
    cases=(
        Case((3, 4), _bar(3, 4)),
        Case((4, 6), _bar(4, 6)),
        Case((4, 8), _bar(4, 8)),
    ),
    without=("build", "definition"),
)

QUESTIONS = (VERSIONS, STASH, TWO_BW, CHOOSE, DESIGN)
