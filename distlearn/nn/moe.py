"""A mixture of experts: several feed-forward layers, of which each token uses the router's k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from distlearn.nn.activation import GeluTanh, SwiGLU
from distlearn.nn.arrays import Array, Grads, Params, matmul, narrow, rows_of, wide
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width
from distlearn.nn.router import Router, Routing


@dataclass(frozen=True)
class MixtureOfExperts(Module):
    """y = Σ over a token's experts e of weight · w2[e] · activation(w1[e] · x).

    Tokens are sorted by expert (dispatch), each expert works on its rows, and the outputs are
    gathered back, weighted (combine). A dropped token gets nothing from the expert that was full.

    Attributes
    ----------
    name : str
        Parameters are ``name.w1`` (experts, ffn, hidden), with SwiGLU (experts, 2 · ffn, hidden),
        ``name.w2`` (experts, hidden, ffn), and the router's.
    hidden, ffn : int
    router : Router
    activation : Module
    """

    name: str
    hidden: int
    ffn: int
    router: Router
    activation: Module = field(default_factory=GeluTanh)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The router's weight, ``w1`` and ``w2``."""
        inner = 2 * self.ffn if isinstance(self.activation, SwiGLU) else self.ffn
        return {
            **self.router.shapes(),
            f"{self.name}.w1": (self.router.experts, inner, self.hidden),
            f"{self.name}.w2": (self.router.experts, self.hidden, self.ffn),
        }

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: (..., hidden) to (..., hidden)."""
        require_width(f"mixture of experts {self.name!r}", x, self.hidden)
        routing, routed = self.router.choose(params, x, context)
        order, ends = dispatch_order(routing)
        tokens = rows_of(x)[order // self.router.k]
        w1, w2 = params[f"{self.name}.w1"], params[f"{self.name}.w2"]
        inner = narrow(_each_expert(tokens, w1.swapaxes(1, 2), ends), x.dtype)
        active, activated = self.activation.forward({}, inner, context)
        outputs = np.zeros((routing.expert.size, self.hidden), wide(x[:0]).dtype)
        outputs[order] = _each_expert(active, w2.swapaxes(1, 2), ends)
        outputs = outputs.reshape(*routing.expert.shape, self.hidden)
        y = narrow(np.einsum("tk,tkh->th", routing.weight, outputs), x.dtype).reshape(x.shape)
        saved = Saved(
            for_input={"outputs": outputs, **_arrays(routing)},
            for_weight={"tokens": tokens, "active": active, "order": order},
            parts=[routed, activated],
            sizes=(*ends, routing.capacity),
        )
        return y, saved

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: through the experts and through their weights."""
        outputs = saved.take("outputs")
        routing = _routing(saved)
        routed, activated = saved.parts
        ends, order = saved.sizes[:-1], saved.for_weight["order"]
        g = wide(rows_of(dy))
        dx = self.router.backward_routing(
            params, routed, routing, np.einsum("th,tkh->tk", g, outputs)
        )
        d_out = g[order // self.router.k] * routing.weight.reshape(-1)[order, None]
        w1, w2 = params[f"{self.name}.w1"], params[f"{self.name}.w2"]
        d_active = narrow(_each_expert(d_out, w2, ends), dy.dtype)
        d_inner = self.activation.backward_input({}, activated, d_active)
        scattered = np.zeros((routing.expert.size, self.hidden), g.dtype)
        scattered[order] = _each_expert(d_inner, w1, ends)
        dx += scattered.reshape(*routing.expert.shape, self.hidden).sum(1)
        saved.for_weight.update(d_out=narrow(d_out, dy.dtype), d_inner=d_inner)
        return narrow(dx, dy.dtype).reshape(dy.shape)

    def backward_weight(self, saved: Saved) -> Grads:
        """W: for each expert the product of its rows."""
        kept = ("order", "tokens", "active", "d_out", "d_inner")
        _, tokens, active, d_out, d_inner = (saved.take_for_weight(name) for name in kept)
        grads = self.router.backward_weight(saved.parts[0])
        for name, left, right in (("w1", d_inner, tokens), ("w2", d_out, active)):
            parts = [matmul(left[rows].T, right[rows]) for rows in _rows(saved.sizes[:-1])]
            grads[f"{self.name}.{name}"] = narrow(np.stack(parts), left.dtype)
        return grads


def dispatch_order(routing: Routing) -> tuple[Array, tuple[int, ...]]:
    """Assignments kept, sorted by expert and then by token.

    Returns
    -------
    order : array of int
        Assignment numbers, token · k + choice.
    ends : tuple of int
        Where each expert's run ends in ``order``.
    """
    assigned = np.flatnonzero(routing.kept)
    experts = routing.expert.reshape(-1)[assigned]
    order = assigned[np.argsort(experts, kind="stable")]
    ends = np.cumsum(np.bincount(experts, minlength=routing.probabilities.shape[1]))
    return order, tuple(ends.tolist())


def _rows(ends: tuple[int, ...]) -> Iterator[slice]:
    for start, end in zip((0, *ends[:-1]), ends, strict=True):
        yield slice(start, end)


def _each_expert(x: Array, weights: Array, ends: tuple[int, ...]) -> Array:
    """Rows of expert e times ``weights[e]`` (experts, inputs, outputs)."""
    y = np.empty((len(x), weights.shape[2]), wide(x[:0]).dtype)
    for expert, rows in enumerate(_rows(ends)):
        y[rows] = matmul(x[rows], weights[expert])
    return y


ROUTING_ARRAYS = ("probabilities", "expert", "kept", "weight", "slot", "counts")


def _arrays(routing: Routing) -> dict[str, Array]:
    return {name: getattr(routing, name) for name in ROUTING_ARRAYS}


def _routing(saved: Saved) -> Routing:
    arrays = {name: saved.take(name) for name in ROUTING_ARRAYS}
    return Routing(**arrays, capacity=saved.sizes[-1], aux_loss=0.0, z_loss=0.0)
