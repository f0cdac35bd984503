"""The collective stepper: choose a collective, an algorithm, ranks; go through it in steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any, ClassVar

import ipywidgets

from distlearn.comm import ALGORITHMS
from distlearn.plots import Trace, collective_svg, describe_collective, trace
from distlearn.plots.collective_svg import COLLECTIVE_ATTRIBUTES, COLLECTIVE_STYLE
from distlearn.plots.collective_trace import (
    BUFFER_BYTES,
    MAX_RANKS,
    OPERATIONS,
    cell_in_words,
    step_in_words,
)
from distlearn.plots.look import ATTRIBUTES
from distlearn.plots.numbers import number
from distlearn.widgets.face import Face, asset, face_style, without_style

_WIDTH = 760


class CollectiveStepper(Face):
    """A collective, one step after the other: who sends what, and what each rank holds.

    All that is shown was recorded from the virtual engine. Hierarchical algorithms run on two
    nodes, the first half of the ranks on node 0.

    Parameters
    ----------
    operation : str
        One of ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``broadcast``, ``reduce``,
        ``scatter``, ``gather``; the root, where there is one, is rank 0.
    algorithm : str
        One of ``distlearn.comm.ALGORITHMS[operation]``.
    p : int
        Ranks, 2 to 8.
    step : int
        The step to begin with; 0 is the start.

    Raises
    ------
    ValueError
        For a value outside the ranges, naming it. What an algorithm itself refuses, for example
        nodes of different size, is shown in place of the picture.

    Examples
    --------
    >>> stepper = CollectiveStepper("all_reduce", "ring", p=4)
    >>> stepper.go(1)
    >>> stepper.status[:64]
    'Step 1 of 6: rank 0 sends chunk 3 to rank 1, added there; rank 1'
    """

    label = "Collective, step by step"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "copy_text.js", "player.js", "collective_svg.js", "collective_stepper.js")
    mount = "mountCollectiveStepper"

    def __init__(self, operation: str = "all_reduce", algorithm: str = "ring", p: int = 4,
                 step: int = 0) -> None:
        one, _ = _recorded(operation, algorithm, p)
        if not isinstance(step, int) or not 0 <= step <= (one.steps if one else 0):
            raise ValueError(f"step must be from 0 to {one.steps if one else 0}; got {step!r}")
        self._operation = ipywidgets.Dropdown(
            options=OPERATIONS, value=operation, description="operation")
        self._algorithm = ipywidgets.Dropdown(
            options=ALGORITHMS[operation], value=algorithm, description="algorithm")
        self._p = ipywidgets.IntSlider(value=p, min=2, max=MAX_RANKS, description="ranks")
        self._step = ipywidgets.IntSlider(value=step, min=0, max=one.steps if one else 0,
                                          description="step")
        self._play = ipywidgets.Play(value=step, min=0, max=self._step.max, interval=1500)
        ipywidgets.link((self._play, "value"), (self._step, "value"))
        self._shown = ipywidgets.HTML()
        for control in (self._operation, self._algorithm, self._p, self._step):
            control.style.description_width = "6em"
            control.layout.width = "22em"
        self._operation.observe(self._new_operation, "value")
        self._algorithm.observe(self._new_collective, "value")
        self._p.observe(self._new_collective, "value")
        self._step.observe(self._draw, "value")
        controls = ipywidgets.HBox([self._operation, self._algorithm, self._p])
        controls.layout.flex_flow = "row wrap"
        super().__init__([controls, ipywidgets.HBox([self._play, self._step]), self._shown])
        self._draw()

    @property
    def status(self) -> str:
        """What is shown, in words."""
        one, refusal = self._now()
        return refusal if one is None else describe_collective(one, self._step.value)

    def go(self, step: int) -> None:
        """Show another step."""
        self._step.value = step

    def _now(self) -> tuple[Trace | None, str]:
        return _recorded(self._operation.value, self._algorithm.value, self._p.value)

    def _new_operation(self, change: Any) -> None:
        names, before = ALGORITHMS[self._operation.value], self._algorithm.value
        # new options choose the first of them, for a moment: that is nothing to draw
        self._algorithm.unobserve(self._new_collective, "value")
        self._algorithm.options = names
        self._algorithm.value = before if before in names else names[0]
        self._algorithm.observe(self._new_collective, "value")
        self._new_collective()

    def _new_collective(self, change: Any = None) -> None:
        one, _ = self._now()
        for control in (self._play, self._step):
            control.value = 0
            control.max = one.steps if one else 0
        self._draw()

    def _draw(self, change: Any = None) -> None:
        self._shown.value = (
            f'<div class="dl-face"><style>{face_style()}{_style()}</style>'
            f"{self._result(copy=False)}</div>")

    def _result(self, *, copy: bool) -> str:
        """Picture, numbers and words, or the refusal."""
        one, refusal = self._now()
        hidden = "" if refusal else " hidden"
        message = f'<div class="dl-message" role="alert"{hidden}>{escape(refusal)}</div>'
        picture = numbers = words = holdings = call = ""
        if one is not None:
            step = self._step.value
            picture = _bare(collective_svg(one, step, _WIDTH))
            numbers, words = numbers_of(one, step), step_in_words(one, step)
            holdings, call = holdings_of(one, step), call_of(one)
        hint = ('<p class="dl-pointed" aria-live="polite">The left and right arrow keys go through '
                "the steps. Point at a chunk to read what it holds.</p>" if copy else "")
        button = '<button type="button">copy</button>' if copy else ""
        return (
            f'{message}<div class="dl-result"{"" if one else " hidden"}>'
            '<div class="dl-scroll" tabindex="0" role="group" aria-label="What every rank holds; '
            f'the left and right arrow keys go through the steps">{picture}</div>{hint}'
            f'<div class="dl-numbers">{numbers}</div><p class="dl-words">{words}</p>'
            f'<div class="dl-call"><code>{escape(call)}</code>{button}</div>'
            "<details><summary>What every rank holds, in words</summary>"
            f'<div class="dl-orders" tabindex="0">{holdings}</div></details></div>')

    def static_body(self, ident: str) -> str:
        """Controls and the step that they show now."""
        names = ALGORITHMS[self._operation.value]
        step, most = self._step.value, self._step.max
        buttons = "".join(
            f'<button type="button" data-go="{name}" aria-label="{words}">{name}</button>'
            for name, words in (("first", "first step"), ("back", "back one step"),
                                ("play", "play the steps"), ("next", "next step"),
                                ("last", "last step")))
        return (
            f'<style>{_style()}</style><div class="dl-controls">'
            f'{_select("operation", OPERATIONS, self._operation.value)}'
            f'{_select("algorithm", names, self._algorithm.value)}'
            '<label class="dl-control"><span><b>ranks</b></span>'
            f'<input type="range" name="p" min="2" max="{MAX_RANKS}" step="1" '
            f'value="{self._p.value}" autocomplete="off"><output>{self._p.value}</output></label>'
            '</div><div class="dl-steps" role="group" aria-label="Steps">'
            f'{buttons}<label class="dl-control"><span><b>step</b></span>'
            f'<input type="range" name="step" min="0" max="{most}" step="1" value="{step}" '
            f'autocomplete="off"><output>{step}</output></label></div>\n'
            f"<div>{self._result(copy=True)}</div>\n"
            '<p class="dl-unseen" role="status"></p>')

    def static_data(self) -> dict[str, Any]:
        """Every recorded step of every setting, and the looks of the drawing."""
        return {
            "look": {"attributes": ATTRIBUTES, "collective": COLLECTIVE_ATTRIBUTES},
            "algorithms": {name: ALGORITHMS[name] for name in OPERATIONS},
            "traces": _all_traces(),
        }


def numbers_of(one: Trace, step: int) -> str:
    """The four numbers below the picture, as HTML."""
    now = max(one.sent_by(r, step) for r in range(one.p))
    most = max(one.sent)
    parts = sum(map(len, one.final))
    rows = (
        ("step", f"{step} of {one.steps}", "all messages of a step travel at once"),
        ("sent so far", f"{now} B", (f"by the busiest rank: {_share(now)} of the buffer, "
                                    f"which has {BUFFER_BYTES} B")),
        ("sent in all", f"{most} B", (f"{_share(most)} of the buffer; the formula gives "
                                     f"{one.formula_bytes} B")),
        ("result in place", f"{len(one.complete(step))} of {parts}", "parts, over all ranks"),
    )
    return "<dl>" + "".join(
        f'<div><dt>{name}</dt><dd class="dl-value">{value}</dd><dd>{note}</dd></div>'
        for name, value, note in rows) + "</dl>"


def holdings_of(one: Trace, step: int) -> str:
    """All cells in words, a paragraph per rank, as HTML."""
    return "".join(
        f"<p><b>rank {r}</b> has sent {one.sent_by(r, step)} bytes; "
        + "; ".join(cell_in_words(one, step, r, c) for c in range(one.chunks)) + "</p>"
        for r in range(one.p))


def call_of(one: Trace) -> str:
    """The library call that prints the same steps."""
    nodes = f", nodes={one.nodes}" if one.nodes[-1] else ""
    return f'print(plan("{one.operation}", "{one.algorithm}", size={one.p}{nodes}))'


def _share(nbytes: int) -> str:
    return number(nbytes / BUFFER_BYTES)


def _style() -> str:
    return COLLECTIVE_STYLE + asset("collective_stepper.css")


def _bare(svg: str) -> str:
    return without_style(svg).replace(f"<style>{COLLECTIVE_STYLE}</style>\n", "")


def _select(name: str, options: Sequence[str], value: str) -> str:
    rows = "".join(f'<option value="{key}"{" selected" if key == value else ""}>{key}</option>'
                   for key in options)
    return (f'<label class="dl-control"><span><b>{name}</b></span>'
            f'<select name="{name}" autocomplete="off">{rows}</select></label>')


@lru_cache(maxsize=512)
def _recorded(operation: str, algorithm: str, p: int) -> tuple[Trace | None, str]:
    """The trace of a setting, or the words in which the algorithm refuses it."""
    per_node = -(-p // 2) if algorithm == "hierarchical" else None
    try:
        return trace(operation, algorithm, p, per_node), ""
    except ValueError as error:
        if "needs the same number of ranks on every node" not in str(error):
            raise
        return None, str(error)


@lru_cache(maxsize=1)
def _all_traces() -> dict[str, Any]:
    """Operation -> algorithm -> p -> the steps in short, or the refusal."""
    return {operation: {algorithm: {p: _short(*_recorded(operation, algorithm, p))
                                    for p in range(2, MAX_RANKS + 1)}
                        for algorithm in ALGORITHMS[operation]}
            for operation in OPERATIONS}


def _short(one: Trace | None, refusal: str) -> dict[str, Any] | str:
    if one is None:
        return refusal
    return {
        "operation": one.operation, "algorithm": one.algorithm, "p": one.p, "nodes": one.nodes,
        "chunks": one.chunks, "final": one.final, "sent": one.sent, "formula": one.formula_bytes,
        "messages": [[[m.source, m.dest, m.chunks, int(m.reduce), nbytes]
                      for m, nbytes in zip(messages, sizes, strict=True)]
                     for messages, sizes in zip(one.messages, one.nbytes, strict=True)],
        "held": ["".join(f"{bits:02x}" for row in state for bits in row) for state in one.held],
    }
