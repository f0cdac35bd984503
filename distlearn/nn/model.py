"""A whole model: modules from token ids to logits, cut into stages at will, and its loss."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, Grads, Params
from distlearn.nn.block import block, embedding, head
from distlearn.nn.compose import Sequential
from distlearn.nn.config import ModelConfig
from distlearn.nn.loss import CrossEntropy
from distlearn.nn.module import EVALUATION, Context, Module, Saved


@dataclass(frozen=True)
class Model(Sequential):
    """Embedding, blocks and head, one after another, and the loss at the end.

    Attributes
    ----------
    modules : tuple of Module
        Each takes and gives one array (the first takes token ids, the last gives logits).
    config : ModelConfig, optional
        What it was built from.
    loss : CrossEntropy

    Examples
    --------
    >>> model = build(ModelConfig(layers=2, hidden=8, heads=2, vocab=11, seq=4))
    >>> params = model.init(seed=0)
    >>> ids = np.array([[1, 2, 3, 4]])
    >>> loss, grads = model.loss_and_gradients(params, ids, np.array([[2, 3, 4, 5]]))
    >>> round(loss, 1), list(grads) == list(params)
    (2.4, True)
    """

    config: ModelConfig | None = None
    loss: CrossEntropy = field(default_factory=CrossEntropy)

    def logits(self, params: Params, ids: Array) -> Array:
        """Logits (batch, sequence, vocab) of token ids (batch, sequence), without dropout."""
        return self.forward(params, ids)[0]

    def forward_loss(
        self, params: Params, ids: Array, targets: Array, context: Context = EVALUATION
    ) -> tuple[float, tuple[Saved, Saved]]:
        """F with the loss, extra losses of routers included.

        Returns
        -------
        loss : float
        saved : tuple of Saved
            Of the modules and of the loss, for `backward_loss`.
        """
        logits, saved = self.forward(params, ids, context)
        loss, saved_loss = self.loss.forward(logits, targets)
        return loss + saved.total_extra_loss(), (saved, saved_loss)

    def backward_loss(
        self, params: Params, saved: tuple[Saved, Saved], scale: float = 1.0
    ) -> Grads:
        """B with the loss: gradients of ``scale`` · loss, in the order of the parameters."""
        saved_modules, saved_loss = saved
        dtype = params[next(iter(self.shapes()))].dtype
        # 16-bit gradients may overflow: the loss scale, not a warning, deals with it
        quiet: Literal["ignore"] | None = "ignore" if dtype.itemsize == 2 else None
        with np.errstate(over=quiet, invalid=quiet):
            d_logits = self.loss.backward(saved_loss, scale, dtype)
            _, grads = self.backward(params, saved_modules, d_logits)
        return {name: grads[name] for name in self.shapes()}

    def loss_and_gradients(
        self, params: Params, ids: Array, targets: Array, context: Context = EVALUATION
    ) -> tuple[float, Grads]:
        """F and B. The gradients are those of the loss times ``context.loss_scale``."""
        loss, saved = self.forward_loss(params, ids, targets, context)
        return loss, self.backward_loss(params, saved, context.loss_scale)

    def split(self, stages: int | Sequence[int]) -> list[Sequential]:
        """Cut into pipeline stages, each a module of its own.

        Parameters
        ----------
        stages : int or sequence of int
            How many, the blocks shared out evenly (earlier stages take what is over); or how many
            blocks each has. The embedding goes with the first, the head with the last.

        Raises
        ------
        ValueError
            If there are fewer blocks than stages, or the numbers do not add up to the blocks.
        """
        blocks = len(self.modules) - 2
        if isinstance(stages, int):
            if not 1 <= stages <= max(1, blocks):
                raise ValueError(f"stages must lie between 1 and {blocks} blocks; got {stages}")
            counts = [blocks // stages + (s < blocks % stages) for s in range(stages)]
        else:
            counts = list(stages)
            if not counts or sum(counts) != blocks or min(counts) < 0:
                raise ValueError(f"stages must share out {blocks} blocks; got {counts}")
        cuts = np.cumsum([1, *counts]).tolist()
        cuts[0], cuts[-1] = 0, len(self.modules)
        return [Sequential(*self.modules[a:b]) for a, b in itertools.pairwise(cuts)]


def shared_parameters(stages: Sequence[Module]) -> dict[str, tuple[int, ...]]:
    """Parameters that several stages hold, and which: their gradients must be added up.

    Examples
    --------
    >>> model = build(ModelConfig(layers=4, hidden=8, heads=2, vocab=11, seq=4))
    >>> shared_parameters(model.split(4))
    {'wte.weight': (0, 3)}
    """
    holders: dict[str, tuple[int, ...]] = {}
    for index, stage in enumerate(stages):
        for name in stage.shapes():
            holders[name] = (*holders.get(name, ()), index)
    return {name: where for name, where in holders.items() if len(where) > 1}


def build(config: ModelConfig, recompute: str = "none", loss: CrossEntropy | None = None) -> Model:
    """The model of a configuration.

    Parameters
    ----------
    config : ModelConfig
    recompute : str
        ``none``, ``selective`` (attention core) or ``full`` (whole blocks): see `block`.
    loss : CrossEntropy, optional
        Default: the mean over targets that are not -100.
    """
    blocks = (block(config, index, recompute) for index in range(config.layers))
    modules: tuple[Module, ...] = (embedding(config), *blocks, head(config))
    return Model(modules, config, loss if loss is not None else CrossEntropy())


def cast(params: Params, dtype: DTypeLike) -> dict[str, Array]:
    """A copy of the parameters in another type."""
    return {name: value.astype(dtype) for name, value in params.items()}
