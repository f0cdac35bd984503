"""A multilayer perceptron: the smallest network that has everything a training step needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from distlearn.nn.activation import Tanh
from distlearn.nn.compose import Sequential
from distlearn.nn.linear import Linear
from distlearn.nn.module import Module


def mlp(sizes: Sequence[int], activation: Module | None = None, name: str = "l") -> Sequential:
    """Linear layers with an activation between them.

    Parameters
    ----------
    sizes : sequence of int
        Width of the input, of each layer, and of the output; at least two.
    activation : Module, optional
        Default: tanh.
    name : str
        Layer i is named ``name.i``.

    Raises
    ------
    ValueError
        For fewer than two sizes.

    Examples
    --------
    >>> list(mlp([7, 19, 3]).shapes())
    ['l.0.weight', 'l.0.bias', 'l.1.weight', 'l.1.bias']
    """
    if len(sizes) < 2:
        raise ValueError(f"an MLP needs at least an input and an output width; got {sizes}")
    layers: list[Module] = []
    for index, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        if index:
            layers.append(activation if activation is not None else Tanh())
        layers.append(Linear(f"{name}.{index}", inputs, outputs))
    return Sequential(*layers)
