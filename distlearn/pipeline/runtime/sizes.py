"""The bytes that `simulate` needs, measured on the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from distlearn.nn import EVALUATION, Array, Context, Model, Params
from distlearn.pipeline.costs import Costs
from distlearn.pipeline.runtime.batch import cut_batch
from distlearn.pipeline.runtime.stages import cut_model
from distlearn.pipeline.schedule import Schedule


def stage_costs(schedule: Schedule, model: Model, batch: tuple[Array, Array],
                costs: Costs | None = None, *, params: Params | None = None,
                context: Context = EVALUATION, cut: str | None = None,
                lengths: Sequence[int] | None = None) -> Costs:
    """Costs with the real bytes of each stage, found by running one microbatch through the model.

    Parameters
    ----------
    schedule, model, batch, params, context, cut, lengths
        As for `execute`.
    costs : Costs, optional
        Where times come from. Default: ``Costs()``.

    Returns
    -------
    Costs
        With bytes per stage of: ``activation`` (kept from F to B or I), ``activation_after_I`` (to
        W), ``checkpoint`` (the input), ``message`` (the output), ``weight`` and ``gradient``. If
        ``lengths`` are given, the first four are those of one token (sample), and ``slice_size``
        has the lengths.

    Raises
    ------
    ValueError
        As `execute`.

    Examples
    --------
    >>> from distlearn.nn import ModelConfig, build as build_model
    >>> from distlearn.pipeline import build
    >>> model = build_model(ModelConfig(layers=2, hidden=8, heads=4, vocab=11, seq=4))
    >>> ids = np.zeros((4, 4), int)
    >>> costs = stage_costs(build("zb_h1", p=2, m=2), model, (ids, ids))
    >>> costs.message, costs.activation[0] > costs.activation_after_I[0]
    ((512.0, 0.0), True)
    """
    pieces = cut_batch(schedule, model, batch, context, cut, lengths)
    stages = cut_model(model, schedule.stages)
    if schedule.slices > 1 and pieces.cut == "sequence":
        stages = tuple(stage.sliced() for stage in stages)
    params = params if params is not None else model.init(0, np.float64)
    part = (0,) if schedule.slices > 1 else ()
    states, sizes = [], []
    x = pieces.piece((0, 0, *part)).ids
    for s, stage in enumerate(stages):
        own = {name: params[name] for name in stage.module.shapes()}
        weight = sum(w.nbytes for w in own.values())
        y, _, saved = stage.forward(own, x, pieces.piece((s, 0, *part)))
        sent = 0 if s == len(stages) - 1 else y.nbytes
        sizes.append([saved.nbytes, x.nbytes, sent, weight])
        states.append((own, saved))
        x = y
    dy: Array | None = None
    after: list[int] = []
    for s in reversed(range(len(stages))):
        own, saved = states[s]
        dy = stages[s].backward_input(own, saved, dy, pieces.piece((s, 0, *part)))
        after.insert(0, saved.nbytes)
    unit = 1 if lengths is None else lengths[0]  # all that is kept grows with the slice's length
    activation, checkpoint, message, weights = zip(*sizes, strict=True)
    return replace(costs if costs is not None else Costs(),
                   activation=[n / unit for n in activation],
                   activation_after_I=[n / unit for n in after],
                   checkpoint=[n / unit for n in checkpoint], message=[n / unit for n in message],
                   weight=weights, gradient=weights, slice_size=lengths)
