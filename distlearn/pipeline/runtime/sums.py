"""Gradients of weights that are in several places: copies of the model, and tied embeddings."""

from __future__ import annotations

from collections.abc import Mapping

from distlearn.nn import Array, Grads, Params
from distlearn.pipeline.runtime.mail import Mail
from distlearn.pipeline.runtime.stages import Stage
from distlearn.pipeline.runtime.weights import Place
from distlearn.pipeline.schedule import Schedule


def home(schedule: Schedule, place: Place) -> int:
    """The rank that holds a stage of a copy."""
    copy, stage = place
    return schedule.placements[copy][stage]


def places(schedule: Schedule) -> list[Place]:
    """All stages of all copies."""
    return [(copy, stage) for copy in range(len(schedule.placements))
            for stage in range(schedule.stages)]


def shared_weights(schedule: Schedule, stages: tuple[Stage, ...]) -> dict[str, tuple[Place, ...]]:
    """Names of weights that are in several places, and where."""
    found: dict[str, tuple[Place, ...]] = {}
    for place in places(schedule):
        for name in stages[place[1]].module.shapes():
            found[name] = (*found.get(name, ()), place)
    return {name: where for name, where in found.items() if len(where) > 1}


def zeros_where_missing(gradients: Grads, params: Params) -> Grads:
    """Gradients of all weights: those of a stage that no microbatch has come to are 0."""
    empty: dict[str, Array] = {name: w * 0 for name, w in params.items() if name not in gradients}
    return {**gradients, **empty}


async def add_shared(schedule: Schedule, rank: int, mail: Mail,
                     shared: Mapping[str, tuple[Place, ...]],
                     gradients: Mapping[Place, Grads]) -> None:
    """Add up the gradients of each shared weight, in the order of its places, and give all the sum.

    The first place's rank adds. All ranks go through the weights in the same order, and only wait
    for what is about the weight at hand, so none waits in a circle.
    """
    for name, where in shared.items():
        ranks = list(dict.fromkeys(home(schedule, place) for place in where))
        if rank not in ranks:
            continue
        mine = [place for place in where if home(schedule, place) == rank]
        if rank != ranks[0]:
            for place in mine:
                mail.send_sum(gradients[place][name], ranks[0])
            total = await mail.receive_sum(ranks[0])
        else:
            terms = [gradients[place][name] if place in mine
                     else await mail.receive_sum(home(schedule, place)) for place in where]
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            for other in ranks[1:]:
                mail.send_sum(total, other)
        for place in mine:
            gradients[place][name] = total
