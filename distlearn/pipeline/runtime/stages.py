"""A model cut into stages, and the passes of one stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distlearn.nn import Array, CrossEntropy, Grads, Model, Module, Params, Saved
from distlearn.pipeline.runtime.batch import Piece
from distlearn.pipeline.runtime.slices import sliced


@dataclass(frozen=True)
class Stage:
    """Some layers of a model, and at the end of the pipeline its loss.

    The saved state has two parts: that of the layers and, at the end, that of the loss.

    Attributes
    ----------
    module : Module
    loss : CrossEntropy, optional
        Of the last stage; sums over targets, so that slices of a microbatch add up.
    """

    module: Module
    loss: CrossEntropy | None = None

    def forward(self, params: Params, x: Array, piece: Piece) -> tuple[Array, float, Saved]:
        """F: output (at the end, the logits), loss that arose here, saved state."""
        y, saved = self.module.forward(params, x, piece.context)
        extra = saved.total_extra_loss()
        if self.loss is None:
            return y, extra, Saved(parts=[saved])
        total, saved_loss = self.loss.forward(y, piece.targets)
        return y, total / piece.count + extra, Saved(parts=[saved, saved_loss])

    def backward_input(self, params: Params, saved: Saved, dy: Array | None, piece: Piece) -> Array:
        """I: the gradient of the input, from that of the output or, at the end, of the loss."""
        dy = self._from_loss(params, saved, dy, piece)
        return self.module.backward_input(params, saved.parts[0], dy)

    def backward_weight(self, saved: Saved) -> Grads:
        """W, after I."""
        return self.module.backward_weight(saved.parts[0])

    def backward(self, params: Params, saved: Saved, dy: Array | None, piece: Piece
                 ) -> tuple[Array, Grads]:
        """B: I and W at once."""
        dy = self._from_loss(params, saved, dy, piece)
        return self.module.backward(params, saved.parts[0], dy)

    def sliced(self) -> Stage:
        """The same stage, for the slices of one sequence (see `slices`)."""
        return replace(self, module=sliced(self.module))

    def _from_loss(self, params: Params, saved: Saved, dy: Array | None, piece: Piece) -> Array:
        if self.loss is None:
            assert dy is not None
            return dy
        dtype: np.dtype[np.generic] = next(iter(params.values())).dtype
        return self.loss.backward(saved.parts[1], piece.context.loss_scale / piece.count, dtype)


def cut_model(model: Model, stages: int) -> tuple[Stage, ...]:
    """As many stages as asked for, the blocks shared out evenly.

    Raises
    ------
    ValueError
        If there are fewer blocks than stages.
    """
    layers = len(model.modules) - 2
    if layers < stages:
        raise ValueError(f"the schedule has {stages} stages (p*v) and needs at least one layer for "
                         f"each; the model has {layers}")
    total = replace(model.loss, reduction="sum")
    modules = model.split(stages)
    return (*(Stage(module) for module in modules[:-1]), Stage(modules[-1], total))
