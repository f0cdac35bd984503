"""The stepper shows what the virtual engine recorded, on both faces, to the letter."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distlearn.comm import ALGORITHMS, Communicator, Recording, run
from distlearn.hardware import collective_bytes, collective_messages
from distlearn.plots import collective_svg, describe_collective, trace
from distlearn.plots.collective_svg import COLLECTIVE_STYLE, least_width
from distlearn.plots.collective_trace import OPERATIONS, Trace, cell_in_words, ranks_in
from distlearn.widgets import CollectiveStepper
from distlearn.widgets.collective_stepper import call_of, holdings_of, numbers_of
from distlearn.widgets.face import without_style
from tests.widgets.pages import Scripts, scripts
from tests.widgets.test_faces import Reader

SETTINGS = [(operation, algorithm, p) for operation in OPERATIONS
            for algorithm in ALGORITHMS[operation] for p in range(2, 9)
            if not (algorithm == "hierarchical" and operation != "all_reduce" and p % 2)]


def shown(operation: str, algorithm: str, p: int) -> Trace:
    return trace(operation, algorithm, p, -(-p // 2) if algorithm == "hierarchical" else None)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """What the page gets, through JSON."""
    found: dict[str, Any] = json.loads(json.dumps(CollectiveStepper().static_data()))
    return found


@pytest.mark.parametrize(("operation", "algorithm"), sorted({s[:2] for s in SETTINGS}))
def test_the_page_has_what_another_run_of_the_engine_records(
    data: dict[str, Any], operation: str, algorithm: str
) -> None:
    """Recorded again with other values: powers of three, in which each rank's share is a digit."""
    for p in (p for o, a, p in SETTINGS if (o, a) == (operation, algorithm)):
        short = data["traces"][operation][algorithm][str(p)]
        recording = Recording()

        async def program(comm: Communicator) -> Any:
            n = 840 // comm.size if operation in ("all_gather", "gather") else 840
            brings = np.full(n, 3**comm.rank)
            absent = operation in ("broadcast", "scatter") and comm.rank
            result = await getattr(comm, operation)(
                None if absent else brings, algorithm=algorithm)
            return result, comm.ledger.total(operation)

        per_node = -(-p // 2) if algorithm == "hierarchical" else None
        done = run(program, p, ranks_per_node=per_node, recording=recording)
        record = recording.collectives[0]
        for state, text in zip(record.steps, short["held"], strict=True):
            codes = [int(text[i:i + 2], 16) for i in range(0, len(text), 2)]
            for r, held in enumerate(state.held):
                for c in range(short["chunks"]):
                    digits = sum(3**rank for rank in ranks_in(codes[r * short["chunks"] + c]))
                    assert digits == (held[c][0] if c in held else 0)
        for state, step in zip(record.steps[1:], short["messages"], strict=True):
            assert [[*m, n * 8] for *m, n in step] == [
                [m.source, m.dest, [*m.chunks], m.reduce, n]
                for m, n in zip(state.messages, state.nbytes, strict=True)]
        assert [8 * sent for sent in short["sent"]] == [entry.bytes_sent for _, entry in done]


@pytest.mark.parametrize(("operation", "algorithm", "p"), SETTINGS)
def test_the_last_step_is_the_result_and_bytes_are_the_formulas(
    operation: str, algorithm: str, p: int
) -> None:
    one = shown(operation, algorithm, p)
    everyone = (1 << p) - 1
    reduces = operation in ("all_reduce", "reduce_scatter", "reduce")
    for c in range(one.chunks):
        owner = 0 if operation in ("broadcast", "scatter") else c
        assert one.wanted(c) == (everyone if reduces else 1 << owner)
    assert len(one.complete(one.steps)) == sum(map(len, one.final))
    assert len(one.complete(0)) < sum(map(len, one.final))
    per_node = -(-p // 2) if algorithm == "hierarchical" else None
    formula = (operation, 840, p, algorithm)
    for r in range(p):
        assert one.sent_by(r, one.steps) == one.sent[r] == collective_bytes(
            *formula, rank=r, devices_per_node=per_node)
        sends = [m for step in one.messages for m in step if m.source == r]
        assert len(sends) == collective_messages(*formula, rank=r, devices_per_node=per_node)
    assert one.formula_bytes == max(one.sent)


def test_ring_of_four_as_in_the_textbook() -> None:
    """Patarasuk and Yuan 2009: 2 (p - 1) steps, each rank sends one chunk to the right in each."""
    one = trace("all_reduce", "ring", 4)
    assert one.steps == 6
    assert one.sent == (1260,) * 4  # 2 * 3/4 of 840
    for step in range(1, 7):
        assert all(m.dest == (m.source + 1) % 4 and len(m.chunks) == 1
                   for m in one.messages[step - 1])
        assert len(one.complete(step)) == 4 * max(0, step - 2)


def test_what_cannot_be_shown_is_refused() -> None:
    for arguments, message in [
        (("barrier", "dissemination", 4), "operation must be one of all_reduce"),
        (("all_gather", "recursive_doubling", 4), "algorithm of all_gather must be one of ring"),
        (("all_reduce", "ring", 9), "p must be from 2 to 8 ranks; got p=9"),
        (("all_reduce", "ring", 4, 7), "step must be from 0 to 6; got 7"),
    ]:
        with pytest.raises(ValueError, match=message):
            CollectiveStepper(*arguments)
    with pytest.raises(ValueError, match="step must be from 0 to 6; got step=7"):
        collective_svg(trace("all_reduce", "ring", 4), 7)
    with pytest.raises(ValueError, match="width must be at least 324 px; got width=300"):
        collective_svg(trace("all_reduce", "ring", 4), 0, 300)


@pytest.fixture(scope="module")
def page() -> Iterator[Scripts]:
    with scripts(CollectiveStepper()) as found:
        yield found


def test_javascript_draws_and_says_the_same(page: Scripts) -> None:
    chance = random.Random(3)
    states = [(setting, step) for setting in SETTINGS
              for step in range(shown(*setting).steps + 1)]
    assert len(states) > 500
    for (operation, algorithm, p), step in states:
        one = shown(operation, algorithm, p)
        least = least_width(one)
        width = max(least, chance.choice([least, 330, 600, 760, 900, 1200]))
        found = f"data.traces.{operation}.{algorithm}[{p}]"
        words = page.call(f"""(function (one) {{
            return [leastWidth(one), describeCollective(one, {step}), numbersOfStep(one, {step}),
                    holdingsOf(one, {step}), planCall(one),
                    collectiveSvg(one, {step}, {width}, data.look)];
        }})(readTrace({found}))""")
        svg = without_style(collective_svg(one, step, width))
        assert words == [least, describe_collective(one, step), numbers_of(one, step),
                         holdings_of(one, step), call_of(one),
                         svg.replace(f"<style>{COLLECTIVE_STYLE}</style>\n", "")]


def test_static_face_is_well_formed_and_asks_for_nothing() -> None:
    text = CollectiveStepper().static_html()
    read = Reader(text)
    assert read.roots == 1
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not [a for a in read.attributes if a[1] in ("src", "href") or a[1].startswith("on")]
    assert len(text) < 250_000
    assert "<b>rank 3</b> has sent 0 bytes; chunk 0 on rank 3: from rank 3; " in text
    labels = re.findall(r'<label class="dl-control"><span><b>(\w+)</b>', text)
    assert labels == ["operation", "algorithm", "ranks", "step"]
    assert text.count('aria-label="') >= 8
    same = [re.sub(r"dl-\d+", "dl-N", CollectiveStepper().static_html()) for _ in range(2)]
    assert same[0] == same[1]


def test_live_face_follows_its_controls() -> None:
    stepper = CollectiveStepper()
    operation, algorithm, ranks = stepper.children[0].children
    play, step = stepper.children[1].children
    picture = stepper.children[2]
    play.value = 3
    assert step.value == 3
    assert "Step 3 of 6" in picture.value and "630 B" in picture.value
    assert stepper.status == describe_collective(trace("all_reduce", "ring", 4), 3)
    ranks.value = 8
    assert (step.value, step.max, play.max) == (0, 14, 14)
    algorithm.value = "halving_doubling"
    assert step.max == 6
    operation.value = "all_gather"
    assert (algorithm.value, step.max) == ("halving_doubling", 3)
    assert tuple(algorithm.options) == ALGORITHMS["all_gather"]
    operation.value = "gather"
    assert algorithm.value == "tree"
    operation.value, algorithm.value, ranks.value = "all_gather", "hierarchical", 5
    assert "needs the same number of ranks on every node" in picture.value
    assert "<svg" not in picture.value and step.max == 0
    assert "needs the same number" in stepper.status
    ranks.value = 6
    assert "<svg" in picture.value and step.max == 3
    stepper.go(1)
    assert stepper.status.startswith("Step 1 of 3")
    bundle = stepper._repr_mimebundle_()
    assert {"text/html", "application/vnd.jupyter.widget-view+json"} <= set(bundle)


def test_cells_in_words() -> None:
    one = trace("scatter", "tree", 4)
    assert cell_in_words(one, 0, 1, 1) == "chunk 1 on rank 1: nothing"
    assert cell_in_words(one, 2, 1, 1) == "chunk 1 on rank 1: from rank 0, complete"
