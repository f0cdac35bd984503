"""What every layer is: a forward pass, the two halves of its backward pass, and what it keeps."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, Grads, Params


@dataclass(frozen=True)
class Context:
    """Where in a run a forward pass stands; `EVALUATION` outside training.

    Attributes
    ----------
    seed : int, optional
        Seed of the run's random bits. None: no dropout.
    step : int
        Optimiser step; each has its own random bits.
    first_sample : int
        Index, in the global batch, of the first sample of this microbatch. Random bits belong to
        samples, so that a batch cut into microbatches and ranks draws the same bits as a whole.
    positions : tuple of int, optional
        Position in the text of each row along the sequence axis. Default: 0, 1, 2, ... A rank that
        holds part of the sequence names its part here.
    loss_scale : float
        What the main loss is multiplied by before the backward pass (loss scaling, 1 /
        microbatches); extra losses inside the model, such as a router's, are multiplied by it too.
    """

    seed: int | None = None
    step: int = 0
    first_sample: int = 0
    positions: tuple[int, ...] | None = None
    loss_scale: float = 1.0


EVALUATION = Context()


@dataclass(eq=False)
class Saved:
    """What a forward pass keeps until the backward pass, in the parts in which it is freed.

    Attributes
    ----------
    for_input : dict of str to array
        What only the input gradient (I) needs: freed by `Module.backward_input`.
    for_weight : dict of str to array
        What the weight gradient (W) needs, or both: freed by `Module.backward_weight`. The input
        gradient adds here what it hands on, such as the output gradient.
    parts : list of Saved
        Of the layers inside, in their order.
    context : Context, optional
        Of the forward pass, if a recomputation will need it.
    sizes : tuple of int
        Lengths that the backward pass needs and cannot read off an array.
    extra_loss : float
        A loss that arose inside (a router's); already multiplied by its coefficient.
    """

    for_input: dict[str, Array] = field(default_factory=dict)
    for_weight: dict[str, Array] = field(default_factory=dict)
    parts: list[Saved] = field(default_factory=list)
    context: Context | None = None
    sizes: tuple[int, ...] = ()
    extra_loss: float = 0.0

    def arrays(self) -> Iterator[Array]:
        """All arrays kept, here and in the parts; one that is kept twice comes twice."""
        yield from self.for_input.values()
        yield from self.for_weight.values()
        for part in self.parts:
            yield from part.arrays()

    @property
    def nbytes(self) -> int:
        """Bytes held: each buffer once, however many layers keep it or a view of it."""
        return held_bytes(self.arrays())

    def total_extra_loss(self) -> float:
        """Sum of the losses that arose inside the layers of this forward pass."""
        return self.extra_loss + sum(part.total_extra_loss() for part in self.parts)

    def take(self, name: str) -> Array:
        """Remove and return what only the input gradient needs.

        Raises
        ------
        RuntimeError
            If it has been freed already: a saved state serves one backward pass.
        """
        return _take(self.for_input, name, "backward_input")

    def take_for_weight(self, name: str) -> Array:
        """Remove and return what the weight gradient needs; raises as `take` does."""
        return _take(self.for_weight, name, "backward_weight")


def _take(arrays: dict[str, Array], name: str, user: str) -> Array:
    if name not in arrays:
        raise RuntimeError(
            f"{name!r} is not in the saved state: {user} ran already, or the forward pass (for "
            f"backward_weight: backward_input) has not; kept are {sorted(arrays)}"
        )
    return arrays.pop(name)


def held_bytes(arrays: Iterator[Array] | Sequence[Array]) -> int:
    """Bytes of memory that arrays hold: a buffer shared by several counts once, and whole.

    Examples
    --------
    >>> x = np.zeros((4, 4))
    >>> held_bytes([x, x[0], x.T])
    128
    """
    buffers = {}
    for x in arrays:
        while isinstance(x.base, np.ndarray):
            x = x.base
        buffers[id(x)] = x.nbytes
    return sum(buffers.values())


class Module:
    """A layer, or layers put together. It holds sizes and names; arrays are passed in.

    ``F`` is `forward`, ``I`` `backward_input`, ``W`` `backward_weight`, ``B`` `backward`. Gradients
    of ``B`` equal those of ``I`` and ``W`` bit for bit: they are the same operations.
    What `forward` and `backward_input` return is new, or the array they were given: it is not kept.
    Parameters come by their full names, so that the caller decides which version of the weights
    is used, where they are kept, and when.
    """

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters, in order."""
        return {}

    def init(self, seed: int, dtype: DTypeLike = np.float32) -> dict[str, Array]:
        """First values of the parameters.

        Each depends on ``seed`` and its name only: a rank that makes its own part gets the values
        that the whole model has there.
        """
        params: dict[str, Array] = {}
        for name, shape in self.shapes().items():
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            params[name] = self.first_value(name, shape, rng).astype(dtype)
        return params

    def first_value(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw the first value of one parameter: GPT-2's normal with deviation 0.02."""
        return rng.normal(0.0, 0.02, shape)

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: the output, and what the backward pass will need."""
        raise NotImplementedError

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: the gradient of the input from that of the output; frees ``saved.for_input``."""
        raise NotImplementedError

    def backward_weight(self, saved: Saved) -> Grads:
        """W, after I: the gradients of the parameters; frees ``saved.for_weight``."""
        return {}

    def backward(self, params: Params, saved: Saved, dy: Array) -> tuple[Array, Grads]:
        """B = I and W at once: the input gradient and the parameters' gradients."""
        dx = self.backward_input(params, saved, dy)
        return dx, self.backward_weight(saved)

    def recompute(self, params: Params, saved: Saved) -> None:
        """R: restore now what was dropped to save memory; I does it if nobody has."""


def require_width(layer: str, x: Array, width: int) -> None:
    """Refuse an input whose last axis is not ``width`` long.

    Raises
    ------
    ValueError
        Naming the layer, the shape that came and the width it needs.
    """
    if x.ndim < 1 or x.shape[-1] != width:
        raise ValueError(f"{layer} needs an input of shape (..., {width}); got {x.shape}")
