"""Which experts a token goes to, with what weight, and who is dropped when an expert is full."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Grads, Params, matmul, narrow, rows_of, wide
from distlearn.nn.attention import softmax, softmax_backward
from distlearn.nn.dropout import hash_words, random_words
from distlearn.nn.module import EVALUATION, Context, Module, Saved, require_width
from distlearn.nn.topk_ties import torch_topk

KEEP = ("first", "first_choice", "largest", "random", "torch_ties")
NORMALISE = ("none", "chosen", "kept")


@dataclass(frozen=True, eq=False)
class Routing:
    """The decision for every token.

    Attributes
    ----------
    probabilities : array (tokens, experts)
        Softmax of the logits.
    expert : array of int (tokens, k)
        Chosen experts, the likeliest first.
    kept : array of bool (tokens, k)
        False where the expert was full and the token is dropped.
    weight : array (tokens, k)
        Weight of each expert's output; 0 where dropped.
    slot : array of int (tokens, k)
        Place among the tokens that the expert takes; -1 where dropped.
    counts : array of int (experts,)
        Tokens that chose each expert, before dropping.
    capacity : int
        Most tokens an expert takes; the largest count if none are dropped.
    aux_loss, z_loss : float
        Load balance: experts · Σ (share of the choices) (mean probability), 1 if even (Switch
        Transformer, section 2.2). Mean of logsumexp² (ST-MoE, section 2.3). Not multiplied by their
        coefficients.
    """

    probabilities: Array
    expert: Array
    kept: Array
    weight: Array
    slot: Array
    counts: Array
    capacity: int
    aux_loss: float
    z_loss: float

    def combine(self) -> Array:
        """Weights as (tokens, experts, capacity): GShard's tensor that gathers the outputs."""
        tokens, experts = self.probabilities.shape
        tensor = np.zeros((tokens, experts, self.capacity), self.weight.dtype)
        token, choice = np.nonzero(self.kept)
        place = (token, self.expert[token, choice], self.slot[token, choice])
        tensor[place] = self.weight[token, choice]
        return tensor

    def dispatch(self) -> Array:
        """True where a token goes: (tokens, experts, capacity), GShard's dispatch mask."""
        mask: Array = self.combine() != 0
        return mask


