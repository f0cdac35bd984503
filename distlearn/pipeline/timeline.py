"""What a simulation returns: when everything happened, and the numbers read off it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from distlearn.pipeline import memory
from distlearn.pipeline.action import Action
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.schedule import Schedule


class Event(NamedTuple):
    """One action in time: ``start`` and ``end`` in the unit of the costs (seconds)."""

    rank: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """A simulated run of a schedule.

    Two definitions of "bubble" are in use, and two spans, so each number says which it is:

    ============================  =====================  ==========================
    ..                            idle / span            idle / ideal
    ============================  =====================  ==========================
    span = makespan               bubble_fraction        bubble_over_ideal
    span = longest rank's span    span_bubble_fraction   span_bubble_over_ideal
    ============================  =====================  ==========================

    with ideal = mean busy time of a rank and idle = span - ideal. The zero-bubble, GPipe and
    Chimera papers divide by the span; Megatron-LM divides by the ideal time and gets (p-1)/m.
    The longest rank's span, from its first start to its last end, is what counts if a rank may
    begin its next step without waiting for the others.

    Attributes
    ----------
    schedule, costs
        What was simulated.
    starts, ends : tuple of tuple of float
        ``starts[r][k]`` and ``ends[r][k]``: seconds at which ``schedule.ranks[r][k]`` starts, ends.
    makespan : float
        Seconds from the start (0) until the last action ends.
    busy : tuple of float
        Per rank, seconds spent in actions.
    longest_span : float
        The longest time from a rank's first start to its last end.
    peak_activations : tuple of int
        Per rank, the most (stage, microbatch) activations kept at once, each from its F until its
        B or W. One is worth 1/v of a rank's layers.
    peak_bytes : tuple of float
        The same in bytes, with ``costs.activation`` and ``activation_after_I``.
    """

    schedule: Schedule
    costs: Costs
    starts: tuple[tuple[float, ...], ...] = field(repr=False)
    ends: tuple[tuple[float, ...], ...] = field(repr=False)
    makespan: float
    busy: tuple[float, ...]
    longest_span: float
    peak_activations: tuple[int, ...]
    peak_bytes: tuple[float, ...]

    @property
    def ideal(self) -> float:
        """Mean busy time of a rank: the time a step would take without any bubble."""
        return sum(self.busy) / len(self.busy)

    @property
    def bubble_fraction(self) -> float:
        """Idle share of the makespan, ``1 - ideal / makespan``."""
        return _share(self.makespan - self.ideal, self.makespan)

    @property
    def bubble_over_ideal(self) -> float:
        """Idle time over ideal time, ``makespan / ideal - 1``: Megatron-LM's definition."""
        return _share(self.makespan - self.ideal, self.ideal)

    @property
    def span_bubble_fraction(self) -> float:
        """Idle share of the longest rank's span, ``1 - ideal / longest_span``."""
        return _share(self.longest_span - self.ideal, self.longest_span)

    @property
    def span_bubble_over_ideal(self) -> float:
        """Idle time within the longest rank's span, over ideal time."""
        return _share(self.longest_span - self.ideal, self.ideal)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Every action in time, rank by rank, in the order in which the rank does them."""
        return tuple(event for rank in range(len(self.starts)) for event in self.rank_events(rank))

    def rank_events(self, rank: int) -> tuple[Event, ...]:
        """The events of one rank, in order."""
        rows = zip(self.schedule.ranks[rank], self.starts[rank], self.ends[rank], strict=True)
        return tuple(Event(rank, action, start, end) for action, start, end in rows)

    def memory_curve(self, rank: int) -> list[tuple[float, int]]:
        """Activations kept by a rank over time: (time, count from then on), starting at (0, 0).

        An activation is counted from the start of its F (or R) to the end of its B or W.
        """
        return [(time, pieces) for time, pieces, _ in self._curve(rank, pieces_only=True)]

    def byte_curve(self, rank: int) -> list[tuple[float, float]]:
        """Bytes of activations kept by a rank over time: (time, bytes from then on)."""
        return [(time, size) for time, _, size in self._curve(rank)]

    def _curve(self, rank: int, pieces_only: bool = False) -> list[tuple[float, int, float]]:
        return memory.curve(
            self.schedule, self.costs, self.starts, self.ends, rank, pieces_only)

    @cached_property
    def state_bytes(self) -> tuple[float, ...]:
        """Per rank, bytes of weights, all versions kept, and of gradients: there all the time."""
        weight = self.costs.per_stage("weight", self.schedule.stages)
        gradient = self.costs.per_stage("gradient", self.schedule.stages)
        return tuple(
            sum(self.versions_kept[r] * weight[stage] + gradient[stage]
                for stage in self.schedule.held(r))
            for r in range(self.schedule.p)
        )

    @cached_property
    def versions_kept(self) -> tuple[int, ...]:
        """Per rank, most weight versions kept at once; 1 if the schedule is synchronous."""
        return tuple(memory.weight_versions(self.schedule, r) for r in range(self.schedule.p))

    @cached_property
    def buffer_bytes(self) -> tuple[float, ...]:
        """Per rank, the most bytes of inputs and gradients received and not yet used up."""
        return memory.buffers(self.schedule, self.costs, self.starts, self.ends)

    @cached_property
    def link_bytes(self) -> dict[tuple[int, int], float]:
        """Bytes sent over each link, by (from rank, to rank)."""
        return memory.link_bytes(self.schedule, self.costs)

    @property
    def total_bytes(self) -> tuple[float, ...]:
        """Per rank, an upper bound of the bytes held: state, peak activations, peak buffers."""
        rows = zip(self.state_bytes, self.peak_bytes, self.buffer_bytes, strict=True)
        return tuple(map(sum, rows))

    @property
    def synchronous_step(self) -> float:
        """Seconds per step if all ranks wait for each other before the optimizer runs.

        A global check (gradient norm, overflow) needs that, unless it is done afterwards.
        """
        return self.makespan + self.costs.optimizer

    @property
    def post_validated_step(self) -> float:
        """Seconds per step if each rank updates as soon as it has ended, and checks afterwards.

        Zero-bubble paper, section 4: the longest rank's span counts, not the whole pipeline's.
        """
        return self.longest_span + self.costs.optimizer


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
