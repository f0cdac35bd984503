"""Every schedule, executed: gradients, weights, bytes held and bytes sent against references."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distlearn.nn import SGD, Adam, Array, Grads, Model, ModelConfig, accumulate, add_gradients
from distlearn.nn import build as build_model
from distlearn.pipeline import NAMES, Schedule, build, execute, simulate, stage_costs

P, M = 4, 8
LIMIT_S = 120
VARIED_V = ("interleaved_1f1b", "breadth_first", "interleaved_zero_bubble", "gis", "gis_h")
ASYNCHRONOUS = ("pipedream", "pipedream_2bw", "pipemare", "xpipe", "amdp")
SIX = ("1f1b", "zb_v", "bpipe", "seq1f1b", "dualpipe", "mario")  # between processes too
SYNCHRONOUS = [name for name in NAMES if name not in ASYNCHRONOUS]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("1f1b", {"m": 2}), ("bpipe", {"p": 6, "m": 12}), ("gis", {"v": 2, "offload": 2}),
    ("chimera", {"method": "forward_doubling"}), ("chimera", {"method": "backward_halving"}),
    ("chimera", {"directions": 4}), ("mario", {"base": "dualpipe"}), ("mario", {"base": "zb_h1"}),
    ("seq1f1b", {"slices": 4}), ("interleaved_1f1b", {"v": 3}), ("hanayo", {"waves": 1}),
]


def gpt(tied: bool = False) -> Model:
    return build_model(ModelConfig(layers=12, hidden=8, heads=4, vocab=11, seq=4, tied=tied))


def schedule_of(name: str, **options: Any) -> Schedule:
    size = {"p": P, "m": M, "v": 2 if name in VARIED_V else None, **options}
    return build(name, **size)


def batch_for(schedule: Schedule, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    ids, targets = rng.integers(0, 11, (2, schedule.m * 2, 4))
    targets[0, 1:3] = -100  # rows that do not count: microbatches of unequal numbers of targets
    return ids, targets


def one_device(schedule: Schedule, model: Model, batch: tuple[Array, Array]
               ) -> tuple[list[float], Grads]:
    """Losses and gradients of the whole model, each stage's summed in the schedule's own order."""
    params = model.init(0, np.float64)
    ids, targets = (x.reshape(schedule.m, -1, x.shape[1]) for x in batch)
    losses, gradients = [], []
    for i in range(schedule.m):
        loss, saved = model.forward_loss(params, ids[i], targets[i])
        losses.append(loss)
        gradients.append(model.backward_loss(params, saved, 1 / schedule.m))
    total: Grads = {}
    for stage, module in enumerate(model.split(schedule.stages)):
        copies: dict[int, Grads] = {}
        for row in schedule.ranks:
            for action in (part for whole in row for part in whole.parts):
                kind, s, i = action[:3]
                if s == stage and kind in "BW" and not action.slice:
                    copy = copies.setdefault((schedule.direction or (0,) * schedule.m)[i], {})
                    add_gradients(copy, {name: gradients[i][name] for name in module.shapes()})
        for _, copy in sorted(copies.items()):
            add_gradients(total, copy)
    return losses, total


def check(schedule: Schedule, engine: str = "virtual", lengths: tuple[int, ...] | None = None
          ) -> None:
    model, batch = gpt(), batch_for(schedule)
    done = execute(schedule, model, batch, engine, lengths=lengths, timeout=LIMIT_S)
    losses, gradients = one_device(schedule, model, batch)
    assert list(done.gradients) == list(gradients) == list(model.shapes())
    for name, expected in gradients.items():
        if schedule.slices == 1:
            assert np.array_equal(done.gradients[name], expected), name
        else:
            error = np.abs(done.gradients[name] - expected).max()
            assert error <= 1e-12 * np.abs(expected).max(), name
    np.testing.assert_allclose(done.losses, losses, rtol=0 if schedule.slices == 1 else 1e-12)
    check_bytes(schedule, model, batch, done, lengths)


def check_bytes(schedule: Schedule, model: Model, batch: tuple[Array, Array], done: Any,
                lengths: tuple[int, ...] | None = None) -> None:
    timeline = simulate(schedule, stage_costs(schedule, model, batch, lengths=lengths))
    assert done.peak_bytes == timeline.peak_bytes
    assert done.peak_activations == timeline.peak_activations
    assert done.versions_kept == timeline.versions_kept
    assert done.link_bytes == {k: size for k, size in timeline.link_bytes.items() if size}
    for rank, sent in enumerate(done.sent_bytes):  # the ledger saw nothing else
        own = sum(size for (source, _), size in done.link_bytes.items() if source == rank)
        assert sent == own + done.summed_bytes[rank]
        assert done.curves[rank][-1][1] == 0  # all is freed in the end


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_gradients_and_bytes_of_every_synchronous_schedule(name: str) -> None:
    check(schedule_of(name))


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_options(name: str, options: dict[str, Any]) -> None:
    check(schedule_of(name, **options))


@pytest.mark.parametrize(("name", "lengths"), [("seq1f1b", (2, 1, 1)), ("terapipe", (1, 3))])
def test_slices_of_unequal_length(name: str, lengths: tuple[int, ...]) -> None:
    check(schedule_of(name, p=2, m=2, slices=len(lengths)), lengths=lengths)


def by_version_rule(schedule: Schedule, model: Model, batch: tuple[Array, Array], rule: Any
                    ) -> Grads:
    """Weights after all updates, on one device: each stage's F and B read the table's versions.

    An action is done in simulated time. A forward whose version is not there reads a prediction
    made once for that version: the newest weights, and the last change again for each missing step.
    """
    modules, params = model.split(schedule.stages), model.init(0, np.float64)
    updates, m = len(schedule.steps[0]), schedule.m
    first = [{name: params[name] for name in module.shapes()} for module in modules]
    history, states = [[w] for w in first], [rule.init(w) for w in first]
    ids, targets = (x.reshape(m, -1, x.shape[1]) for x in batch)
    predicted: dict[tuple[int, int], Grads] = {}
    values: dict[tuple[str, int, int], Array] = {}
    saved: dict[tuple[int, int], Any] = {}
    sums: dict[tuple[int, int, int], Grads] = {}
    counts: dict[tuple[int, int], int] = {}
    places = {action: (r, k) for r, row in enumerate(schedule.ranks) for k, action in
              enumerate(row)}
    for event in sorted(simulate(schedule).events, key=lambda e: (e.start, e.end)):
        kind, s, i = event.action
        r, k = places[event.action]
        version, newest = schedule.versions[r][k], len(history[s]) - 1
        if version > newest and (s, version) not in predicted:
            past = history[s][max(0, newest - 1)]
            predicted[s, version] = {name: w + (version - newest) * (w - past[name])
                                     for name, w in history[s][newest].items()}
        weights = (predicted[s, version] if kind == "F" and (s, version) in predicted
                   else history[s][version])
        if kind == "F":
            x = ids[i] if s == 0 else values["F", s - 1, i]
            values["F", s, i], saved[s, i] = modules[s].forward(weights, x)
            continue
        if s == schedule.stages - 1:
            _, kept = model.loss.forward(values["F", s, i], targets[i])
            dy = model.loss.backward(kept, updates / m)
        else:
            dy = values["B", s + 1, i]
        values["B", s, i], gradient = modules[s].backward(weights, saved[s, i], dy)
        update = i * updates // m
        copy = schedule.direction[i] if schedule.direction else 0
        add_gradients(sums.setdefault((s, update, copy), {}), gradient)
        counts[s, update] = counts.get((s, update), 0) + 1
        if counts[s, update] == m // updates:
            total: Grads = {}
            for c in range(max(1, len(schedule.copies))):
                add_gradients(total, sums.get((s, update, c), {}))
            after = {name: w.copy() for name, w in history[s][-1].items()}
            rule.update(after, total, states[s])
            history[s].append(after)
    return {name: w for stage in history for name, w in stage[-1].items()}


@pytest.mark.parametrize(("name", "options"), [
    *((name, {}) for name in ASYNCHRONOUS), ("pipedream", {"vertical_sync": True}),
    ("xpipe", {"m": 2, "batches": 4}), ("pipedream_2bw", {"m": 4}),
], ids=str)
@pytest.mark.parametrize("rule", [SGD(lr=0.5), Adam(lr=0.01)], ids=["sgd", "adam"])
def test_weights_of_every_asynchronous_schedule(name: str, options: dict[str, Any], rule: Any
                                                ) -> None:
    schedule, model = schedule_of(name, **options), gpt()
    batch = batch_for(schedule)
    done = execute(schedule, model, batch, optimizer=rule)
    expected = by_version_rule(schedule, model, batch, rule)
    for key, weights in expected.items():
        np.testing.assert_allclose(done.weights[key], weights, rtol=1e-12, atol=1e-14)
    check_bytes(schedule, model, batch, done)


@pytest.mark.parametrize("name", ["zb_h1", "zb_v", "gis"])
def test_a_state_that_grows_in_its_backward_counts_too(name: str) -> None:
    schedule = schedule_of(name)
    model = build_model(ModelConfig(layers=12, hidden=16, heads=1, vocab=11, seq=4, tied=False))
    batch = batch_for(schedule)
    costs = stage_costs(schedule, model, batch)
    before, after = (costs.per_stage(key, schedule.stages)
                     for key in ("activation", "activation_after_I"))
    assert after[0] > before[0]  # one head, short sequences: few probabilities to be freed
    check_bytes(schedule, model, batch, execute(schedule, model, batch))


def test_tied_weights_get_the_gradients_of_both_ends() -> None:
    schedule, model = schedule_of("zb_h1"), gpt(tied=True)
    ids, targets = batch_for(schedule)
    done = execute(schedule, model, (ids, targets), optimizer=SGD(lr=0.1))
    params = model.init(0, np.float64)
    _, expected = accumulate(model, params, ids, targets, schedule.m)
    for name, gradient in expected.items():
        error = np.abs(done.gradients[name] - gradient).max()
        assert error <= 1e-12 * np.abs(gradient).max()
    first, last = done.stage_weights[0]["wte.weight"], done.stage_weights[-1]["wte.weight"]
    assert np.array_equal(first, last)
    np.testing.assert_allclose(first, params["wte.weight"] - 0.1 * expected["wte.weight"],
                               rtol=1e-12, atol=1e-15)


def test_a_stage_keeps_what_a_count_by_hand_says() -> None:
    """Of b·s tokens of width h, 8 bytes a value, for each block of a stage in the middle.

    F: two norms' inputs and two numbers a row each, the inputs of four linear layers (h, h, h, 4h),
    of the attention (3h, and a·s probabilities a token) and of the GELU (4h). After I: the linear
    layers' inputs and output gradients (3h, h, 4h, h), the norms' gradients (4h in all).
    """
    schedule, model = schedule_of("zb_h1"), gpt()
    costs = stage_costs(schedule, model, batch_for(schedule))
    tokens, h, a, s, blocks = 2 * 4, 8, 4, 4, 3
    kept = blocks * 8 * tokens * (2 * h + 4 + 7 * h + 3 * h + a * s + 4 * h)
    after = blocks * 8 * (tokens * (7 * h + 9 * h) + 4 * h)
    assert costs.per_stage("activation", 4)[1] == kept
    assert costs.per_stage("activation_after_I", 4)[1] == after


@pytest.mark.parametrize(("schedule", "batch", "options", "message"), [
    (schedule_of("gpipe", p=13), (26, 4), {}, "13 stages .* the model has 12"),
    (schedule_of("gpipe"), (9, 4), {}, "9 samples does not divide into the schedule's m=8"),
    (schedule_of("seq1f1b", slices=3), (8, 4), {}, "4 tokens .* slices=3"),
    (schedule_of("seq1f1b"), (8, 4), {"lengths": (3, 2)}, "slices=2 .* the 4 tokens .*3, 2"),
    (schedule_of("seq1f1b"), (8, 4), {"lengths": (4, 0)}, "whole numbers above 0"),
    (schedule_of("seq1f1b"), (8, 4), {"lengths": (2.0, 2)}, "whole numbers above 0"),
    (schedule_of("gpipe"), (8, 4), {"cut": "model"}, "cut must be one of sequence, batch"),
    (schedule_of("pipedream"), (8, 4), {}, "pass optimizer="),
    (schedule_of("mario", base="seq1f1b"), (8, 4), {}, "recomputes slices"),
], ids=["layers", "batch", "slices", "sum", "empty", "fraction", "cut", "optimizer", "recompute"])
def test_what_cannot_run_is_refused(schedule: Schedule, batch: tuple[int, int],
                                    options: dict[str, Any], message: str) -> None:
    ids = np.ones(batch, int)
    with pytest.raises(ValueError, match=message):
        execute(schedule, gpt(), (ids, ids), **options)


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_six_schedules_under_mpiexec() -> None:
    script = Path(__file__).with_name("six_schedules.py")
    done = subprocess.run([sys.executable, "-c", "from distlearn.cli import main; main()",
                           "mpirun", "-n", "4", str(script)],
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"{name} checked" for name in SIX * 4)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("name", SIX)
def test_six_schedules_over_gloo(name: str) -> None:
    check(schedule_of(name), "torch")
