"""What every optimiser is: a rule that changes weights by gradients, and a state it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distlearn.nn.arrays import Array, Params, pieces
from distlearn.nn.module import held_bytes
from distlearn.nn.threads import share

Slots = dict[str, dict[str, Array]]


@dataclass
class OptimizerState:
    """What an optimiser remembers.

    Attributes
    ----------
    step : int
        Updates done.
    slots : dict
        By parameter name, then by what it is (``momentum``, ``mean``, ``square``, ...): arrays of
        the parameter's shape.
    """

    step: int = 0
    slots: Slots = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return held_bytes([*self.arrays().values()])

    def arrays(self) -> dict[str, Array]:
        """All arrays by ``name:slot``, flat: what a checkpoint holds."""
        return {
            f"{name}:{slot}": array
            for name, slots in self.slots.items()
            for slot, array in slots.items()
        }

    def restore(self, arrays: Params, step: int) -> None:
        """Put back what `arrays` gave and ``step``.

        Raises
        ------
        ValueError
            If names or shapes are not those of this state.
        """
        for name, own in self.arrays().items():
            if name not in arrays or arrays[name].shape != own.shape:
                got = arrays[name].shape if name in arrays else "nothing"
                raise ValueError(f"state {name!r} must have shape {own.shape}; got {got}")
            own[...] = arrays[name]
        self.step = step


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """An update rule. Hyper-parameters are here; weights and state are passed in and changed.

    Attributes
    ----------
    lr : float
        Learning rate, unless `update` is given another.
    weight_decay : float
        As the subclass uses it.
    no_decay : frozenset of str
        Parameters that weight decay spares, such as biases and norms.
    """

    lr: float
    weight_decay: float = 0.0
    no_decay: frozenset[str] = frozenset()

    SLOTS = ()  # names of the arrays kept for each parameter

    def __post_init__(self) -> None:
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} must be a number >= 0; got {value!r}")

    def slot_names(self) -> tuple[str, ...]:
        """Which arrays are kept for each parameter; each has its shape and type."""
        return ()

    def first_slot(self, name: str, parameter: Array) -> Array:
        """First value of one of them."""
        return np.zeros_like(parameter)

    def init(self, params: Params) -> OptimizerState:
        """A state for these parameters, before the first update."""
        slots: Slots = {
            key: {name: self.first_slot(name, value) for name in self.slot_names()}
            for key, value in params.items()
        }
        return OptimizerState(slots=slots)

    def update(
        self,
        params: dict[str, Array],
        grads: Params,
        state: OptimizerState,
        lr: float | None = None,
    ) -> None:
        """One step: change ``params`` and ``state`` in place.

        Parameters
        ----------
        params : dict of str to array
            Float32 or float64; 16-bit weights need a master copy (`MixedPrecision`).
        grads : dict of str to array
            For every parameter, of its shape.
        state : OptimizerState
        lr : float, optional
            Learning rate of this step.

        Raises
        ------
        ValueError
            Naming a gradient or state that is missing or has another shape, or 16-bit weights.
        """
        check_gradients(params, grads, state)
        state.step += 1
        rate = self.lr if lr is None else lr

        def compute(run: tuple[str, slice]) -> None:
            name, part = run
            decay = 0.0 if name in self.no_decay else self.weight_decay
            w = params[name].reshape(-1)[part]
            g = grads[name].reshape(-1)[part].astype(w.dtype, copy=False)
            kept = {key: array.reshape(-1)[part] for key, array in state.slots[name].items()}
            self.rule(w, g, kept, state.step, rate, decay)

        share(compute, [(name, part) for name, w in params.items() for part in pieces(w.size, 1)])

    def rule(
        self, w: Array, g: Array, slots: dict[str, Array], step: int, lr: float, decay: float
    ) -> None:
        """Change the weights ``w`` and the slots, one flat piece of a parameter, in place.

        Every rule works value by value, so that a shard of a parameter is updated as the whole is.
        """
        raise NotImplementedError


def check_gradients(params: Params, grads: Params, state: OptimizerState) -> None:
    """Refuse gradients or a state that do not fit the parameters; see `Optimizer.update`."""
    for name, parameter in params.items():
        if parameter.dtype.itemsize == 2:
            raise ValueError(
                f"parameter {name!r} is {parameter.dtype}: updates smaller than its rounding would "
                "be lost; keep a float32 master copy (MixedPrecision)"
            )
        if name not in grads:
            raise ValueError(f"parameter {name!r} has no gradient; there are {sorted(grads)}")
        if grads[name].shape != parameter.shape:
            raise ValueError(
                f"gradient of {name!r} must have shape {parameter.shape}; got {grads[name].shape}"
            )
        if name not in state.slots:
            raise ValueError(f"parameter {name!r} is not in the optimiser's state; call init")
        if not parameter.flags.c_contiguous:
            raise ValueError(f"parameter {name!r} must be contiguous to be updated in place")
