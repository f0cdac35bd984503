"""Dropout whose mask is a function of position, so that it does not depend on who computes it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distlearn.nn.arrays import Array, Params, pieces, pointwise
from distlearn.nn.module import EVALUATION, Context, Module, Saved

Shard = tuple[int, int, int]
"""(axis, first index, full length): the part of an axis that a rank holds."""

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, the step of SplitMix64


@dataclass(frozen=True)
class Dropout(Module):
    """Set a share of the values to 0 and multiply the others by 1 / (1 - rate).

    The mask is a hash of (seed, step, name, place of the value in the whole batch): the same when
    recomputed, when the batch is cut into microbatches, and when ranks hold parts of an axis. Keeps
    the mask, one byte a value. Without a seed in the context it passes values on.

    Attributes
    ----------
    name : str
        Dropouts of different names draw different masks.
    rate : float
        Share set to 0; 0 <= rate < 1.
    shards : tuple of (axis, first index, full length)
        Axes other than 0 of which this rank holds only a part.

    Examples
    --------
    >>> x, context = np.ones((2, 4)), Context(seed=1)
    >>> whole, _ = Dropout("d", 0.5).forward({}, x, context)
    >>> right, _ = Dropout("d", 0.5, shards=((1, 2, 4),)).forward({}, x[:, 2:], context)
    >>> bool((whole[:, 2:] == right).all())
    True
    """

    name: str
    rate: float
    shards: tuple[Shard, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ValueError(f"dropout {self.name!r} needs 0 <= rate < 1; got rate={self.rate}")

    def forward(
        self, params: Params, x: Array, context: Context = EVALUATION
    ) -> tuple[Array, Saved]:
        """F: any shape whose first axis counts samples."""
        mask = self.mask(x.shape, context)
        if mask is None:
            return x, Saved()
        return self.apply(x, mask), Saved(for_input={"mask": mask})

    def backward_input(self, params: Params, saved: Saved, dy: Array) -> Array:
        """I: the same mask and factor."""
        return self.apply(dy, saved.take("mask")) if saved.for_input else dy

    def apply(self, x: Array, mask: Array) -> Array:
        """Values where the mask is true, times 1 / (1 - rate); 0 elsewhere."""
        return pointwise(lambda v, m: v * m * (1 / (1 - self.rate)), x, mask)

    def mask(self, shape: Sequence[int], context: Context) -> Array | None:
        """True where a value is kept; None if all are (rate 0, or no seed)."""
        if self.rate == 0 or context.seed is None:
            return None
        key = hash_words(context.seed, context.step, zlib.crc32(self.name.encode()))
        row, rest = self._places(shape)
        first = np.uint64(context.first_sample) + np.arange(shape[0], dtype=np.uint64)
        threshold = np.uint64(round(self.rate * 2**64))
        mask = np.empty((shape[0], rest.size), np.bool_)
        for sample in range(shape[0]):
            start = first[sample] * row
            for part in pieces(rest.size, 2):
                mask[sample, part] = random_words(key, rest[part] + start) >= threshold
        return mask.reshape(shape)

    def _places(self, shape: Sequence[int]) -> tuple[np.uint64, Array]:
        """Values in a whole sample, and the place in it of each value of ours."""
        starts, full = [0] * len(shape), list(shape)
        for axis, first, length in self.shards:
            if not 0 < axis < len(shape) or first < 0 or first + shape[axis] > length:
                raise ValueError(
                    f"dropout {self.name!r}: shard (axis={axis}, first={first}, full={length}) "
                    f"does not fit an input of shape {tuple(shape)}"
                )
            starts[axis], full[axis] = first, length
        places = np.zeros((), np.uint64)
        for axis in range(1, len(shape)):
            index = np.arange(starts[axis], starts[axis] + shape[axis], dtype=np.uint64)
            places = places[..., None] * np.uint64(full[axis]) + index
        return np.uint64(np.prod(full[1:], dtype=np.uint64)), places.reshape(-1)


def random_words(key: int, counter: Array) -> Array:
    """64 random bits for each counter: SplitMix64's output function (Steele et al. 2014).

    Parameters
    ----------
    key : int
        Start of the sequence, 64 bits.
    counter : array of uint64
        Places in the sequence; each is reached directly.
    """
    z = counter * np.uint64(GOLDEN)
    z += np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z


def hash_words(*words: int) -> int:
    """Mix whole numbers into one of 64 bits; their order matters.

    Examples
    --------
    >>> hash_words(1, 2) != hash_words(2, 1)
    True
    """
    key = 0
    for word in words:
        counter = np.array([word % 2**64], np.uint64)
        key = int(random_words(key, counter + np.uint64(1))[0])
    return key
