"""DAPPLE: early backward scheduling, with one of two warm-ups.

Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models", PPoPP 2021,
section 3 (scheduling policies). Policy A is 1F1B. Policy B injects about twice as many
microbatches before the first backward, so that a gradient that takes long to arrive finds the
rank busy; it pays with memory.
"""

from __future__ import annotations

from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.one_f_one_b import one_f_one_b


def order(p: int, m: int, policy: str = "A", mem_limit: int | None = None) -> Schedule:
    """Rank r does K forwards before its first backward, then alternates B and F.

    K is ``p - r`` (policy A) or ``2(p - r) - 1`` (policy B), and at most ``mem_limit``.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    policy : {"A", "B"}
    mem_limit : int, optional
        How many microbatches' activations fit on a rank (the paper's D), at least 1.
    """
    ranks = tuple(
        tuple(one_f_one_b(r, _injected(p, m, r, policy, mem_limit) - 1, m)) for r in range(p))
    return Schedule("dapple", p, m, 1, placement=tuple(range(p)), ranks=ranks)


def _injected(p: int, m: int, r: int, policy: str, mem_limit: int | None) -> int:
    if policy not in ("A", "B"):
        raise ValueError(f"dapple needs policy 'A' or 'B'; got policy={policy!r}")
    if mem_limit is not None and mem_limit < 1:
        raise ValueError(f"dapple needs mem_limit >= 1; got mem_limit={mem_limit}")
    wanted = p - r if policy == "A" else 2 * (p - r) - 1
    return min(wanted, m, m if mem_limit is None else mem_limit)


def bubble_time(p: int, m: int, costs: Costs, policy: str = "A",
                mem_limit: int | None = None) -> float:
    """Idle time of a rank, ``(p-1)(F+B)``, with either policy.

    Holds if memory is no limit: ``mem_limit >= min(p, m)``.
    """
    if mem_limit is not None and mem_limit < min(p, m):
        raise ValueError(f"dapple's bubble formula needs mem_limit >= min(p, m) = {min(p, m)}; "
                         f"got mem_limit={mem_limit}")
    _injected(p, m, 0, policy, mem_limit)
    F, B, _, _ = costs.uniform()
    return (p - 1) * (F + B)


def peak_activations(p: int, m: int, r: int, policy: str = "A",
                     mem_limit: int | None = None) -> int:
    """Microbatches that rank r keeps: ``p-r`` (A) or ``2(p-r)-1`` (B), at most m and the limit."""
    return _injected(p, m, r, policy, mem_limit)
