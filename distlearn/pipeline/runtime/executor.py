"""Run a schedule on a model: the executed reading of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distlearn.comm import run
from distlearn.nn import EVALUATION, Array, Context, Model, Optimizer, Params, shared_parameters
from distlearn.pipeline.runtime.batch import cut_batch
from distlearn.pipeline.runtime.program import Job, rank_program
from distlearn.pipeline.runtime.run import Run, gather
from distlearn.pipeline.runtime.stages import cut_model
from distlearn.pipeline.schedule import Schedule
from distlearn.pipeline.validate import validate


def execute(schedule: Schedule, model: Model, batch: tuple[Array, Array], engine: str = "virtual",
            *, params: Params | None = None, optimizer: Optimizer | None = None,
            context: Context = EVALUATION, cut: str | None = None,
            lengths: Sequence[int] | None = None,
            timeout: float | None = 600.0, backend: str | None = None) -> Run:
    """Run any schedule on a model that is cut into its stages, one rank a device.

    Gradients are those of the mean of the microbatches' losses, as `distlearn.nn.accumulate`
    computes them on one device: equal bit for bit where it adds the microbatches in the same order
    (and sequences are whole and no weight is in two stages), else to rounding.

    Parameters
    ----------
    schedule : Schedule
    model : Model
        With at least as many layers as the schedule has stages; they are shared out evenly.
    batch : (ids, targets)
        Arrays of int (samples, tokens); m must divide the samples (of all batches of an
        asynchronous schedule together).
    engine : str
        ``virtual``, ``mpi`` or ``torch``: see `distlearn.comm.run`.
    params : dict of str to array, optional
        First weights. Default: ``model.init(0, float64)``. Not changed.
    optimizer : Optimizer, optional
        Updates the weights: once, at the end, or whenever an asynchronous schedule says.
    context : Context
        Of training: seed of dropout, step, loss scale.
    cut : str, optional
        What slices are: ``sequence``, or ``batch`` (the default where there are copies of the
        model: Chimera's backward halving).
    lengths : sequence of int, optional
        Tokens (samples) of each slice, as `distlearn.pipeline.slicing` finds them. Default: equal.
    timeout : float or None
        Seconds, for processes that this call starts.
    backend : str, optional
        Of torch.distributed.

    Raises
    ------
    ScheduleError
        As `validate`.
    ValueError
        If the model has too few layers, the batch does not divide, an asynchronous schedule has no
        optimizer, or the schedule asks for what this model cannot do.

    Examples
    --------
    >>> from distlearn.nn import ModelConfig, build as build_model
    >>> from distlearn.pipeline import build
    >>> model = build_model(ModelConfig(layers=2, hidden=8, heads=2, vocab=11, seq=4))
    >>> ids = np.arange(16).reshape(4, 4) % 11
    >>> done = execute(build("1f1b", p=2, m=4), model, (ids, ids))
    >>> done.peak_activations, list(done.gradients) == list(model.shapes())
    ((2, 1), True)
    """
    validate(schedule)
    stages = cut_model(model, schedule.stages)
    pieces = cut_batch(schedule, model, batch, context, cut, lengths)
    if params is None:
        params = model.init(0, np.float64)
    missing = [name for name in model.shapes() if name not in params]
    if missing:
        raise ValueError(f"params lack {', '.join(missing)}")
    kinds = {part.kind for row in schedule.ranks for a in row for part in a.parts}
    if schedule.slices > 1 and pieces.cut == "sequence":
        if "R" in kinds:
            raise ValueError(f"{schedule.name} recomputes slices of sequences, whose keys and "
                             "values later slices need: that can be simulated, not executed")
        for stage in stages:
            stage.sliced()  # refuses attention that cannot be cut
    if schedule.steps:
        tied = shared_parameters([stage.module for stage in stages])
        if optimizer is None:
            raise ValueError(f"{schedule.name} updates weights while it runs: pass optimizer=")
        if tied:
            raise ValueError(
                f"{schedule.name} updates each stage at a time of its own, but {next(iter(tied))} "
                f"is in stages {next(iter(tied.values()))}: build the model with tied=False")
    job = Job(schedule, model, params, pieces, optimizer)
    reports = run(rank_program, schedule.p, engine, args=(job,), timeout=timeout, backend=backend)
    return gather(schedule, engine, list(model.shapes()), reports)