@dataclass(frozen=True)
class Router(Module):
    """Softmax over experts and the top k of it, with or without a capacity.

    Attributes
    ----------
    name : str
        The parameter is ``name.weight`` (experts, width).
    width, experts, k : int
    normalise : str
        Weights are the probabilities (``none``), divided by their sum over the experts chosen
        (``chosen``), or over those that did not drop the token (``kept``).
    capacity_factor : float, optional
        An expert takes ceil(tokens · k / experts · capacity_factor) tokens. Default: all.
    min_capacity : int
        But at least so many.
    keep : str
        Whom a full expert takes: ``first`` tokens; all first choices before second ones
        (``first_choice``, GShard); those with the ``largest`` probability; ``random`` ones, by the
        context's seed; or ``torch_ties``, the ones that torch.topk happens to take of equals
        (DeepSpeed's top-1 gating without random token selection).
    balance_first : bool
        Whether the auxiliary loss counts first choices only, as GShard.
    aux_coefficient, z_coefficient : float
        Multiply the two losses.
    """

    name: str
    width: int
    experts: int
    k: int = 2
    normalise: str = "chosen"
    capacity_factor: float | None = None
    min_capacity: int = 4
    keep: str = "first"
    balance_first: bool = False
    aux_coefficient: float = 0.0
    z_coefficient: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.experts:
            raise ValueError(
                f"router {self.name!r} needs 1 <= k <= experts; got k={self.k}, "
                f"experts={self.experts}"
            )
        for name, allowed in (("keep", KEEP), ("normalise", NORMALISE)):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}"
                )

    @classmethod
    def deepspeed(
        cls, name: str, width: int, experts: int, k: int, capacity_factor: float = 1.0,
        min_capacity: int = 8, keep: str | None = None,
    ) -> Router:  # fmt: skip
        """DeepSpeed's top1gating, top2gating or topkgating, without noise.

        Parameters
        ----------
        keep : str, optional
            Default: ``torch_ties``, ``first_choice``, ``largest`` for k = 1, 2, more.
        """
        default = {1: "torch_ties", 2: "first_choice"}.get(k, "largest")
        return cls(
            name, width, experts, k, "none" if k == 1 else "kept", capacity_factor, min_capacity,
            keep if keep is not None else default, balance_first=k == 2,
        )  # fmt: skip

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``name.weight``."""
        return {f"{self.name}.weight": (self.experts, self.width)}

    def choose(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Routing, Saved]:
        """F: the routing of tokens (..., width). Logits are float32 or wider."""
        require_width(f"router {self.name!r}", x, self.width)
        logits = matmul(rows_of(x), params[f"{self.name}.weight"].T)
        routing = self.route(logits, context)
        extra = self.aux_coefficient * routing.aux_loss + self.z_coefficient * routing.z_loss
        kept = {"logits": logits} if self.z_coefficient else {}
        return routing, Saved(
            for_input=kept, for_weight={"x": x}, context=context, extra_loss=extra
        )

    def route(self, logits: Array, context: Context = EVALUATION) -> Routing:
        """The routing that logits (tokens, experts) lead to."""
        tokens = len(logits)
        p = softmax(logits)
        expert = np.argsort(-logits, axis=1, kind="stable")[:, : self.k]
        chosen = np.zeros(p.shape, np.bool_)
        np.put_along_axis(chosen, expert, True, axis=1)
        counts = chosen.sum(0)
        capacity = self._capacity(tokens, counts)
        place = self._places(p, expert, chosen, capacity, context)
        slot = np.take_along_axis(place, expert, axis=1)
        kept = slot < capacity
        balanced = chosen if not self.balance_first else p.argmax(1)[:, None] == np.arange(
            self.experts
        )  # fmt: skip
        share = balanced.sum(0) / (tokens * (1 if self.balance_first else self.k))
        return Routing(
            probabilities=p,
            expert=expert,
            kept=kept,
            weight=self._weights(p, expert, kept),
            slot=np.where(kept, slot, -1),
            counts=counts,
            capacity=capacity,
            aux_loss=float(self.experts * (share * p.mean(0)).sum()),
            z_loss=float((logsumexp(logits) ** 2).mean()),
        )

    def backward_routing(
        self, params: Params, saved: Saved, routing: Routing, d_weight: Array
    ) -> Array:
        """I: the gradient of the tokens from that of the weights, and from the extra losses.

        Who goes where does not change with small changes, so the choice itself has no gradient.
        """
        p, tokens = routing.probabilities, len(routing.probabilities)
        counted = {"none": None, "chosen": np.ones_like(routing.kept), "kept": routing.kept}
        part = counted[self.normalise]
        at_expert = np.take_along_axis(p, routing.expert, axis=1)
        d = np.where(routing.kept, d_weight, 0.0)
        if part is not None:
            total = np.maximum((at_expert * part).sum(1, keepdims=True), np.finfo(p.dtype).eps)
            d = part * (d - (d * routing.weight).sum(1, keepdims=True)) / total
        dp = np.zeros_like(p)
        np.put_along_axis(dp, routing.expert, d.astype(p.dtype), axis=1)
        context = saved.context or EVALUATION
        if self.aux_coefficient:
            if self.balance_first:
                share = np.bincount(routing.expert[:, 0], minlength=self.experts) / tokens
            else:
                share = routing.counts / (tokens * self.k)
            factor = context.loss_scale * self.aux_coefficient * self.experts / tokens
            dp += (factor * share).astype(p.dtype)
        d_logits = softmax_backward(p, dp)
        if self.z_coefficient:
            scale = context.loss_scale * self.z_coefficient * 2 / tokens
            d_logits += scale * logsumexp(saved.take("logits"))[:, None] * p
        saved.for_weight["d_logits"] = d_logits
        return matmul(d_logits, params[f"{self.name}.weight"])

    def backward_weight(self, saved: Saved) -> Grads:
        """W: d_logitsᵀ x."""
        d_logits, x = saved.take_for_weight("d_logits"), saved.take_for_weight("x")
        return {f"{self.name}.weight": narrow(matmul(d_logits.T, rows_of(x)), x.dtype)}

    def _capacity(self, tokens: int, counts: Array) -> int:
        if self.capacity_factor is None:
            return int(counts.max())
        # float32, as DeepSpeed: 10 · 1.1 is 11, where float64 gives 11.000000000000002, hence 12
        even = np.float32(tokens / self.experts) * np.float32(self.capacity_factor * self.k)
        return max(math.ceil(even), self.min_capacity)

    def _weights(self, p: Array, expert: Array, kept: Array) -> Array:
        weight = np.take_along_axis(p, expert, axis=1)
        if self.normalise == "chosen":
            weight = weight / weight.sum(1, keepdims=True)
        weight = weight * kept
        if self.normalise == "kept":
            weight = weight / np.maximum(weight.sum(1, keepdims=True), np.finfo(p.dtype).eps)
        return weight

    def _places(
        self, p: Array, expert: Array, chosen: Array, capacity: int, context: Context
    ) -> Array:
        """Place of each token in the queue of each expert (tokens, experts), 0-based."""
        if self.keep == "first" or self.capacity_factor is None:
            return np.cumsum(chosen, axis=0) - 1
        if self.keep == "first_choice":
            place, before = np.zeros(chosen.shape, np.int64), np.zeros(self.experts, np.int64)
            for choice in range(self.k):
                mask = expert[:, choice, None] == np.arange(self.experts)
                place += mask * (np.cumsum(mask, axis=0) - 1 + before)
                before += mask.sum(0)
            return place
        if self.keep == "largest":
            taken = chosen & (_ranks(np.where(chosen, -p, 0.0)) < capacity)
        elif self.keep == "random":
            key = hash_words(context.seed or 0, context.step, context.first_sample)
            bits = random_words(key, np.arange(chosen.size, dtype=np.uint64)).reshape(chosen.shape)
            last = np.uint64(2**64 - 1)
            taken = chosen & (_ranks(np.where(chosen, bits, last)) < capacity)
        else:
            taken = np.zeros_like(chosen)
            for column in range(self.experts):
                values = chosen[:, column].astype(np.int64)
                taken[torch_topk(values, min(capacity, len(values))), column] = True
            taken &= chosen
        return np.where(taken, np.cumsum(taken, axis=0) - 1, len(p) + capacity)


def _ranks(keys: Array) -> Array:
    """Rank of each value in its column, the smallest first; equal ones in their order."""
    return np.argsort(np.argsort(keys, axis=0, kind="stable"), axis=0)


def logsumexp(x: Array) -> Array:
    """Logarithm of Σ exp(x) along the last axis.

    Examples
    --------
    >>> logsumexp(np.array([1000.0, 1000.0])).round(4)
    np.float64(1000.6931)
    """
    x = wide(x)
    top = x.max(-1, keepdims=True)
    return np.asarray(np.log(np.exp(x - top).sum(-1)) + top[..., 0])[()]
