"""ZB-auto: search an order for measured times and a memory limit.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 3.1 (the heuristic).
Hand-made orders are free of bubbles only for special times. This greedy search takes F, I, W, the
transfer time and how much fits into memory, builds eight candidates, and keeps the shortest.

Bubble: ``max(0, 2p-1-m) F`` for F = I = W, free transfers and no limit. For other times there is no
closed formula, but a guarantee: never longer than ZB-H1, where that fits into the limit;
``((p-1)(I+2c)+pF)/F`` activations of memory are about where more stops helping (appendix B).
Peak: within the limit, each rank's last part until its W. Any m >= 1.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.schedules.zb_h1 import order as zb_h1
from distlearn.pipeline.simulator import simulate

SPAN = "longest_span"


def order(p: int, m: int, mem_limit: float | None = None, costs: Costs | None = None,
          after_I: float | None = None) -> Schedule:
    """The best of the eight greedy candidates, by the longest rank's span.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches; any m >= 1.
    mem_limit : float, optional
        Memory of a rank, in whole-stage activations, >= 1. Default: no limit.
    costs : Costs, optional
        F, I, W and comm. Default: F = I = W.
    after_I : float, optional
        Share of an activation still kept between I and W (the paper's M_W / M_B), 0 .. 1.
        Default: as ``costs`` have it, if they say that I frees something, else one half.
    """
    return searched("zb_auto", p, m, m if mem_limit is None else mem_limit, costs, after_I)


def searched(name: str, p: int, m: int, mem_limit: float, costs: Costs | None,
             after_I: float | None, ends_together: bool = False) -> Schedule:
    """The search for zb_auto, zb_1p and zb_2p.

    ZB-H1's order is taken instead if it fits and has the shorter longest span; with
    ``ends_together`` also if that is as long and the last rank ends earlier, which counts if the
    optimizer step waits for all.
    """
    if not mem_limit >= 1:
        raise ValueError(f"{name} needs mem_limit >= 1 activation; got mem_limit={mem_limit}")
    costs = costs if costs is not None else Costs()
    if after_I is None:
        whole, part = (costs.per_stage(x, p)[0] for x in ("activation", "activation_after_I"))
        after_I = part / whole if part != whole else 0.5
    if not 0 <= after_I <= 1:
        raise ValueError(f"{name} needs 0 <= after_I <= 1; got after_I={after_I}")
    candidates = []
    for bubble_first, backward_first, fill in product((True, False), repeat=3):
        candidate = _Candidate(p, m, mem_limit, costs, after_I)
        candidate.run(bubble_first, backward_first, fill)
        candidates.append(candidate)
    best = min(candidates, key=_Candidate.span)
    rows = tuple(map(tuple, best.rows))
    placement = tuple(range(p))
    by_hand = zb_h1(p, m)
    timeline = simulate(by_hand, replace(costs, activation=1.0, activation_after_I=after_I))
    if max(timeline.peak_bytes) <= best.limit and (
            timeline.longest_span < best.span() * (1 - 1e-9)
            or (ends_together and timeline.longest_span <= best.span() * (1 + 1e-9)
                and timeline.makespan < max(best.clock))):
        rows = by_hand.ranks
    return Schedule(name, p, m, 1, placement=placement, ranks=rows)


def bubble_time(p: int, m: int, costs: Costs, mem_limit: float | None = None,
                after_I: float | None = None) -> float:
    """Idle time within the longest rank's span, ``max(0, 2p-1-m) F``: 0 from m = 2p - 1 on.

    For F = I = W, free transfers, and no limit (the order made for these times, or for none).
    """
    return even("zb_auto", costs, mem_limit, after_I) * max(0, 2 * p - 1 - m)


def peak_activations(p: int, m: int, r: int, mem_limit: float | None = None,
                     costs: Costs | None = None, after_I: float | None = None) -> int:
    """Microbatches kept by rank r, each until its W: ``m``, for F = I = W and no limit."""
    even("zb_auto", costs if costs is not None else Costs(), mem_limit, after_I)
    return m


def even(name: str, costs: Costs, mem_limit: float | None, after_I: float | None) -> float:
    """F, if what the search was asked for is the case that has closed formulas."""
    F, _, I, W = costs.uniform()
    if not F == I == W or mem_limit is not None or after_I is not None:
        raise ValueError(f"{name}'s closed formula needs F = I = W, and no mem_limit or after_I of "
                         f"your own; got F={F} I={I} W={W} mem_limit={mem_limit} "
                         f"after_I={after_I}")
    return F


class _Candidate:
    """One greedy run: clocks, counters, memory and bubbles of every rank."""

    def __init__(self, p: int, m: int, mem_limit: float, costs: Costs, after_I: float) -> None:
        self.p, self.m, self.comm = p, m, costs.one_comm()
        self.F, self.I, self.W = (costs.per_stage(kind, p) for kind in "FIW")
        self.mem = {"F": 1.0, "I": after_I - 1.0, "W": -after_I}
        self.limit = mem_limit + 1e-9  # sums of shares are not exact
        self.rows: list[list[Action]] = [[] for _ in range(p)]
        self.count = {kind: [0] * p for kind in "FIW"}
        self.clock, self.held, self.bubble = [0.0] * p, [0.0] * p, [0.0] * p
        self.first = [0.0] * p
        self.worst = 0.0  # the largest bubble of any rank so far
        self.end: dict[str, list[list[float]]] = {k: [[] for _ in range(p)] for k in "FIW"}

    def put(self, kind: str, j: int) -> None:
        """Append the next action of a kind on rank j."""
        i = self.count[kind][j]
        ready = self.arrival(kind, j, i)
        wait = max(0.0, ready - self.clock[j]) if ready is not None else 0.0
        if self.count["F"][j]:
            self.bubble[j] += wait
            self.worst = max(self.worst, self.bubble[j])
        else:
            self.first[j] = self.clock[j] + wait
        self.clock[j] += wait
        self.clock[j] += getattr(self, kind)[j]
        self.end[kind][j].append(self.clock[j])
        self.held[j] += self.mem[kind]
        self.count[kind][j] += 1
        self.rows[j].append(Action(kind, j, i))

    def arrival(self, kind: str, j: int, i: int) -> float | None:
        """When the input from the neighbour is there; None if none is needed."""
        if kind == "F" and j > 0:
            return self.end["F"][j - 1][i] + self.comm
        if kind == "I" and j < self.p - 1:
            return self.end["I"][j + 1][i] + self.comm
        return None

    def make_room(self, kind: str, j: int) -> None:
        """Weight gradients until the next action of a kind fits into memory."""
        while self.held[j] + self.mem[kind] > self.limit:
            self.put("W", j)

    def fill_gap(self, kind: str, j: int, fill: bool) -> None:
        """Weight gradients while rank j waits for the input of its next action of a kind."""
        ready = self.arrival(kind, j, self.count[kind][j])
        if ready is None:
            return
        W = self.W[j]
        while self.count["W"][j] < self.count["I"][j] and self.clock[j] + W <= ready:
            self.put("W", j)
        gap = ready - self.clock[j]
        # One more would end late. Worth it if idling would make this rank the worst one.
        if self.count["W"][j] < self.count["I"][j] and gap > 0 and (
                fill or gap > self.worst - self.bubble[j]):
            self.put("W", j)

    def run(self, bubble_first: bool, backward_first: bool, fill: bool) -> None:
        self.warm_up(bubble_first)
        for _ in range(1, self.m):
            for j in self.forwards(backward_first):
                self.make_room("F", j)
                self.fill_gap("F", j, fill)
                self.put("F", j)
            for j in reversed(range(self.p)):
                self.make_room("I", j)
                self.fill_gap("I", j, fill)
                if j == 0 and self.count["F"][0] == self.m:
                    while self.count["W"][0] < self.count["I"][0]:
                        self.put("W", 0)
                self.put("I", j)
        for j in range(self.p):
            while self.count["W"][j] < self.m:
                self.put("W", j)

    def warm_up(self, bubble_first: bool) -> None:
        """As many forwards as fit before the first backward arrives, fewer on every next rank."""
        p, m = self.p, self.m
        for j in range(p):
            self.put("F", j)
        extra = [0] * p
        ready = self.clock[p - 1] + self.I[p - 1]
        for j in reversed(range(p - 1)):
            clock, held = self.clock[j], self.held[j]
            while 1 + extra[j] < m and held + self.mem["F"] <= self.limit:
                late = clock + self.F[j] > ready + self.comm
                if late if bubble_first else clock >= ready + self.comm:
                    break
                held += self.mem["F"]
                clock += self.F[j]
                extra[j] += 1
            ready = max(clock, ready + self.comm) + self.I[j]
        for j in range(1, p):
            while extra[j] > 0 and extra[j] >= extra[j - 1] and 1 + extra[j] < m:
                extra[j] -= 1
        for j in range(p):
            for _ in range(extra[j]):
                self.put("F", j)
        for j in reversed(range(p)):
            self.put("I", j)

    def forwards(self, backward_first: bool) -> list[int]:
        """The ranks that do a forward before their next backward: up to the first that does not."""
        wanted = [self.wants_forward(j, backward_first) for j in range(self.p)]
        for j in reversed(range(self.p - 1)):
            wanted[j] = wanted[j] and wanted[j + 1]
        return [j for j in range(self.p) if wanted[j]]

    def wants_forward(self, j: int, backward_first: bool) -> bool:
        F = self.count["F"]
        if F[j] >= self.m:
            return False
        if not backward_first or j + 1 >= self.p or F[j] < F[j + 1] + 2:
            return True
        following = self.clock[j + 1] + self.F[j + 1] + self.I[j + 1] + self.comm
        if self.clock[j] >= following:
            return False
        weights, count, held = 0.0, self.count["W"][j], self.held[j] + self.mem["F"]
        while held > self.limit and count < self.count["I"][j]:
            weights += self.W[j]
            held += self.mem["W"]
            count += 1
        if self.clock[j] + self.F[j] + weights <= following:
            return True
        return following - self.clock[j] > self.worst - self.bubble[j]

    def span(self) -> float:
        """The longest time from a rank's first start to its last end."""
        return max(end - start for start, end in zip(self.first, self.clock, strict=True))
