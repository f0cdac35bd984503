"""Layers put together: one after another, around a shortcut, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distlearn.nn.arrays import Array, Grads, Params, add_gradients, narrow, pieces, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved
from distlearn.nn.threads import share


@dataclass(frozen=True, init=False)
class Composite(Module):
    """Modules inside a module: parameters and recomputation are theirs."""

    modules: tuple[Module, ...]

    def __init__(self, *modules: Module) -> None:
        object.__setattr__(self, "modules", modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all parameters inside; a shared one appears once."""
        return {name: shape for module in self for name, shape in module.shapes().items()}

    def init(self, seed: int, dtype: DTypeLike = np.float32) -> dict[str, Array]:
        """First values, as each module inside draws them; of a shared one, the first module's."""
        params: dict[str, Array] = {}
        for module in self:
            for name, value in module.init(seed, dtype).items():
                params.setdefault(name, value)
        return params

    def backward_weight(self, saved: Saved) -> Grads:
        """W of all modules inside, last first; gradients of a shared parameter are added."""
        grads: Grads = {}
        for module, part in zip(reversed(self.modules), reversed(saved.parts), strict=True):
            add_gradients(grads, module.backward_weight(part))
        return grads

    def recompute(self, params: Params, saved: Saved) -> None:
        """R of all modules inside."""
        for module, part in zip(self.modules, saved.parts, strict=True):
            module.recompute(params, part)


class Sequential(Composite):
    """One module after another: y = fn(... f2(f1(x)))."""

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F of each module in turn."""
        parts = []
        for module in self:
            x, part = module.forward(params, x, context)
            parts.append(part)
        return x, Saved(parts=parts)

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I of each module, last first."""
        for module, part in zip(reversed(self.modules), reversed(saved.parts), strict=True):
            dy = module.backward_input(params, part, dy)
        return dy

    def backward(self, params: Params, saved: Saved, dy: Array) -> tuple[Array, Grads]:
        """B of each module, last first: W follows I at once, so that memory is freed early."""
        grads: Grads = {}
        for module, part in zip(reversed(self.modules), reversed(saved.parts), strict=True):
            dy, more = module.backward(params, part, dy)
            add_gradients(grads, more)
        return dy, grads


class Residual(Sequential):
    """Modules around which the input passes unchanged: y = x + fn(... f1(x))."""

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: x + f(x)."""
        y, saved = super().forward(params, x, context)
        return _added(y, x), saved

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """Gradient through both paths: dy + dy f'(x)."""
        return _added(super().backward_input(params, saved, dy), dy)

    def backward(self, params: Params, saved: Saved, dy: Array) -> tuple[Array, Grads]:
        """B, with the same sum."""
        dx, grads = super().backward(params, saved, dy)
        return _added(dx, dy), grads


class Fork(Composite):
    """Modules that read one input, their outputs joined along the last axis: [f1(x) | f2(x)]."""

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """All outputs, side by side."""
        outputs, parts = zip(*(m.forward(params, x, context) for m in self), strict=True)
        widths = tuple(y.shape[-1] for y in outputs)
        return np.concatenate(outputs, axis=-1), Saved(parts=[*parts], sizes=widths)

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: the sum of the input gradients of all branches."""
        cuts = np.cumsum(saved.sizes)[:-1]
        branches = np.split(dy, cuts, axis=-1)
        inputs = [
            module.backward_input(params, part, branch)
            for module, part, branch in zip(self.modules, saved.parts, branches, strict=True)
        ]
        total = sum((wide(dx) for dx in inputs[1:]), wide(inputs[0]))
        return narrow(total, dy.dtype)


def _added(own: Array, other: Array) -> Array:
    """``own + other``, in place of ``own``: what a module returns, it does not keep."""
    if own.dtype.itemsize == 2 or own.dtype != other.dtype or np.may_share_memory(own, other):
        return narrow(wide(own) + wide(other), own.dtype)

    def add(part: slice) -> None:
        own[part] += other[part]

    share(add, pieces(len(own), own.size // max(1, len(own))))
    return own
