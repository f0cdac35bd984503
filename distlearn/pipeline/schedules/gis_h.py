"""GIS-H: GIS with half groups, the least memory of the family.

Wan et al., "PipeOffload", arXiv:2503.01328, section 4.2.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.gis import grouped, grouped_bubble, grouped_peak


def order(p: int, m: int, v: int, group: int | None = None, offload: int = 0) -> Schedule:
    """GIS with groups of ``ceil(p/2)``, the smallest that still keeps all ranks busy.

    Parameters
    ----------
    p, m, v : int
        Pipeline ranks, microbatches, stages per rank; any m >= 1.
    group : int, optional
        As for gis; default ``ceil(p/2)``.
    offload : int
        As for gis.
    """
    return grouped("gis_h", p, m, v, (p + 1) // 2 if group is None else group, offload)


def bubble_time(p: int, m: int, v: int, costs: Costs, group: int | None = None,
                offload: int = 0) -> float:
    """Idle time of a rank as for gis, ``(p-1)(F+I) + (p-group)(v-1) F``."""
    return grouped_bubble("gis_h", p, m, v, (p + 1) // 2 if group is None else group, costs)


def peak_activations(p: int, m: int, v: int, r: int, group: int | None = None,
                     offload: int = 0) -> int:
    """Thin-stage activations kept by rank r, ``ceil(p/2)(v-1) + p - r``, at most m v."""
    return grouped_peak("gis_h", p, m, v, r, (p + 1) // 2 if group is None else group, offload)
