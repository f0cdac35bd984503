"""The explorers as Python sees them: arguments, and what a page has without its script."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distlearn.kernels import kernels_from_text
from distlearn.kernels.oracle import record
from distlearn.widgets import (
    BankConflictExplorer,
    CoalescingExplorer,
    CubeTimeline,
    OccupancyExplorer,
    RooflineExplorer,
    ThreadIndexExplorer,
    WarpStepper,
)
from tests.widgets.test_faces import Reader


def test_a_page_without_its_script_has_the_first_setting() -> None:
    explorer = CoalescingExplorer(stride=2)
    bundle: dict[str, Any] = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    read = Reader(bundle["text/html"])
    assert read.roots == 1
    assert explorer.status in read.data["p"]
    assert "50 %" in read.data["dd"]
    assert ("input", "name", "stride") in read.attributes


def test_a_stepper_through_a_kernel_of_ones_own() -> None:
    text = "def half(a):\n    i = cuda.laneid\n    if i < 16:\n        a[i] = i\n"
    stepper = WarpStepper(record(kernels_from_text(text)["half"], 1, 32, np.zeros(16)), step=2)
    assert stepper.status == ("Step 2 of 3, before line 4: a[i] = i. 16 of 32 lanes active. Lane 0 "
                              "takes part: i = 0.")
    read = Reader(stepper.static_html())
    assert ("span", "aria-current", "step") in read.attributes
    broken = record(kernels_from_text(text)["half"], 1, 32, np.zeros(8))
    assert WarpStepper(broken, step=3).status.startswith("out_of_bounds: index 8 on axis 0")


@pytest.mark.parametrize(("view", "arguments", "message"), [
    (CoalescingExplorer, {"stride": 34}, "stride must be an integer from 0 to 33; got 34"),
    (CoalescingExplorer, {"item_bytes": 3}, "item_bytes must be one of 1, 2, 4, 8, 16; got 3"),
    (CoalescingExplorer, {"moved": {32: 0}}, "a lane of moved must be an integer from 0 to 31"),
    (BankConflictExplorer, {"pattern": "rows"}, "pattern must be one of strided, reversed"),
    (BankConflictExplorer, {"padding": True}, "padding must be an integer from 0 to 4; got True"),
    (ThreadIndexExplorer, {"block": (8, 9)}, r"block\[1\] must be an integer from 1 to 8; got 9"),
    (ThreadIndexExplorer, {"thread": (24, 0)}, r"thread\[0\] must be an integer from 0 to 23"),
    (ThreadIndexExplorer, {"grid": ()}, r"grid must have 1 to 3 sizes; got \(\)"),
    (OccupancyExplorer, {"threads": 40}, "from 32 to 1024 in steps of 32; got 40"),
    (OccupancyExplorer, {"device": "Ascend-910B2"}, "device must be one of V100-SXM2-32GB"),
    (RooflineExplorer, {"K": 100}, "K must be an integer from 128 to 16384 in steps of 128"),
    (RooflineExplorer, {"rung": "tensor_core"}, "rung must be one of naive_rows"),
    (WarpStepper, {"step": 6}, "step must be an integer from 0 to 5; got 6"),
    (WarpStepper, {"recordings": {}}, "recordings must not be empty"),
    (CubeTimeline, {"tile": "1 x 1"}, "tile must be one of 64 x 64, 128 x 128"),
    (CubeTimeline, {"event": 58}, "event must be an integer from 0 to 57; got 58"),
])
def test_first_setting_out_of_range_is_refused(view: Any, arguments: dict[str, Any],
                                               message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view(**arguments)
