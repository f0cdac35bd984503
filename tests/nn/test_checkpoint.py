"""Checkpoints: what is saved is loaded, and anything damaged is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from distlearn.nn import (
    AdamW,
    CheckpointError,
    ModelConfig,
    bfloat16,
    build,
    load,
    save,
    train_step,
)
from distlearn.nn.checkpoint import DTYPES

STATE = {
    "wte": np.arange(12, dtype=np.float32).reshape(3, 4),
    "low": np.ones((2, 2), bfloat16),
    "empty": np.zeros((0, 3)),
    "step": np.array(7),
}


@settings(max_examples=10)
@given(st.data())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kinds = st.sampled_from([d for d in DTYPES.values() if d != bfloat16])
    names = st.text(min_size=1, max_size=8).filter(lambda n: n != "__metadata__")
    shapes = array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    state = data.draw(st.dictionaries(names, arrays(kinds, shapes), max_size=3))
    path = tmp_path_factory.mktemp("c") / "state.safetensors"
    words = {"step": 3, "note": "é\n"}
    save(path, state, words)
    got, said = load(path, state)
    assert said == words
    assert list(got) == list(state)
    for name, array in state.items():
        assert got[name].dtype == array.dtype
        assert got[name].tobytes() == array.tobytes()
        assert got[name].flags.writeable


def test_other_programs_read_it(tmp_path: Path) -> None:
    reader = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    path = tmp_path / "state.safetensors"
    save(path, {"w": STATE["wte"], "n": STATE["step"]})
    got = reader.load_file(path)
    assert (got["w"] == STATE["wte"]).all()
    assert got["n"] == 7


def test_every_flipped_bit_and_every_cut_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    save(path, STATE, {"step": 1})
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="too long"):
        load(path)


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    save(path, STATE)
    whole = path.read_bytes()
    last = bytearray(whole)
    last[-1] ^= 1
    path.write_bytes(last)
    with pytest.raises(CheckpointError, match="array 'step' is damaged"):
        load(path)
    path.write_bytes(whole[:-3])
    with pytest.raises(CheckpointError, match="is cut short: 61 bytes of arrays instead of 64"):
        load(path)
    path.write_bytes(whole)
    with pytest.raises(CheckpointError, match=r"missing arrays \['other'\], unexpected.*'step'"):
        load(path, {"other": (1,), **{k: v for k, v in STATE.items() if k != "step"}})
    with pytest.raises(CheckpointError, match=r"'wte' has shape \(3, 4\), not \(4, 3\)"):
        load(path, {**STATE, "wte": (4, 3)})
    with pytest.raises(CheckpointError, match="'wte' has type float32, not float64"):
        load(path, {**STATE, "wte": np.zeros((3, 4))})
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="may be called '__metadata__'"):
        save(path, {"__metadata__": np.zeros(2)})
    with pytest.raises(ValueError, match="array 'c' has type complex128"):
        save(path, {"c": np.ones(1, complex)})
    assert path.read_bytes() == whole


def test_a_failing_save_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.safetensors"
    save(path, STATE)
    whole = path.read_bytes()

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save(path, {"wte": np.zeros(1000)})
    assert path.read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_training_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Four steps in one go, and two, saved, loaded, two more: the same bits."""
    model = build(ModelConfig(1, 8, 2, vocab=11, seq=4))
    rule = AdamW(lr=0.01)
    ids = np.random.default_rng(0).integers(0, 11, (4, 2, 4))

    def go(params: dict[str, Any], state: Any, steps: range) -> None:
        for step in steps:
            train_step(model, params, rule, state, ids[step], ids[step], max_norm=1.0)

    straight = model.init(seed=0)
    go(straight, rule.init(straight), range(4))
    params = model.init(seed=0)
    state = rule.init(params)
    go(params, state, range(2))
    path = tmp_path / "state.safetensors"
    save(path, {**prefixed("weight", params), **prefixed("state", state.arrays())},
         {"step": state.step})  # fmt: skip
    held, words = load(path)
    params = unprefixed("weight", held)
    state = rule.init(params)
    state.restore(unprefixed("state", held), words["step"])
    go(params, state, range(2, 4))
    assert all((params[name] == straight[name]).all() for name in straight)


def prefixed(prefix: str, held: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}/{name}": value for name, value in held.items()}


def unprefixed(prefix: str, held: dict[str, Any]) -> dict[str, Any]:
    start = f"{prefix}/"
    return {k.removeprefix(start): v for k, v in held.items() if k.startswith(start)}
