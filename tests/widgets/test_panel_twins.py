"""The explorers' JavaScript says what Python says, to the letter, for whatever a reader sets."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from py_mini_racer import MiniRacer

from distlearn.hardware import device
from distlearn.kernels import GEMM, cuda, float32, kernel, launch
from distlearn.kernels.ascend import CubeCore, Tiling, gemm_program
from distlearn.kernels.intrinsics import load2, load4
from distlearn.widgets import (
    BankConflictExplorer,
    CoalescingExplorer,
    CubeTimeline,
    OccupancyExplorer,
    RooflineExplorer,
    ThreadIndexExplorer,
    WarpStepper,
)
from distlearn.widgets.bank_conflict_explorer import place
from distlearn.widgets.cube_records import FORGOTTEN, STEPS, TILES
from distlearn.widgets.face import asset
from distlearn.widgets.ladder_work import RUNGS, line_of
from distlearn.widgets.lane_patterns import PATTERNS, lane_elements
from distlearn.widgets.occupancy_explorer import GPUS, MOST_SHARED
from distlearn.widgets.panel import Panel

Setting = dict[str, Any]


def assert_twins(panel: Panel, view: str, settings: list[Setting]) -> None:
    """All settings in one call of the script: starting it costs more than they do."""
    engine = MiniRacer()
    for name in panel.scripts:
        engine.eval(asset(f"js/{name}"))
    engine.eval(f"var read, data = {json.dumps(panel.static_data())};")
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


@kernel
def banks(places, each, out):  # type: ignore[no-untyped-def]
    s = cuda.shared.array(9600, float32)
    i = cuda.threadIdx.x
    for k in range(i, 9600, 32):
        s[k] = k
    cuda.syncthreads()
    if each == 1:
        out[i] = s[places[i]]
    elif each == 2:
        out[i] = load2(s, 2 * places[i]).x
    else:
        out[i] = load4(s, 4 * places[i]).x


def test_bank_conflicts() -> None:
    settings = some(200, lambda chance: {
        **lanes(chance), "item": chance.choice((4, 8, 16)), "padding": chance.randint(0, 4),
        "swizzle": chance.random() < 0.4})
    assert_twins(BankConflictExplorer(), "bankConflictView(setting)", settings)
    for setting in settings[:6]:  # and the executor counts the same
        each = setting["item"] // 4
        places = np.array([place(setting, e) for e in lane_elements(setting)], np.int32)
        if places.max() * each >= 9600 - each:
            continue
        report = launch(banks, 1, 32, places, each, np.zeros(32, np.float32))
        explorer = BankConflictExplorer()
        explorer.setting = setting
        assert report.counters["shared_load_wavefronts"] == int(explorer.view().numbers[0][1])


@kernel
def whereabouts(out):  # type: ignore[no-untyped-def]
    x, y, z = cuda.grid(3)
    out[z, y, x, 0] = cuda.laneid
    out[z, y, x, 1] = cuda.blockIdx.y
    out[z, y, x, 2] = cuda.threadIdx.y


def grids(chance: random.Random) -> Setting:
    setting: Setting = {}
    for name, most in (("blockDim", (32, 8, 4)), ("gridDim", (8, 3, 2)), ("array", (256, 24, 8))):
        axes = chance.randint(1, 3)
        setting |= {f"{name}.{a}": chance.randint(1, most[i]) if i < axes else 1
                    for i, a in enumerate("xyz")}
    setting["thread"] = [chance.randrange(setting[f"blockDim.{a}"] * setting[f"gridDim.{a}"])
                         for a in "xyz"]
    return setting


def test_thread_indices() -> None:
    settings = some(300, grids)
    assert_twins(ThreadIndexExplorer(), "threadIndexView(setting)", settings)
    for setting in settings[:6]:
        block, grid = (tuple(setting[f"{n}.{a}"] for a in "xyz") for n in ("blockDim", "gridDim"))
        out = np.zeros((*(b * g for b, g in zip(block[::-1], grid[::-1], strict=True)), 3), int)
        launch(whereabouts, grid, block, out)
        x, y, z = setting["thread"]
        lane, outer, inner = out[z, y, x]
        explorer = ThreadIndexExplorer()
        explorer.setting = setting
        numbers = {name: value for name, value, _ in explorer.view().numbers}
        assert numbers["warp, lane"].endswith(f", {lane}")
        if ", " in numbers["threadIdx"]:
            assert numbers["blockIdx"].strip("()").split(", ")[1] == str(outer)
            assert numbers["threadIdx"].strip("()").split(", ")[1] == str(inner)


def test_occupancy() -> None:
    assert_twins(OccupancyExplorer(), "occupancyView(data.sms, setting)", some(120, lambda chance: {
        "device": chance.choice(GPUS), "threads": 32 * chance.randint(1, 32),
        "registers": chance.randint(0, 255),
        "shared": chance.randint(0, chance.choice((0, 20_000, MOST_SHARED)))}))


def test_warp_steps() -> None:
    stepper = WarpStepper()
    settings = [{"kernel": name, "step": step, "lane": (7 * step + 3) % 32}
                for name, one in stepper.recordings.items() for step in range(len(one.steps))]
    view = ("warpView(read = read || (Object.keys(data.recordings).forEach("
            "function (n) { unpackRecording(data.recordings[n]); }), data.recordings), "
            "setting)")
    assert_twins(stepper, f"({view})", settings)


def test_cube_timelines() -> None:
    timeline = CubeTimeline()
    assert_twins(timeline, "cubeView(data, setting)", some(60, lambda chance: {
        "tile": chance.choice(TILES[:3]), "step": STEPS[0], "l1": chance.random() < 0.5,
        "l0": chance.random() < 0.5, "forget": chance.choice(list(FORGOTTEN)),
        "event": chance.randint(0, 3)}))
    for l1, l0 in itertools.product((True, False), repeat=2):  # as the core itself runs
        core = CubeCore()
        A, B = np.zeros((256, 512), np.float16), np.zeros((512, 256), np.float16)
        gemm_program(core, A, B, np.zeros((256, 256), np.float32),
                     Tiling(128, 256, 64, 256, 1 + l1, 1 + l0), [(0, 0), (128, 0)])
        ran = core.run(compute=False)
        shown = CubeTimeline("128 x 256", l1_double=l1, l0_double=l0).view().numbers
        assert (shown[0][1], shown[2][1]) == (f"{ran.makespan:,}", ran.bottleneck)


def products(chance: random.Random) -> Setting:
    dtype = chance.choice(list(RUNGS))
    sizes = {name: 128 * chance.randint(1, chance.choice((8, 128))) for name in "MNK"}
    return {"device": chance.choice(GPUS), "dtype": dtype, "rung": chance.choice(RUNGS[dtype]),
            **sizes}


def test_rooflines() -> None:
    assert_twins(RooflineExplorer(), "rooflineView(data, setting)", some(200, products))
    for name, M, N, K in (("naive_rows", 128, 3072, 6144), ("register_1d", 1024, 256, 128)):
        ours = line_of(name, "float32").predict(M, N, K, device("T4"))
        ladder = GEMM[name].predict(M, N, K, "T4")  # from launches of that very size
        assert ours.gflops == pytest.approx(ladder.gflops, rel=1e-9)
        assert (ours.bound, ours.flops) == (ladder.bound, ladder.flops)
