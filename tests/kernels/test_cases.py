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


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_oracle(case):
    expected(case, "oracle")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_simt(case):
    expected(case, "simt")
