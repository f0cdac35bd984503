"""ZB-V's greedy search: an order for measured times, with the memory of 1F1B.

Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, section 6.2. A
microbatch passes every rank four times: F down the V (way 0) and up (way 1), then I down and up.
"""

from __future__ import annotations

from collections import deque
from itertools import product

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs


def search(p: int, m: int, costs: Costs) -> tuple[tuple[Action, ...], ...]:
    """The order with the smallest bubble of four greedy runs.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches.
    costs : Costs
        F, I, W of one half stage, and comm, the same on all stages.
    """
    best: _Run | None = None
    for fill_backward, fill_forward in product((True, False), repeat=2):
        run = _best_of_repeats(p, m, costs, fill_forward, fill_backward)
        if best is None or run.worst < best.worst:
            best = run
    assert best is not None
    return tuple(map(tuple, best.rows))


def _best_of_repeats(p: int, m: int, costs: Costs, fill_forward: bool, fill_backward: bool
                     ) -> _Run:
    """Run again with the bubbles of the run before approved, as long as that helps."""
    runs = [_Run(p, m, costs, None)]
    runs[-1].run(fill_forward, fill_backward)
    while True:
        again = _Run(p, m, costs, runs[-1].bubble)
        again.run(fill_forward, fill_backward)
        runs.append(again)
        if again.worst >= runs[-2].worst:
            break
    best = runs[-1]
    for run in reversed(runs[:-1]):
        best = best if best.worst < run.worst else run
    return best


class _Run:
    """One greedy run. Half-stage activations count 1, and nothing is freed before W."""

    def __init__(self, p: int, m: int, costs: Costs, approved: list[float] | None) -> None:
        self.p, self.m, self.comm = p, m, costs.one_comm()
        self.cost = {}
        for kind in "FIW":
            seconds = set(costs.per_stage(kind, 2 * p))
            if len(seconds) != 1:
                raise ValueError(f"zb_v's search needs equal stages; got {kind}={sorted(seconds)}")
            self.cost[kind] = seconds.pop()
        self.approved = approved
        self.rows: list[list[Action]] = [[] for _ in range(p)]
        self.end: dict[tuple[str, int], list[list[float]]] = {
            (kind, way): [[] for _ in range(p)] for kind in "FI" for way in (0, 1)}
        self.pending: list[deque[tuple[int, int]]] = [deque() for _ in range(p)]
        self.clock, self.bubble, self.held = [0.0] * p, [0.0] * p, [0] * p
        self.worst = 0.0
        self.limit = 2 * p

    def done(self, kind: str, way: int, j: int) -> int:
        return len(self.end[kind, way][j])

    def arrival(self, kind: str, way: int, j: int, i: int) -> float | None:
        """End of the neighbour's action that this one waits for; None: not there or not needed."""
        neighbour = j - 1 if way == 0 else j + 1
        if not 0 <= neighbour < self.p or i >= self.done(kind, way, neighbour):
            return None
        return self.end[kind, way][neighbour][i]

    def put(self, kind: str, way: int, j: int) -> None:
        """Append the next action of a kind and way on rank j."""
        i = self.done(kind, way, j)
        free = self.clock[j] + self.cost[kind]
        arrived = self.arrival(kind, way, j, i)
        end = free if arrived is None else max(free, arrived + self.comm + self.cost[kind])
        if self.done("F", 0, j):
            self.bubble[j] += end - free
            self.worst = max(self.worst, self.bubble[j])
        self.clock[j] = end
        self.end[kind, way][j].append(end)
        half = way if kind == "F" else 1 - way
        self.rows[j].append(Action(kind, self.stage(half, j), i))
        if kind == "F":
            self.held[j] += 1
        else:
            self.pending[j].append((half, i))

    def put_weight(self, j: int) -> None:
        half, i = self.pending[j].popleft()
        self.clock[j] += self.cost["W"]
        self.held[j] -= 1
        self.rows[j].append(Action("W", self.stage(half, j), i))

    def stage(self, half: int, j: int) -> int:
        return j if half == 0 else 2 * self.p - 1 - j

    def slack(self, j: int) -> float:
        """How much more rank j may idle without becoming worse than the worst one."""
        worst = self.worst
        if self.approved is not None:
            worst = max(worst, max(self.approved) - self.approved[j])
        return worst - self.bubble[j]

    def fill_then_put(self, kind: str, way: int, j: int, fill: bool) -> None:
        """Weight gradients into the gap before an action, then the action."""
        arrived = self.arrival(kind, way, j, self.done(kind, way, j))
        if arrived is not None:
            while self.pending[j] and arrived + self.comm >= self.clock[j] + self.cost["W"]:
                self.put_weight(j)
            late = arrived + self.comm - self.clock[j]
            if self.pending[j] and fill and late > self.slack(j):
                self.put_weight(j)
        self.put(kind, way, j)

    def run(self, fill_forward: bool, fill_backward: bool) -> None:
        self.warm_up()
        for _ in range(2 * self.m):
            for j, way in self.backwards():
                self.fill_then_put("I", way, j, fill_backward or way == 1)
            for j in range(self.p):
                chosen = self.forward(j)
                if chosen is not None:
                    while self.held[j] + 1 > self.limit:
                        self.put_weight(j)
                    self.fill_then_put("F", chosen, j, fill_forward)
        for j in range(self.p):
            while self.pending[j]:
                self.put_weight(j)

    def warm_up(self) -> None:
        """Forwards until every rank has met its first microbatch on the way up, and a few more."""
        p, m, done, put = self.p, self.m, self.done, self.put
        for j in range(p):
            put("F", 0, j)
        for j in reversed(range(p)):
            while (j < p - 1 and self.held[j] + 2 + 2 * j <= self.limit and done("F", 0, j) < m
                   and self.clock[j] + self.cost["F"] <= self.end["F", 1][j + 1][0] + self.comm):
                for k in range(j + 1):
                    put("F", 0, k)
            put("F", 1, j)
        way = 0
        for j in range(1, p):
            while (done("F", 0, j) + done("F", 1, j) < done("F", 0, j - 1) + done("F", 1, j - 1)
                   or done("F", 1, j) <= done("F", 1, j - 1) < m):
                for k in reversed(range(j, p)):
                    if done("F", way, k) < m:
                        put("F", way, k)
                way = 1 - way

    def backwards(self) -> list[tuple[int, int]]:
        """(rank, way) of the next round of input gradients: those on their way up go first."""
        down, up = [], []
        for j in range(self.p):
            next_up = self.done("I", 1, j)
            if next_up >= self.done("I", 0, j):
                down.append((j, 0))
            elif (j == self.p - 1 or self.done("I", 1, j + 1) > next_up
                  or self.done("I", 0, j) >= self.m):
                up.append((j, 1))
            else:
                down.append((j, 0))
        return up[::-1] + down

    def forward(self, j: int) -> int | None:
        """The way of rank j's next forward, the way up if it can; None if there is none to do."""
        down, up = self.done("F", 0, j), self.done("F", 1, j)
        if up >= self.m:
            return None
        if up >= down:
            return 0
        if j == self.p - 1 or self.done("F", 1, j + 1) > up:
            return 1
        if down < self.m and (j == 0 or self.done("F", 0, j - 1) > down):
            return 0
        return None
