"""What else a schedule lets one choose: the options that the explorer offers, and memory limits.

A key names an order for all sizes: ``1f1b``, ``1f1b overlap=true``, ``dapple mem_limit=3``. What
stands after the schedule's name is what ``distlearn schedule`` takes after ``-o``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distlearn.pipeline.option_text import option_value

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "1f1b": ("overlap=true",),
    "dapple": ("policy=B",),
    "interleaved_1f1b": ("overlap=true", "group=6"),
    "chimera": ("directions=4", "method=forward_doubling", "method=backward_halving"),
    "hanayo": ("window=3",),
    "zb_1p": ("after_I=1",),
    "zb_2p": ("after_I=1",),
    "zb_auto": ("after_I=1",),
    "interleaved_zero_bubble": ("group=6",),
    "zb_v": ("method=heuristic",),
    "gis": ("offload=1", "group=3"),
    "gis_h": ("offload=1", "group=3"),
    "seq1f1b": ("slices=3", "slices=4"),
    "terapipe": ("slices=3", "slices=4"),
    "mario": ("base=gpipe", "base=zb_h1", "prepose=false"),
    "pipedream": ("vertical_sync=true",),
    "pipedream_2bw": ("batches=1", "batches=2"),
    "xpipe": ("batches=1", "batches=2"),
    "amdp": ("batches=1", "batches=2"),
}
"""For each schedule with options, values other than the defaults; ``mem_limit`` is a slider."""

LIMIT_ENDS: Mapping[str, tuple[int, int]] = {
    "dapple": (8, 12), "zb_1p": (4, 8), "zb_2p": (4, 8), "zb_auto": (4, 8),
}
"""Last p and m for which a page has the orders that a memory limit makes; v_auto takes too long."""


def options_of(option: str) -> dict[str, Any]:
    """The options that a text names, as `build` takes them.

    Examples
    --------
    >>> options_of("overlap=true"), options_of("after_I=0.25"), options_of("")
    ({'overlap': True}, {'after_I': 0.25}, {})
    """
    if not option:
        return {}
    name, _, text = option.partition("=")
    return {name: option_value(text)}


def mem_limit(name: str, limit: float) -> float | int:
    """The option ``mem_limit`` of a schedule for room for so many whole microbatches.

    Examples
    --------
    >>> mem_limit("zb_auto", 2.5), mem_limit("dapple", 2.5), mem_limit("v_auto", 2.5)
    (2.5, 2, 5)
    """
    if name.startswith("zb"):
        return limit
    return int(limit * (2 if name == "v_auto" else 1))  # v_auto counts half stages


def page_limits(name: str) -> list[float | int]:
    """The values of ``mem_limit`` for which a page has orders.

    More room than for all m microbatches changes nothing, so they end there.
    """
    return [0.5 if name.startswith("zb") else 0,  # refused
            *range(1, LIMIT_ENDS[name][1] + 1)]


def limit_on_page(name: str, p: int, m: int, limit: float) -> str:
    """The option by which a page finds the order for a limit; "" if it has none.

    Examples
    --------
    >>> limit_on_page("zb_auto", 4, 8, 3.0), limit_on_page("zb_auto", 4, 8, 11.5)
    ('mem_limit=3', 'mem_limit=8')
    >>> limit_on_page("zb_auto", 4, 8, 2.5), limit_on_page("zb_auto", 5, 8, 3.0)
    ('', '')
    """
    if not limit or name not in LIMIT_ENDS or p > LIMIT_ENDS[name][0] or m > LIMIT_ENDS[name][1]:
        return ""
    value = min(mem_limit(name, limit), m)
    return f"mem_limit={value:g}" if value in page_limits(name) else ""
