"""The wanted values of the gpu exercises agree with numpy and with distlearn's models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from distlearn.grading import Case, find
from distlearn.hardware import device, global_access, occupancy, roofline, shared_access
from distlearn.kernels.ascend import CubeCore, Tiling, gemm_program
from tests.exercises.material import hidden


def all_cases(name: str) -> Iterator[Case]:
    yield from find(name).cases
    yield from hidden()[name]


WANTED = {
    "gpu/map": lambda out, a, n: 3 * a + 1,
    "gpu/stride": lambda out, a, n: np.maximum(a, 0),
    "gpu/outer": lambda out, col, row: np.add.outer(col, row),
    "gpu/transpose": lambda out, a: a.T,
    "gpu/dot": lambda out, a, b, n: [a @ b],
    "gpu/mean_square": lambda out, x: (x * x).mean(axis=1),
    "gpu/conv": lambda out, a, w, n, m: np.convolve(a, w[::-1])[m - 1:],
    "gpu/scan": lambda out, a, n: np.cumsum(a),
    "gpu/matmul": lambda C, A, B: A @ B,
    "gpu/registers": lambda C, A, B: A @ B,
}


@pytest.mark.parametrize("name", WANTED)
def test_kernels_write_what_numpy_says(name: str) -> None:
    for case in all_cases(name):
        out, *rest = case.args[2:]
        arrays = [np.array(x) if isinstance(x, list) else x for x in rest]
        np.testing.assert_allclose(case.wanted["out"], WANTED[name](out, *arrays), rtol=1e-12)


def test_pairs_are_turned_as_complex_numbers_are() -> None:
    for case in all_cases("gpu/rotate"):
        a, _, c, s = case.args[3:]
        turned = (np.array(a[::2]) + 1j * np.array(a[1::2])) * complex(c, s)
        np.testing.assert_allclose(case.wanted["out"][::2], turned.real)
        np.testing.assert_allclose(case.wanted["out"][1::2], turned.imag)


def test_windows_and_blocks_have_numpys_maxima() -> None:
    for case in all_cases("gpu/window"):
        padded = np.pad(case.args[3], 1, constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3)
        np.testing.assert_array_equal(case.wanted["out"], windows.max(axis=1))
    for case in all_cases("gpu/race"):
        a = np.array(case.args[3])
        parts = [part - part.max() for part in np.split(a, range(64, len(a), 64))]
        np.testing.assert_array_equal(case.wanted["out"], np.concatenate(parts))


def test_bias_and_products() -> None:
    for case in all_cases("gpu/cuda_c"):
        x, bias, rows, columns = case.args[3:]
        wanted = np.maximum(np.reshape(x, (rows, columns)) + bias, 0)
        np.testing.assert_array_equal(np.reshape(case.wanted["out"], (rows, columns)), wanted)
    for case in all_cases("gpu/flags"):
        np.testing.assert_array_equal(case.wanted["out"], np.array(case.args[0]) @ case.args[1])


def test_sectors_and_wavefronts_equal_the_memory_model() -> None:
    for case in all_cases("gpu/sectors"):
        start, stride, size = case.args
        lanes = [start + lane * stride * size for lane in range(32)]
        assert case.wanted == global_access(lanes, size).sectors
    for case in all_cases("gpu/banks"):
        rows, width = case.args
        lanes = [4 * lane * width for lane in range(rows)]
        assert case.wanted == shared_access(lanes, 4).wavefronts


def test_occupancy_equals_the_calculator() -> None:
    for case in all_cases("gpu/occupancy"):
        threads, registers, shared = case.args
        held = occupancy(compute_capability="8.0", threads_per_block=threads,
                         registers_per_thread=registers, shared_bytes_per_block=shared)
        assert case.wanted == [held.blocks_per_sm, held.warps_per_sm]


def test_times_equal_the_roofline_of_a_device() -> None:
    a100 = device("A100-SXM4-80GB")
    for case in all_cases("gpu/roofline"):
        n, tile, peak, bandwidth = case.args
        scale = a100.peak_flops("float32", "vector") / peak
        spec = replace(a100, memory_bytes_per_s=bandwidth * scale)
        moved = 4 * (2 * n**3 / tile + n**2)
        assert case.wanted == pytest.approx(
            roofline(spec, 2 * n**3, moved, "float32", "vector").time_s * scale, rel=1e-12)


def test_the_program_of_queues_keeps_within_the_clocks() -> None:
    """The library's own pipeline of the same steps is as fast as the questions ask for."""
    for case in all_cases("gpu/flags"):
        A, B = (np.array(x, np.float16) for x in case.args)
        m, n = A.shape[0], B.shape[1]
        core = CubeCore("Ascend-910B2")
        C = np.zeros((m, n), np.float32)
        gemm_program(core, A, B, C, Tiling(m, n, 64, 64, 2, 2, 1), [(0, 0)])
        timeline = core.run()
        np.testing.assert_array_equal(C, case.wanted["out"])
        assert timeline.makespan <= case.wanted["most"]["clocks"] <= 1.05 * timeline.makespan


def test_the_best_tile_fits_and_no_larger_one_does() -> None:
    def fits(m: int, n: int, case: Case) -> bool:
        l0a, l0b, l0c, k = case.args
        fill = Tiling(m, n, k, k).fill("float16")
        return fill["L0A"] <= l0a and fill["L0B"] <= l0b and fill["L0C"] <= l0c

    for case in all_cases("gpu/cube"):
        m, n = case.wanted
        if m:
            assert fits(m, n, case)
        assert not fits(m + 16, max(n, 16), case)
        assert not fits(max(m, 16), n + 16, case)
