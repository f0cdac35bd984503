"""60 launches counted by an independent interpreter: output, counters, or the named error."""

import json
from pathlib import Path

import numpy as np
import pytest

from distlearn.kernels import KernelError, kernels_from_text, launch

DATA = Path(__file__).parents[1] / "data" / "gpu"
CASES = json.loads((DATA / "cases.json").read_text())
KERNELS = kernels_from_text((DATA / "kernels.txt").read_text(), str(DATA / "kernels.txt"))
ARRAYS = np.load(DATA / "arrays.npz")


def expected(case, executor):
    inputs = [ARRAYS[f"{case['id']}/in{i}"].copy() for i in range(case["arrays"])]

    def run():
        return launch(KERNELS[case["kernel"]], tuple(case["grid"]), tuple(case["block"]), *inputs,
                      *case["scalars"], executor=executor)

    if case["expect"] != "ok":
        with pytest.raises(KernelError) as caught:
            run()
        assert caught.value.kind == case["expect"], caught.value
        assert caught.value.race_kinds == case.get("race_kinds", caught.value.race_kinds)
        assert caught.value.line > 0
        return
    report = run()
    np.testing.assert_array_equal(inputs[0], ARRAYS[f"{case['id']}/out"])
    assert {name: report.counters[name] for name in case["counters"]} == case["counters"]


# Launches of 30,000 and more multiply-adds. The oracle runs their kernels cut down to few, beside
# the executor that the file itself has proved.
LARGE = ("29_", "30_", "31_", "32_", "33_", "34_", "35_", "37_", "38_", "39_")
SMALL = [case for case in CASES if not case["id"].startswith(LARGE)]


@pytest.mark.parametrize("case", SMALL, ids=[case["id"] for case in SMALL])
def test_oracle(case):
    expected(case, "oracle")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_simt(case):
    expected(case, "simt")


@pytest.mark.parametrize(("kernel", "grid", "block", "sizes"), [
    ("gemm_naive", (1, 3), (32, 8), (20, 31, 3)),
    ("gemm_naive", (5, 1), (8, 32), (30, 37, 3)),
    ("gemm_naive_uncoalesced", (2, 2), (16, 16), (23, 21, 4)),
    ("gemm_tiled", (2, 2), (16, 16), (23, 21, 18)),
    ("gemm_tiled32", (1, 1), (32, 32), (32, 32, 32)),
    ("gemm_regtile_2d", (1, 2), (64,), (64, 32, 8)),
])
def test_oracle_of_large_kernels(kernel, grid, block, sizes):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    counted = []
    for executor in ("oracle", "simt"):
        c = np.zeros((m, n), np.float32)
        counted.append(launch(KERNELS[kernel], grid, block, c, a, b, *sizes, executor=executor))
        np.testing.assert_array_equal(c, a @ b)
    assert counted[0].counters == counted[1].counters
