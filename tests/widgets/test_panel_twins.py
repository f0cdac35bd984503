"""The explorers' JavaScript says what Python says, to the letter, for whatever a reader sets."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from py_mini_racer import MiniRacer

from distlearn.kernels import cuda, kernel, launch
from distlearn.widgets import CoalescingExplorer
from distlearn.widgets.face import asset
from distlearn.widgets.lane_patterns import PATTERNS, lane_elements
from distlearn.widgets.panel import Panel

Setting = dict[str, Any]


def assert_twins(panel: Panel, view: str, settings: list[Setting]) -> None:
    """All settings in one call of the script: starting it costs more than they do."""
    engine = MiniRacer()
    for name in panel.scripts:
        engine.eval(asset(f"js/{name}"))
    engine.eval(f"var data = {json.dumps(panel.static_data())};")
    shown = json.loads(str(engine.eval(
        f"JSON.stringify({json.dumps(settings)}.map(function (setting) {{ var v = {view};"
        " return [v.numbers, v.words, v.message || '']; }))")))
    engine.close()
    for setting, (numbers, words, message) in zip(settings, shown, strict=True):
        panel.setting = setting
        now = panel.view()
        assert [list(row) for row in now.numbers] == numbers, setting
        assert (now.words, now.message) == (words, message), setting


def some(count: int, make: Callable[[random.Random], Setting]) -> list[Setting]:
    chance = random.Random(7)
    return [make(chance) for _ in range(count)]


def lanes(chance: random.Random) -> Setting:
    return {"pattern": chance.choice(list(PATTERNS)), "stride": chance.randint(0, 33),
            "offset": chance.randint(0, 32), "lane": chance.randint(0, 31),
            "moved": {str(chance.randint(0, 31)): chance.randint(0, 2047)
                      for _ in range(chance.choice((0, 0, 3)))}}


@kernel
def gather(values, places, out):  # type: ignore[no-untyped-def]
    i = cuda.threadIdx.x
    out[i] = values[places[i]]


def test_coalescing() -> None:
    settings = some(200, lambda chance: {**lanes(chance), "item": chance.choice((1, 2, 4, 8, 16))})
    assert_twins(CoalescingExplorer(), "coalescingView(setting)", settings)
    for setting in settings[:20]:  # and the executor counts the same
        if setting["item"] > 8:
            continue
        values = np.zeros(2048, f"u{setting['item']}")
        report = launch(gather, 1, 32, values, np.array(lane_elements(setting), np.int32),
                        np.zeros(32, values.dtype))
        explorer = CoalescingExplorer()
        explorer.setting = setting
        sectors, lines = (int(row[1]) for row in explorer.view().numbers[:2])
        counted = report.counters
        assert (counted["global_load_sectors"], counted["global_load_lines"]) == (
            sectors + 4, lines + 1)  # the places are 32 ints in a row
