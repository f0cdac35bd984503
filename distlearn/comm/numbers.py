"""Whole numbers: what ranks, tags, axes and lengths have to be."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_whole(value: Any) -> bool:
    """Whether it is an integer, Python's or numpy's; 2.0 is none."""
    return isinstance(value, (int, np.integer))


def check_count(name: str, value: Any) -> None:
    """Check that there is at least one of something.

    Raises
    ------
    ValueError
        Naming the argument and its value.
    """
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} = {value!r} must be a whole number, at least 1")


def check_timeout(timeout: float | None) -> None:
    """Check a wall-clock limit: some seconds, or None for no limit.

    Raises
    ------
    ValueError
        Naming the value.
    """
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout = {timeout} must be above 0 seconds, or None")
