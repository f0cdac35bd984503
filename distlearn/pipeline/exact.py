"""The best possible order of a small pipeline, by mixed-integer programming.

Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, appendix (ILP formulation). Start times
are variables; for two actions of a rank whose order is open, a binary says which is first. Good for
a dozen actions per rank: to see how far a heuristic is from the optimum, not to schedule with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.simulator import simulate


@dataclass(frozen=True)
class Optimum:
    """An order, its time, and whether the solver has proved that none is shorter."""

    schedule: Schedule
    seconds: float
    proved: bool


def optimum(p: int, m: int, costs: Costs | None = None, *, split: bool = True,
            mem_limit: float | None = None, after_I: float = 1.0, span: str = "makespan",
            time_limit: float = 60.0) -> Optimum:
    """Shortest order of m microbatches on p ranks with one stage each.

    Parameters
    ----------
    p, m : int
        Pipeline ranks and microbatches. p * m up to about 12 with a split backward.
    costs : Costs, optional
        F, B, I, W and comm.
    split : bool
        Whether the backward is done as I and W, or as B.
    mem_limit : float, optional
        Whole-stage activations that a rank may keep, >= 1. Default: no limit.
    after_I : float
        Share of an activation that is still kept between I and W.
    span : {"makespan", "longest_span"}
        What is to be short: the whole run, or the longest time from a rank's first start to its
        last end.
    time_limit : float
        Seconds after which the best order found so far is returned.

    Raises
    ------
    ModuleNotFoundError
        If ``highspy`` is not installed.
    ValueError
        For sizes, a limit, a share or a time out of range, or an unknown span.

    Examples
    --------
    >>> optimum(2, 2, split=False).seconds
    9.0
    """
    for name, value in (("p", p), ("m", m)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"optimum needs {name} to be an integer >= 1; got {name}={value!r}")
    if not 0 <= after_I <= 1:
        raise ValueError(f"optimum needs 0 <= after_I <= 1; got after_I={after_I}")
    if not time_limit > 0:
        raise ValueError(f"optimum needs time_limit > 0 seconds; got time_limit={time_limit}")
    if mem_limit is not None and not mem_limit >= 1:
        raise ValueError(f"optimum needs mem_limit >= 1 activation; got mem_limit={mem_limit}")
    if span not in ("makespan", "longest_span"):
        raise ValueError(f"optimum needs span 'makespan' or 'longest_span'; got span={span!r}")
    costs = costs if costs is not None else Costs()
    model = _Model(p, m, costs, "FIW" if split else "FB")
    model.dependencies(costs.one_comm())
    model.one_at_a_time()
    if mem_limit is not None:
        model.memory(mem_limit, after_I)
    proved = model.solve(span, time_limit)
    ranks = tuple(tuple(sorted(row, key=model.started)) for row in model.rows)
    schedule = Schedule("optimum", p, m, 1, placement=tuple(range(p)), ranks=ranks)
    seconds: float = getattr(simulate(schedule, costs), span)  # exact: the solver has tolerances
    return Optimum(schedule, seconds, proved)


def _silent_solver() -> Any:
    import highspy  # heavy, and only for this

    class Silent(highspy.Highs):
        """Says nothing: the first one would print a banner while it enables its callbacks."""

        def enableCallbacks(self) -> None:  # noqa: N802 - its name there
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return Silent()  # type: ignore[no-untyped-call]


class _Model:
    def __init__(self, p: int, m: int, costs: Costs, kinds: str) -> None:
        self.p, self.m, self.kinds = p, m, kinds
        self.solver = _silent_solver()
        seconds = {kind: costs.per_stage(kind, p) for kind in kinds}
        # the solver's tolerances are absolute: the longest action takes 1
        self.unit = max(costs.one_comm(), *map(max, seconds.values())) or 1.0
        self.seconds = {kind: [t / self.unit for t in row] for kind, row in seconds.items()}
        self.horizon = 1.0 + m * (sum(map(sum, self.seconds.values()))
                                  + 2 * p * costs.one_comm() / self.unit)
        self.rows = [[Action(kind, r, i) for kind in kinds for i in range(m)] for r in range(p)]
        self.start = {a: self.solver.addVariable(0, self.horizon) for row in self.rows for a in row}
        self.first: dict[tuple[Action, Action], Any] = {}  # binaries: is the first one first?

    def end(self, action: Action) -> Any:
        return self.start[action] + self.seconds[action.kind][action.stage]

    def after(self, later: Action, earlier: Action, pause: float = 0.0) -> None:
        self.solver.addConstr(self.start[later] >= self.end(earlier) + pause)

    def dependencies(self, comm: float) -> None:
        back = self.kinds[1]
        for r in range(self.p):
            for i in range(self.m):
                if r > 0:
                    self.after(Action("F", r, i), Action("F", r - 1, i), comm / self.unit)
                if r < self.p - 1:
                    self.after(Action(back, r, i), Action(back, r + 1, i), comm / self.unit)
                for earlier, later in pairwise(self.kinds):
                    self.after(Action(later, r, i), Action(earlier, r, i))

    def one_at_a_time(self) -> None:
        """Microbatches of a kind go in order; so a later one's F cannot be after this one's I."""
        for r in range(self.p):
            for kind in self.kinds:
                for i in range(self.m - 1):
                    self.after(Action(kind, r, i + 1), Action(kind, r, i))
            for a, b in self._open(r):
                first = self.first[a, b] = self.solver.addBinary()
                self.solver.addConstr(
                    self.start[b] >= self.end(a) - self.horizon * (1 - first))
                self.solver.addConstr(self.start[a] >= self.end(b) - self.horizon * first)

    def _open(self, r: int) -> Iterator[tuple[Action, Action]]:
        """Pairs (later step of j, earlier step of i) with j < i: either may be first."""
        for n, later in enumerate(self.kinds):
            for earlier in self.kinds[:n]:
                for i in range(self.m):
                    for j in range(i):
                        yield Action(later, r, j), Action(earlier, r, i)

    def memory(self, limit: float, after_I: float) -> None:
        freed = {"B": 1.0} if self.kinds == "FB" else {"I": 1.0 - after_I, "W": after_I}
        for r in range(self.p):
            for i in range(self.m):
                gone = sum(share * self.first[Action(kind, r, j), Action("F", r, i)]
                           for kind, share in freed.items() for j in range(i) if share)
                if i + 1 > limit:
                    self.solver.addConstr(gone >= i + 1 - limit - 1e-9)

    def solve(self, span: str, time_limit: float) -> bool:
        """Minimise; whether the optimum is proved."""
        longest = self.solver.addVariable(0, self.horizon)
        for r in range(self.p):
            begin = 0.0 if span == "makespan" else self.start[Action("F", r, 0)]
            for kind in self.kinds[1:]:
                self.solver.addConstr(longest >= self.end(Action(kind, r, self.m - 1)) - begin)
        self.solver.setOptionValue("time_limit", time_limit)
        self.solver.minimize(longest)
        proved: bool = self.solver.getModelStatus().name == "kOptimal"
        return proved

    def started(self, action: Action) -> float:
        """When the action starts, without the solver's noise: what takes no time keeps its turn."""
        return round(float(self.solver.variableValue(self.start[action])), 5)
