"""What an execution returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from distlearn.nn import Array, Grads
from distlearn.pipeline.runtime.program import RankReport
from distlearn.pipeline.schedule import Schedule


@dataclass(frozen=True)
class Run:
    """A schedule that has been executed on a model: what came out, and what was measured.

    Attributes
    ----------
    schedule : Schedule
    engine : str
    losses : tuple of float
        Of each microbatch, losses of routers included.
    gradients : dict of str to array
        Of the mean of the microbatches' losses, by parameter, over all copies of the model. Empty
        for asynchronous schedules, whose gradients have gone into updates one after the other.
    stage_gradients : tuple of dict
        The same by stage; what is tied is in each of its stages.
    weights : dict of str to array
        After the last optimizer step; as at first if there was none.
    stage_weights : tuple of dict
        The same by stage.
    peak_bytes : tuple of int
        Per rank, the most bytes of activations held at once between actions: arrays of saved
        states, each buffer once, on the rank itself (not in host memory).
    peak_activations : tuple of int
        Per rank, the most (stage, microbatch[, slice]) activations held at once.
    curves : tuple of tuple of (str, int)
        Per rank, the bytes held after each of its actions, those for its partner included.
    versions_kept : tuple of int
        Per rank, the most versions of its weights held at once.
    link_bytes : dict of (from rank, to rank) to int
        Bytes of outputs, gradients and evicted activations sent over each link.
    summed_bytes : tuple of int
        Per rank, bytes sent to add up gradients of copies and of tied weights.
    sent_bytes : tuple of int
        Per rank, all bytes sent, as its communicator's ledger has them.
    """

    schedule: Schedule = field(repr=False)
    engine: str
    losses: tuple[float, ...]
    gradients: Grads = field(repr=False)
    stage_gradients: tuple[Grads, ...] = field(repr=False)
    weights: dict[str, Array] = field(repr=False)
    stage_weights: tuple[dict[str, Array], ...] = field(repr=False)
    peak_bytes: tuple[int, ...]
    peak_activations: tuple[int, ...]
    curves: tuple[tuple[tuple[str, int], ...], ...] = field(repr=False)
    versions_kept: tuple[int, ...]
    link_bytes: dict[tuple[int, int], int] = field(repr=False)
    summed_bytes: tuple[int, ...]
    sent_bytes: tuple[int, ...]

    @property
    def loss(self) -> float:
        """Mean of the microbatches' losses."""
        return sum(self.losses) / len(self.losses)


def gather(schedule: Schedule, engine: str, names: list[str], reports: list[RankReport]) -> Run:
    """One `Run` of what the ranks report; ``names`` gives the order of the parameters."""
    losses = [0.0] * schedule.m
    for report in reports:
        for key, loss in report.losses.items():
            losses[key[1]] += loss
    homes = schedule.placements[0]
    weights = tuple(reports[r].weights[0, stage] for stage, r in enumerate(homes))
    gradients = tuple(reports[r].gradients.get((0, stage), {}) for stage, r in enumerate(homes))
    return Run(
        schedule=schedule,
        engine=engine,
        losses=tuple(losses),
        gradients=_merged(gradients, names),
        stage_gradients=gradients,
        weights=_merged(weights, names),
        stage_weights=weights,
        peak_bytes=tuple(report.peak_bytes for report in reports),
        peak_activations=tuple(report.peak_activations for report in reports),
        curves=tuple(report.curve for report in reports),
        versions_kept=tuple(report.versions_kept for report in reports),
        link_bytes={(rank, other): nbytes for rank, report in enumerate(reports)
                    for other, nbytes in sorted(report.sent.items())},
        summed_bytes=tuple(report.summed_bytes for report in reports),
        sent_bytes=tuple(report.ledger_bytes for report in reports),
    )


def _merged(stages: tuple[dict[str, Array], ...], names: list[str]) -> dict[str, Array]:
    found = {name: array for stage in stages for name, array in stage.items()}
    return {name: found[name] for name in names if name in found}
