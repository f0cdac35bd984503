"""Pictures of hardware: what they say is the catalogue's, every colour has a dark one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from distlearn import plots
from distlearn.hardware import Cluster, device, memory_hierarchy
from distlearn.kernels.ascend import CubeCore, Tiling, gemm_program

NODES = [Cluster("Ascend-910B2"), Cluster("A100-SXM4-80GB")]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for axes in figure.axes for text in axes.texts)


def test_threads_are_numbered_x_first_and_warps_have_colours() -> None:
    figure = plots.thread_grid((3, 2), (8, 8), (1, 0))
    (axes,) = figure.axes
    cells = {text.get_text(): text.get_position() for text in axes.texts}
    assert cells["9"][0] == pytest.approx(cells["1"][0])  # thread (1, 1) lies below (1, 0)
    assert cells["9"][1] > cells["1"][1]
    fills = [patch.get_facecolor() for patch in axes.patches[6:]]  # after the blocks
    assert len(fills) == 64 and len(set(fills)) == 2
    assert fills[31] == fills[0] != fills[32] == fills[63]


@pytest.mark.parametrize(("arguments", "message"), [
    (((9, 1), (8, 8), (0, 0)), "grid must be 1 to 8"),
    (((1, 1), (32, 1), (0, 0)), "block must be 1 to 16"),
    (((2, 2), (4, 4), (2, 0)), "chosen must be a block of the grid"),
])
def test_launches_that_cannot_be_drawn(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.thread_grid(*arguments)


@pytest.mark.parametrize(("name", "lanes", "threads"), [
    ("A100-SXM4-80GB", "6,912 lanes", "221,184 threads"),  # the A100 whitepaper, table 5
    ("V100-SXM2-32GB", "5,120 lanes", "163,840 threads"),
    ("RTX-A6000", "10,752 lanes", "129,024 threads"),
])
def test_sm_has_the_published_lanes(name: str, lanes: str, threads: str) -> None:
    figure = plots.multiprocessor(name)
    assert lanes in words(figure) and threads in words(figure)
    assert figure.get_label() == plots.multiprocessor_text(name)


def test_no_sm_in_an_ascend() -> None:
    with pytest.raises(ValueError, match="has no SMs"):
        plots.multiprocessor("Ascend-910B2")
    with pytest.raises(ValueError, match="has no AI cores"):
        plots.ai_core("A100-SXM4-80GB")


@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "Ascend-910B2", "T4"])
def test_bars_are_the_memories(name: str) -> None:
    figure = plots.memory_levels(name)
    sizes, speeds = figure.axes
    levels = memory_hierarchy(name)
    ends = [[bar.get_x() + bar.get_width() for bar in axes.patches] for axes in (sizes, speeds)]
    assert ends[0] == pytest.approx([level.total_bytes for level in levels if level.total_bytes])
    assert ends[1] == pytest.approx([level.bytes_per_s for level in levels if level.bytes_per_s])
    unknown = any(level.bytes_per_s is None for level in levels)
    assert ("not published" in words(figure)) == unknown
    assert figure.get_label() == plots.memory_levels_text(name)


def test_ai_core_has_its_buffers() -> None:
    figure = plots.ai_core("Ascend-910B2")
    for text in ("L1\n512 KiB", "L0A\n64 KiB", "L0C\n128 KiB", "UB\n192 KiB", "2 vector cores"):
        assert text in words(figure)
    assert "L0C\n256 KiB" in words(plots.ai_core("Ascend-910A"))


def test_a_mesh_has_a_link_for_each_pair() -> None:
    figure = plots.node_links(NODES)
    (axes,) = figure.axes
    assert len(axes.lines) == 28 + 8
    assert sum(isinstance(patch, Circle) for patch in axes.patches) == 8 + 8 + 1
    assert device("Ascend-910B2").link_bytes_per_s == 7 * 28e9  # what the label says of one link
    with pytest.raises(ValueError, match="two clusters"):
        plots.node_links(NODES[:1])


def test_bars_of_pipes_are_the_instructions() -> None:
    A = np.ones((32, 64), np.float16)
    core = CubeCore()
    gemm_program(core, A, A.T.copy(), np.zeros((32, 32), np.float32), Tiling(32, 32, 32, 32),
                 [(0, 0)])
    timeline = core.run()
    figure = plots.pipes({"both": timeline})
    (axes,) = figure.axes
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows == ["MTE2", "MTE1", "M", "FIXP"]
    for row, pipe in enumerate(rows):
        drawn = [path.vertices for path in axes.collections[2 * row + 1].get_paths()]
        wanted = [(e.start, e.end) for e in timeline.events if e.pipe == pipe]
        assert [(v[:, 0].min(), v[:, 0].max()) for v in drawn] == wanted
    assert f"{timeline.makespan:,} clocks" in figure.get_label()
    with pytest.raises(ValueError, match="at least one timeline"):
        plots.pipes({})


def test_every_colour_has_a_dark_one() -> None:
    figures = [plots.thread_grid(), plots.multiprocessor(), plots.memory_levels(),
               plots.ai_core(), plots.node_links(NODES)]
    for figure in figures:
        text = figure._repr_svg_()  # type: ignore[attr-defined]
        drawing, style = text.split("<style>")[0], text.split("<style>")[-1]
        for key, colour in re.findall(r"\b(fill|stroke): (#\w{6})", drawing):
            assert f'{key}: {colour}"' in style, f"{key} {colour} stays as it is in the dark"
