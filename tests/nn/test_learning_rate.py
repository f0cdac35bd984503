"""Learning-rate schedules against DeepSpeed's records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from distlearn.nn.learning_rate import (
    Schedule,
    one_cycle,
    warmup,
    warmup_cosine,
    warmup_cosine_ratio,
    warmup_decay,
)
from tests.nn.training_data import FOLDER, read

RECORDS: list[dict[str, Any]] = json.loads((FOLDER / "ds_lr.json").read_text())


def ours(record: dict[str, Any]) -> Schedule:
    a = record["args"]
    if record["schedule"] == "OneCycle":
        return one_cycle(
            a["cycle_min_lr"], a["cycle_max_lr"], a["cycle_first_step_size"],
            decay_steps=a["decay_step_size"], decay_rate=a["decay_lr_rate"],
        )  # fmt: skip
    steps, shape = a["warmup_num_steps"], a["warmup_type"]
    if record["schedule"] == "WarmupLR":
        return warmup(a["warmup_max_lr"], steps, a["warmup_min_lr"], shape)
    if record["schedule"] == "WarmupDecayLR":
        total = a["total_num_steps"]
        return warmup_decay(a["warmup_max_lr"], steps, total, a["warmup_min_lr"], shape)
    return warmup_cosine_ratio(
        record["base_lr"], steps, a["total_num_steps"], a["warmup_min_ratio"],
        a["cos_min_ratio"], shape,
    )  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["schedule"])
def test_deepspeed(record: dict[str, Any]) -> None:
    rate, wanted = ours(record), record["lr_after_step"]
    assert [rate(step) for step in range(len(wanted))] == pytest.approx(wanted, rel=1e-12, abs=0)


def test_the_rates_of_the_recorded_trajectories() -> None:
    for name, peak, decay in (
        ("traj/04_llama_gqa_a_adamw_acc2_clip1.0_f64.npz", 0.01, 8),
        ("traj/03_gpt_tied_odd_sgd_mom_acc2_clip0.25_f32.npz", 0.05, 6),
    ):
        wanted = read(name)[0]["lr"]
        rate = warmup_cosine(peak, warmup=3, decay_steps=decay)
        assert [rate(step) for step in range(len(wanted))] == pytest.approx(wanted)


def test_errors_name_the_rule() -> None:
    with pytest.raises(ValueError, match="shape must be log or linear; got 'square'"):
        warmup(0.1, 5, shape="square")
    with pytest.raises(ValueError, match="warmup must be a whole number >= 1; got 0"):
        warmup_cosine(0.1, 0, 5)
