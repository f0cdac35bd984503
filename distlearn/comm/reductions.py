"""How partial results are combined: sum, mean, max, min, prod."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,  # divided by the number of ranks at the end
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}
"""Name -> the ufunc that combines two partial results, in the arrays' own dtype."""


@lru_cache(maxsize=256)
def check_reduction(name: str, dtype: np.dtype[Any]) -> None:
    """Check that arrays of this dtype can be reduced so.

    Raises
    ------
    ValueError
        If the reduction is unknown.
    TypeError
        If the dtype has no such operation, or mean would leave it (integers, bool, timedelta).
    """
    if name not in REDUCTIONS:
        raise ValueError(f"op = {name!r} is not one of {', '.join(REDUCTIONS)}")
    try:
        *_, result = REDUCTIONS[name].resolve_dtypes((dtype, dtype, None))
    except TypeError:
        result = None
    if result != dtype.newbyteorder("="):
        raise TypeError(f"op = {name!r} is not defined for arrays of dtype {dtype}")
    if name == "mean" and dtype.kind in "iubm":
        raise TypeError(f"op = 'mean' of dtype {dtype} would not stay in that dtype: "
                        "convert to a float dtype first, or use op='sum' and divide")
