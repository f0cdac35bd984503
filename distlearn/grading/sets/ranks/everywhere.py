"""The wanted value of a program that ends with the same result on all ranks."""

from __future__ import annotations

from typing import Any


def everywhere(ranks: int, result: Any, **traffic: Any) -> dict[str, Any]:
    """As `distlearn.grading.ranks_answer` describes it.

    Examples
    --------
    >>> everywhere(2, [4.0], total=16)
    {'results': [[4.0], [4.0]], 'total': 16}
    """
    return {"results": [result] * ranks, **traffic}
