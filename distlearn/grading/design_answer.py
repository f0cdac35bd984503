"""Open answers: a choice of schedule, and a whole schedule that the simulator judges by bars."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from distlearn.grading.answer import Actions, Answer, View, misfit, short

_ACTION = re.compile(r"[FBIW]\d{1,4}\.\d{1,6}")


@dataclass(frozen=True)
class Choice(Answer):
    """A schedule's name and a number of microbatches, as a tuple or list."""

    noun: str = "a name and a number, such as ('1f1b', 8)"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) not in (list, tuple):
            return misfit(got, self.noun)
        if len(got) != 2 or type(got[0]) is not str or type(got[1]) not in (int, float):
            return f"It returned {short(got)}; {self.noun} is asked for."
        return ""

    def same(self, got: Any, wanted: Any) -> bool:
        """See `Answer`."""
        return bool(got[0] == wanted[0] and got[1] == wanted[1])

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if got[0] == wanted[0]:
            return "The schedule is right; another number of microbatches is faster, or fits."
        if got[1] == wanted[1]:
            return "The number of microbatches is right; another schedule is faster, or fits."
        return ""


class Measured(NamedTuple):
    """A schedule, run: the time of its step and the most activations on any rank, and on which.

    ``problem`` says why it cannot be run, and ``rank`` where; then the rest means nothing.
    """

    time: float = 0.0
    peak: int = 0
    rank: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Design(Answer):
    """A schedule of one stage per rank, as one list of actions per rank; any that is good enough.

    What a case wants is a dict: ``ranks`` and ``microbatches``; ``limit``, the most activations
    that a rank may keep; and ``bars``, times of a step, each shorter than the one before. A step
    that reaches k of n bars (takes no longer) is worth k/n of the points.

    Attributes
    ----------
    F, B, I, W : float
        How long the actions take.
    """

    F: float = 1.0
    B: float = 2.0
    I: float = 1.0
    W: float = 1.0
    noun: str = "one list of actions per rank, such as [['F0.0', 'B0.0'], ['F1.0', 'B1.0']]"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) not in (list, tuple):
            return misfit(got, self.noun)
        for rank, row in enumerate(got):
            if type(row) not in (list, tuple):
                return f"Item {rank} is {short(row)}; {self.noun} is asked for."
            wrong = Actions().misfit(row)
            if wrong:
                return f"Rank {rank}: {wrong[0].lower()}{wrong[1:]}"
        return ""

    def measure(self, got: Any, wanted: Any) -> Measured:
        """Check the schedule and run it."""
        from distlearn.pipeline import Action, Costs, Schedule, ScheduleError, simulate, validate

        p, m = wanted["ranks"], wanted["microbatches"]
        if len(got) != p:
            return Measured(problem=f"There are {len(got)} lists for {p} ranks.")
        for rank, row in enumerate(got):
            odd = next((a for a in row if not _ACTION.fullmatch(a)), None)
            if odd is not None:
                return Measured(rank=rank, problem=f"{short(odd)} on rank {rank} is no action: "
                                "write kind (F, B, I or W), stage, point, microbatch.")
        try:
            schedule = Schedule("yours", p, m, 1, placement=tuple(range(p)), ranks=tuple(
                tuple(Action.parse(a) for a in row) for row in got))
            validate(schedule)
        except ScheduleError as error:
            return Measured(rank=error.rank, problem=_sentence(str(error)))
        except ValueError as error:
            return Measured(problem=_sentence(str(error)))
        timeline = simulate(schedule, Costs(F=self.F, B=self.B, I=self.I, W=self.W))
        peak = max(timeline.peak_activations)
        return Measured(timeline.makespan, peak, timeline.peak_activations.index(peak))

    def same(self, got: Any, wanted: Any) -> bool:
        """Whether it reaches the last bar; ``wanted`` may also be another schedule."""
        if not isinstance(wanted, dict):
            return bool(got == wanted)
        return self.credit(got, wanted) == 1.0

    def credit(self, got: Any, wanted: Any) -> float:
        """See `Answer`."""
        run = self.measure(got, wanted)
        if run.problem or run.peak > wanted["limit"]:
            return 0.0
        return _reached(run.time, wanted) / len(wanted["bars"])

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        run = self.measure(got, wanted)
        if run.problem:
            return run.problem
        if run.peak > wanted["limit"]:
            return (f"It runs, in {run.time:g}, but rank {run.rank} keeps {run.peak} activations "
                    f"at once, and {wanted['limit']} fit. Which W could come earlier?")
        reached, bars = _reached(run.time, wanted), wanted["bars"]
        return (f"It runs and fits. Its step takes {run.time:g} and reaches {reached} of "
                f"{len(bars)} bars; the next is {bars[reached]:g}.")

    def view(self, got: Any, wanted: Any) -> View:
        """What decides: the row that does not run, the peak that does not fit, or the time."""
        best = f"a schedule that takes at most {wanted['bars'][-1]:g}"
        if got is None:
            return View(None, best)
        run = self.measure(got, wanted)
        if run.problem:
            row = list(got[run.rank]) if run.rank < len(got) else []
            return View(row, best, f"rank {run.rank}")
        if run.peak > wanted["limit"]:
            return View(run.peak, wanted["limit"],
                        f"activations kept at once by rank {run.rank}; wanted: at most")
        return View(run.time, wanted["bars"][-1], "time of the step; wanted: at most")


def _reached(time: float, wanted: Any) -> int:
    return sum(time <= bar + 1e-9 for bar in wanted["bars"])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
