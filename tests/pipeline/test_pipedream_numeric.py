"""The version rule, applied on one device, gives the weights of PipeDream's own optimizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distlearn.pipeline import Schedule, build, simulate

DATA = Path(__file__).parents[1] / "data" / "schedules" / "PipeDream.json"
RECORDS = [record for record in json.loads(DATA.read_text()) if "numeric" in record]


def train(schedule: Schedule, numeric: dict[str, Any]) -> tuple[list[float], list[np.ndarray]]:
    """Run the schedule's actions in time order; each reads the version that the schedule names."""
    history = [[np.array(weights)] for weights in numeric["W0"]]  # history[stage][version]
    data, target = np.array(numeric["X"]), np.array(numeric["Y"])
    last = schedule.p - 1
    inputs: dict[tuple[int, int], np.ndarray] = {}
    outputs: dict[tuple[int, int], np.ndarray] = {}
    gradients: dict[tuple[int, int], np.ndarray] = {}
    losses: dict[int, float] = {}
    version = {
        action: schedule.versions[r][k]
        for r, actions in enumerate(schedule.ranks)
        for k, action in enumerate(actions)
    }
    for _, action, _, _ in sorted(simulate(schedule).events, key=lambda e: (e.start, e.end)):
        kind, s, i = action
        weights = history[s][version[action]]
        if kind == "F":
            inputs[s, i] = data[i] if s == 0 else np.tanh(outputs[s - 1, i])
            outputs[s, i] = inputs[s, i] @ weights.T
            if s == last:
                losses[i] = float(np.mean((outputs[s, i] - target[i]) ** 2))
        else:
            if s == last:
                dy = 2 * (outputs[s, i] - target[i]) / target[i].size
            else:
                dy = gradients[s + 1, i] * (1 - np.tanh(outputs[s, i]) ** 2)
            gradients[s, i] = dy @ weights
            history[s].append(history[s][-1] - numeric["lr"] * (dy.T @ inputs[s, i]))
    return [losses[i] for i in range(schedule.m)], [versions[-1] for versions in history]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"p{r['p']}-m{r['m']}")
def test_losses_and_weights_equal_the_peers(record: dict[str, Any]) -> None:
    losses, weights = train(build("pipedream", p=record["p"], m=record["m"]), record["numeric"])
    np.testing.assert_allclose(losses, record["numeric"]["losses"], rtol=1e-12)
    np.testing.assert_allclose(weights, record["numeric"]["W_final"], rtol=1e-12, atol=1e-14)
